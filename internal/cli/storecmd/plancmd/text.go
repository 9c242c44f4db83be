package plancmd

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/planning"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// heading says what the question was.
func (r *planned) heading() string {
	q := r.question
	keys := "keys read one after the other"
	if q.setting.Load.Declared {
		keys = "keys declared"
	}
	return fmt.Sprintf("%s, %s, %s with %s each, transactions %s, %s", q.network,
		command.Counted(len(q.setting.Clients), "client"), command.Counted(len(q.setting.Placement), "partition"),
		command.Counted(len(q.setting.Placement[0]), "replica"), q.txns, keys)
}

// WriteText writes tables.
func (r *planned) WriteText(w io.Writer, perClient bool) {
	fmt.Fprintf(w, "%s; ms\n", r.heading())
	r.latencies().Write(w)
	fmt.Fprintln(w, "\nwhile one site is lost, the one whose loss does most")
	r.losses().Write(w)
	r.writePlacements(w)
	if perClient {
		fmt.Fprintln(w, "\np50 by client")
		r.clients().Write(w)
	}
	if t := r.checks(); len(t.Rows) > 1 {
		fmt.Fprintln(w, "\nmeans of transactions measured in the simulator, one at a time; off: the client and class\n"+
			"furthest from the model")
		t.Write(w)
	}
}

// latencies is the table of all systems.
func (r *planned) latencies() *planning.Table {
	t := &planning.Table{Left: 2, Rows: [][]string{{"", "promises", "mean", "p50", "p95", "worst", "ro p50", "lrt p50",
		"rpt p50", "of floor"}}}
	floor := r.systems[0].row(plan.All).Mean
	for _, s := range r.systems {
		all := s.row(plan.All)
		level := s.system.Level()
		if s.system == plan.Floor {
			level = ""
		}
		row := []string{string(s.system), level, planning.Millis(all.Mean), planning.Millis(all.Median),
			planning.Millis(all.P95), planning.Millis(all.Worst)}
		for _, class := range plan.Classes()[1:] {
			row = append(row, cell(s.row(class)))
		}
		t.Rows = append(t.Rows, append(row, ratio(all.Mean, floor)))
	}
	return t
}

// cell writes the median, if there are such transactions.
func cell(r plan.Row) string {
	if r.Share == 0 {
		return "-"
	}
	return planning.Millis(r.Median)
}

func ratio(a, b time.Duration) string {
	if b == 0 {
		return "-"
	}
	return strconv.FormatFloat(float64(a)/float64(b), 'f', 2, 64) + "x"
}

func percent(share float64) string {
	return strconv.FormatFloat(math.Round(share*1000)/10, 'f', -1, 64) + " %"
}

// losses is the table of what a lost site does.
func (r *planned) losses() *planning.Table {
	t := &planning.Table{Left: 1, Rows: [][]string{{"", "others' p50", "never end", "fast path", "with all sites"}}}
	for _, s := range r.systems {
		median, blocked, fast := s.worstLoss()
		row := []string{string(s.system), planning.Millis(median), percent(blocked), "-", "-"}
		if all := s.row(plan.All).Fast; all > 0 {
			row[3], row[4] = percent(fast), percent(all)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// writePlacements tells where the partitions are.
func (r *planned) writePlacements(w io.Writer) {
	fmt.Fprintln(w, "\npartitions, the leader's site first")
	if !r.question.search {
		fmt.Fprintln(w, " ", placed(r.question.setting.Placement))
	}
	for _, s := range r.systems {
		switch {
		case s.system.Whole():
			fmt.Fprintf(w, "  %s: all sites have all, and none leads\n", s.system)
		case r.question.search:
			fmt.Fprintf(w, "  %s: %s\n", s.system, placed(s.setting.Placement))
		}
	}
}

func placed(p [][]wan.Site) string {
	var parts []string
	for _, at := range p {
		parts = append(parts, strings.Join(command.SiteNames(at), " "))
	}
	return strings.Join(parts, "; ")
}

// clients is the table of what each client gets.
func (r *planned) clients() *planning.Table {
	t := &planning.Table{Left: 2, Rows: [][]string{{"", ""}}}
	for _, s := range r.systems {
		t.Rows[0] = append(t.Rows[0], string(s.system))
	}
	for _, c := range r.question.setting.Clients {
		for i, class := range plan.Classes() {
			row := []string{"", string(class)}
			if i == 0 {
				row[0] = string(c.Site)
			}
			for _, s := range r.systems {
				row = append(row, cell(s.rowOf(c.Site, class)))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// checks is the table of what was measured.
func (r *planned) checks() *planning.Table {
	t := &planning.Table{Left: 1, Rows: [][]string{{"", "transactions", "measured", "model", "off"}}}
	for _, s := range r.systems {
		if s.check == nil {
			continue
		}
		n, worst := 0, 0.0
		var measured, modeled time.Duration
		for _, c := range s.check {
			n += c.txns
			measured, modeled = measured+c.measured*time.Duration(c.txns), modeled+c.modeled*time.Duration(c.txns)
			worst = max(worst, c.off())
		}
		t.Rows = append(t.Rows, []string{string(s.system), strconv.Itoa(n), planning.Millis(measured / time.Duration(n)),
			planning.Millis(modeled / time.Duration(n)), percent(worst)})
	}
	return t
}
