package geostore

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// floorClass is a class of transactions: so many reads, one after the other, the last of which may
// be followed by a write of its key; or one write that follows no read.
type floorClass struct {
	name   string
	reads  int
	update bool
}

func floorClasses() []floorClass {
	return []floorClass{{"write", 0, false}, {"read-1", 1, false}, {"read-4", 4, false}, {"update-1", 1, true},
		{"update-4", 4, true}, {"update-10", 10, true}}
}

// floorWorkload makes transactions of a class.
type floorWorkload struct {
	class floorClass
	keys  workload.YCSBT // all reads, or the one write
}

// Next implements workload.Workload.
func (w floorWorkload) Next(r *rand.Rand) workload.Txn {
	t := w.keys.Next(r)
	t.Name = w.class.name
	if w.class.update {
		t.Ops[len(t.Ops)-1].Write = true
	}
	return t
}

// floorPoint has one client at each site, which makes transactions of all classes in random order.
// All keys are as popular as each other: hardly ever do two transactions meet. Auto gets time to
// try both of its modes before anything is measured, but for a quick run on the wall clock, which
// shows it trying.
func floorPoint(o bench.Options) ([]studyPoint, error) {
	keys, err := workload.Zipfian(keyCount(o), 0)
	if err != nil {
		return nil, err
	}
	var mix workload.Mix
	for _, c := range floorClasses() {
		y := workload.YCSBT{Keys: keys, Ops: max(c.reads, 1)}
		if c.reads > 0 {
			y.ReadPercent = 100
		}
		if y, err = workload.NewYCSBT(y); err != nil {
			return nil, err
		}
		mix = append(mix, workload.Part{Workload: floorWorkload{c, y}, Weight: 1})
	}
	p := studyPoint{workload: mix, clients: 1, txns: bench.Pick(o, 360, 3600),
		lasting: bench.Pick(o, 6*time.Second, 90*time.Second), warm: 20 * time.Second}
	if o.Mode == bench.Real && o.Quick {
		p.warm = warmUpTime
	}
	return []studyPoint{p}, nil
}

func floorsExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "rc-floor",
		Summary: "geo-replicated transactions that nobody contends with, against the round trip to the nearest other " +
			"site; virtual: a disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Bubbles: true,
		Measure: latencyStudy{rows: floorRows, points: floorPoint}.run,
		Figures: []figure.Spec{
			{
				Title: "Transactions without contention, against one round trip", Y: "ratio_to_floor",
				YLabel: "times the round trip to the nearest other site",
				Across: []string{"class"}, Ratio: true, Series: []string{"system"}, Where: table.Is("site", "all"),
			},
		},
	}
}

// floorRows returns a row for each class and site, those of all sites together first. Transactions
// count with all their attempts.
func floorRows(m outcome) []table.Row {
	var rows []table.Row
	for _, site := range append([]wan.Site{"all"}, m.matrix.Sites()...) {
		for _, class := range floorClasses() {
			rows = append(rows, m.floorRow(site, class.name, slices.DeleteFunc(slices.Clone(m.played.Txns), func(t Txn) bool {
				return t.Class != class.name || site != "all" && t.Site != site
			})))
		}
	}
	return rows
}

func (m outcome) floorRow(site wan.Site, class string, txns []Txn) table.Row {
	row := slices.Concat(table.Row{table.Is("system", m.system), table.Is("site", string(site)), table.Is("class", class)},
		table.Row(m.params))
	row = append(row, table.Is("txns", len(txns)))
	if len(txns) == 0 {
		return row
	}
	var took []time.Duration
	var floor time.Duration
	for _, t := range txns {
		took = append(took, t.Took)
		floor += floorOf(m.matrix, t.Site)
	}
	floor /= time.Duration(len(txns))
	slices.Sort(took)
	return append(row,
		table.Measure("mean_ms", table.Ms(table.Mean(took))),
		table.Measure("p50_ms", table.Ms(table.Quantile(took, 0.5))),
		table.Measure("p95_ms", table.Ms(table.Quantile(took, 0.95))),
		table.Measure("floor_ms", table.Ms(floor)),
		table.Measure("ratio_to_floor", float64(table.Mean(took))/float64(floor)))
}
