package simulated

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bench/table"
)

// TestTuning: where keys are hot the store stays with a degree that is not below those of figure 4,
// and when they are not hot any more it finds a longer chain.
func TestTuning(t *testing.T) {
	run := func(degree string, contentions ...string) []table.Row {
		rows, err := tuning{fraction: 10, clients: 10, degree: degree, contentions: contentions, seed: 1,
			warm: time.Second, lasting: 8 * time.Second}.run()
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	number := func(r table.Row, column string) float64 {
		n, ok := r.Number(column)
		if !ok {
			t.Fatalf("there is no %s in %v", column, r)
		}
		return n
	}
	tuned := run(tunedDegree, "high-high", "low-low")
	for _, r := range tuned {
		if n := number(r, "settled_windows"); n < 3 || n > 20 {
			t.Errorf("contention %v: it has settled in %v windows", r.Value("contention"), n)
		}
	}
	if was, is := number(tuned[0], "chain"), number(tuned[1], "chain"); is <= was {
		t.Errorf("chains of %v where keys are hot, of %v where they are not", was, is)
	}
	rows := append(run(clockSIRep().name, "high-high"), run("8", "high-high")...)
	rows = append(rows, tuned[0])
	besideBest(rows)
	tuned[0] = rows[2]
	if number(tuned[0], "commits_of_best") < 0.95 || number(tuned[0], "commits_of_clocksi-rep") < 0.97 {
		t.Errorf("it commits less than settings that stay:\n%v", rows)
	}
}

// TestBesideBest: a tuned row is beside the settings of its own load.
func TestBesideBest(t *testing.T) {
	row := func(sl, contention string, commits float64, system string) table.Row {
		return table.Row{table.Is("system", system), table.Is("sl", sl), table.Is("contention", contention),
			table.Is("clients", 10), table.Is("cpu", "paper"), table.Measure("commits_per_s", commits)}
	}
	rows := []table.Row{row(tunedDegree, "a", 90, "str-external"), row("8", "a", 100, "str-external"),
		row("8", "b", 1000, "str-external"), row("none", "a", 60, clockSIRep().name)}
	besideBest(rows)
	best, _ := rows[0].Number("commits_of_best")
	base, _ := rows[0].Number("commits_of_clocksi-rep")
	if best != 0.9 || base != 1.5 || len(rows[1]) != 6 {
		t.Errorf("it is %v of the best and %v of clocksi-rep: %v", best, base, rows)
	}
}
