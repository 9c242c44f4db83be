package bench_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
)

// TestSeeds: an experiment is measured with each seed, and its rows are means.
func TestSeeds(t *testing.T) {
	e := bench.Experiment{
		Name: "sample", Modes: []bench.Mode{bench.Real}, Intervals: []string{"mean_ms"},
		Measure: func(_ context.Context, r bench.Run) ([]table.Row, error) {
			r.Step(0, 1, "all")
			return []table.Row{{table.Is("mean_ms", float64(r.Seed))}}, nil
		},
	}
	var steps []bench.Progress
	r, err := e.Run(t.Context(), bench.Options{Seed: 3, Seeds: 2, Progress: func(p bench.Progress) {
		steps = append(steps, p)
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []table.Row{{table.Is("mean_ms", 3.5), table.Is("mean_ms_ci95", 6.353), table.Is("seeds", 2)}}
	if diff := cmp.Diff(want, r.Rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	told := []bench.Progress{{Experiment: "sample", Total: 2, Doing: "all seed=3"},
		{Experiment: "sample", Done: 1, Total: 2, Doing: "all seed=4"}}
	if diff := cmp.Diff(told, steps); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if _, err := e.Run(t.Context(), bench.Options{Seeds: table.MaxRepeats + 1}); err == nil {
		t.Error("any number of seeds is taken")
	}
	if e.Intervals = nil; e.CheckSeeds(2) == nil {
		t.Error("an experiment without intervals is repeated")
	}
}

// TestPointsAtOnce: rows come in the order of the points, whichever ends first, and an error names
// its point.
func TestPointsAtOnce(t *testing.T) {
	second := make(chan struct{})
	points := []bench.Point{
		{Doing: "first", Run: func(context.Context) ([]table.Row, error) {
			if runtime.GOMAXPROCS(0) > 1 {
				<-second
			}
			return []table.Row{{table.Is("n", 1)}}, nil
		}},
		{Doing: "second", Run: func(context.Context) ([]table.Row, error) {
			close(second)
			return []table.Row{{table.Is("n", 2)}, {table.Is("n", 3)}}, nil
		}},
	}
	measure := bench.PointsAtOnce(func(bench.Options) []bench.Point { return points })
	rows, err := measure(t.Context(), bench.Run{})
	want := []table.Row{{table.Is("n", 1)}, {table.Is("n", 2)}, {table.Is("n", 3)}}
	if err != nil || !cmp.Equal(rows, want) {
		t.Errorf("rows %v, error %v", rows, err)
	}
	points = []bench.Point{{Doing: "third", Run: func(context.Context) ([]table.Row, error) { return nil, bench.ErrMode }}}
	if _, err = measure(t.Context(), bench.Run{}); !errors.Is(err, bench.ErrMode) || err.Error() != "third: no such mode" {
		t.Errorf("the error is %v", err)
	}
}
