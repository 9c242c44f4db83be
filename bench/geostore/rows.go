package geostore

import (
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// outcome is what one system did at one point of an experiment on the geo-replicated store.
type outcome struct {
	system string
	mode   client.Mode
	place  *spread // nil: the store of the paper
	again  bool    // what is aborted is tried again, of a place
	params []table.Cell
	matrix wan.Matrix
	played Played
	hops   []storesim.Measurement // of some transactions; nil: not counted
}

// latencyRows returns the rows of all sites together and of each. An attempt counts from its start
// to its outcome, and only those that committed, as in the paper; end to end is from the first
// attempt's start to the commit.
func latencyRows(m outcome) []table.Row {
	rows := []table.Row{m.row("all", m.played.Txns, total(m.played.Commits))}
	for _, site := range m.matrix.Sites() {
		var own []Txn
		for _, t := range m.played.Txns {
			if t.Site == site {
				own = append(own, t)
			}
		}
		rows = append(rows, m.row(string(site), own, m.played.Commits[site]))
	}
	return rows
}

func total(commits map[wan.Site]int) int {
	n := 0
	for _, c := range commits {
		n += c
	}
	return n
}

func (m outcome) row(site string, txns []Txn, commits int) table.Row {
	row := slices.Concat(table.Row{table.Is("system", m.system), table.Is("site", site)}, table.Row(m.params))
	mean, cells := m.measures(txns, commits)
	if row = append(row, cells...); mean == 0 {
		return row
	}
	var floor time.Duration
	for _, t := range txns {
		floor += floorOf(m.matrix, t.Site)
	}
	floor /= time.Duration(len(txns))
	return append(row, table.Measure("floor_ms", table.Ms(floor)),
		table.Measure("ratio_to_floor", float64(mean)/float64(floor)))
}

// measures returns what transactions took, with the mean of their attempts that committed; 0 if
// none did. commits are those of the time in which they began; -1: only their times count.
func (m outcome) measures(txns []Txn, commits int) (mean time.Duration, row table.Row) {
	var committed, whole []time.Duration
	attempts, reads, right := 0, 0, 0
	for _, t := range txns {
		whole = append(whole, t.Took)
		attempts += len(t.Attempts)
		for _, a := range t.Attempts {
			if a.Committed {
				committed = append(committed, a.Took)
			}
			reads, right = reads+a.Reads, right+a.Right
		}
	}
	if len(committed) == 0 {
		return 0, append(row, table.Is("txns", len(txns)))
	}
	mean = table.Mean(committed)
	slices.Sort(committed)
	slices.Sort(whole)
	row = append(row,
		table.Is("txns", len(txns)),
		table.Measure("attempt_mean_ms", table.Ms(mean)),
		table.Measure("attempt_p50_ms", table.Ms(table.Quantile(committed, 0.5))),
		table.Measure("attempt_p95_ms", table.Ms(table.Quantile(committed, 0.95))),
		table.Measure("attempt_p99_ms", table.Ms(table.Quantile(committed, 0.99))))
	if m.place == nil || m.again { // else nothing is tried again
		row = append(row,
			table.Measure("end_to_end_mean_ms", table.Ms(table.Mean(whole))),
			table.Measure("end_to_end_p50_ms", table.Ms(table.Quantile(whole, 0.5))),
			table.Measure("end_to_end_p95_ms", table.Ms(table.Quantile(whole, 0.95))))
	}
	row = append(row, table.Measure("abort_percent", 100*float64(attempts-len(committed))/float64(attempts)))
	if commits >= 0 {
		row = append(row, table.Measure("commits_per_s", float64(commits)/m.played.Lasting.Seconds()))
	}
	if reads > 0 {
		row = append(row, table.Measure("first_answer_right_percent", 100*float64(right)/float64(reads)))
	}
	return mean, row
}

// floorOf is what no transaction of a site can be faster than that survives the loss of one: the
// round trip to the nearest other site.
func floorOf(m wan.Matrix, site wan.Site) time.Duration {
	others := slices.DeleteFunc(m.Sites(), func(s wan.Site) bool { return s == site })
	return m.RTT(site, m.Nearest(site, others))
}

// addRatios adds to each row what it is against the row of a base system at the same site and
// point: of attempts, transactions end to end, aborts, those that are asked for.
func addRatios(rows []table.Row, base string, of ...string) {
	addRatiosWhere(rows, base, samePoint, of...)
}

// addRatiosWhere does that where the row of the base system is the same in what matters.
func addRatiosWhere(rows []table.Row, base string, match func(a, b table.Row) bool, of ...string) {
	for i, row := range rows {
		if row.Value("system") == base {
			continue
		}
		j := slices.IndexFunc(rows, func(b table.Row) bool { return b.Value("system") == base && match(row, b) })
		if j < 0 {
			continue
		}
		for _, c := range []struct {
			what, column, name string
			difference         bool
		}{
			{"attempt", "attempt_mean_ms", "attempt_ratio_to_" + base, false},
			{"end_to_end", "end_to_end_mean_ms", "end_to_end_ratio_to_" + base, false},
			{"abort", "abort_percent", "abort_points_above_" + base, true},
		} {
			if !slices.Contains(of, c.what) {
				continue
			}
			own, ok := row.Number(c.column)
			other, okOther := rows[j].Number(c.column)
			switch {
			case !ok || !okOther:
			case c.difference:
				rows[i] = append(rows[i], table.Measure(c.name, own-other))
			case other > 0:
				rows[i] = append(rows[i], table.Measure(c.name, own/other))
			}
		}
	}
}

// addBest adds to the rows of a system that chooses what it is, end to end, against the best of the
// others at the same site and point.
func addBest(rows []table.Row, chooser string) {
	const column = "end_to_end_mean_ms"
	for i, row := range rows {
		own, ok := row.Number(column)
		if !ok || row.Value("system") != chooser {
			continue
		}
		best := math.Inf(1)
		for _, other := range rows {
			if mean, ok := other.Number(column); ok && mean > 0 && other.Value("system") != chooser && samePoint(row, other) {
				best = min(best, mean)
			}
		}
		if !math.IsInf(best, 1) {
			rows[i] = append(rows[i], table.Measure("end_to_end_ratio_to_best", own/best))
		}
	}
}

// samePoint reports whether two rows have the same site and parameters. A system whose copies are
// everywhere is at the point of any placement.
func samePoint(a, b table.Row) bool {
	for _, r := range []table.Row{a, b} {
		if r.Value("placement") == everywhere {
			return sameLoad(a, b)
		}
	}
	return sameLoad(a, b) && same(a, b, "placement")
}

func sameLoad(a, b table.Row) bool {
	return same(a, b, "site", "workload", "ops", "read_percent", "alpha", "clients", "mode", "wan", "class",
		"locality_percent")
}

// same reports whether two rows are alike in some columns.
func same(a, b table.Row, names ...string) bool {
	for _, name := range names {
		if a.Value(name) != b.Value(name) {
			return false
		}
	}
	return true
}

// addGrowth adds to each row by how many per cent its mean attempt is longer than that of the same
// system's first row for the same site.
func addGrowth(rows []table.Row) {
	for i, row := range rows {
		first := slices.IndexFunc(rows, func(r table.Row) bool {
			return r.Value("system") == row.Value("system") && r.Value("site") == row.Value("site")
		})
		own, ok := row.Number("attempt_mean_ms")
		base, okBase := rows[first].Number("attempt_mean_ms")
		if ok && okBase && base > 0 {
			rows[i] = append(rows[i], table.Measure("attempt_growth_percent", 100*(own/base-1)))
		}
	}
}

// distributionRows returns rows with quantiles of attempts, for a figure of the distribution.
func distributionRows(m outcome) []table.Row {
	var committed []time.Duration
	for _, t := range m.played.Txns {
		for _, a := range t.Attempts {
			if a.Committed {
				committed = append(committed, a.Took)
			}
		}
	}
	slices.Sort(committed)
	var rows []table.Row
	for p := 2; p <= 100 && len(committed) > 0; p += 2 {
		row := slices.Concat(table.Row{table.Is("system", m.system)}, m.placeCells(),
			table.Row{table.Is("site", table.OfAll)}, table.Row(m.params))
		rows = append(rows, append(row, table.Is("percentile", p),
			table.Measure("attempt_ms", table.Ms(table.Quantile(committed, float64(p)/100)))))
	}
	return rows
}
