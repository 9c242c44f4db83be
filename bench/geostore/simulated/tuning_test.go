package simulated

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/plant"
)

// TestTuning: where keys are hot, and users many, the store finds out that chains do not pay, and
// commits no less than by settings that stay. Its search takes a processor 20 s, so only make soak
// has it; store/str tests the tuner itself, TestTuneTogether in a simulated store.
func TestTuning(t *testing.T) {
	if os.Getenv(plant.AllVariable) == "" {
		t.Skip("a search takes 20 s of a processor: make soak has it (" + plant.AllVariable + "=all)")
	}
	run := func(degree string) []table.Row {
		rows, err := tuning{fraction: 10, clients: 80, degree: degree, contentions: []string{"high-high"}, seed: 1,
			warm: 2500 * time.Millisecond, lasting: 4 * time.Second}.run()
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
	rows := slices.Concat(run(tunedDegree), run(clockSIRep().name), run("8"))
	besideBest(rows)
	if n := number(rows[0], "settled_windows"); n < 3 || n > 20 || number(rows[0], "chain") > 1 {
		t.Errorf("it has settled in %v windows, at chains of %v", n, number(rows[0], "chain"))
	}
	if number(rows[0], "commits_of_best") < 0.95 || number(rows[0], "commits_of_clocksi-rep") < 0.97 {
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
