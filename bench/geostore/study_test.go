package geostore

import (
	"math"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// TestRowsOfTheStore: what attempts and transactions add up to, for all sites and for each.
func TestRowsOfTheStore(t *testing.T) {
	attempt := func(ms int, committed bool, reads, right int) Attempt {
		return Attempt{Took: time.Duration(ms) * time.Millisecond, Committed: committed, Reads: reads, Right: right}
	}
	m := outcome{
		system: "spec", params: []table.Cell{table.Is("ops", 5)}, matrix: wan.SpecRPC(),
		played: Played{
			Lasting: 2 * time.Second, Commits: map[wan.Site]int{"oregon": 3, "ireland": 1},
			Txns: []Txn{
				{Site: "oregon", Took: 900 * time.Millisecond, Attempts: []Attempt{attempt(300, false, 4, 2),
					attempt(244, true, 4, 4)}},
				{Site: "oregon", Took: 266 * time.Millisecond, Attempts: []Attempt{attempt(266, true, 4, 4)}},
				{Site: "ireland", Took: 280 * time.Millisecond, Attempts: []Attempt{attempt(280, true, 8, 8)}},
			},
		},
	}
	rows := latencyRows(m)
	want := []map[string]float64{
		{
			"ops": 5, "txns": 3, "attempt_mean_ms": 790.0 / 3, "attempt_p50_ms": 266, "attempt_p95_ms": 280,
			"end_to_end_mean_ms": 482, "end_to_end_p50_ms": 280,
			"abort_percent": 25, "commits_per_s": 2, "first_answer_right_percent": 90, "floor_ms": 128,
			"ratio_to_floor": 790.0 / 3 / 128,
		},
		{"txns": 2, "attempt_mean_ms": 255, "end_to_end_mean_ms": 583, "abort_percent": 100.0 / 3, "commits_per_s": 1.5,
			"floor_ms": 122},
		{"txns": 1, "attempt_mean_ms": 280, "abort_percent": 0, "commits_per_s": 0.5, "floor_ms": 140, "ratio_to_floor": 2},
		{"txns": 0},
	}
	for i, site := range []string{"all", "oregon", "ireland", "seoul"} {
		if rows[i].Text("site") != site || rows[i].Text("system") != "spec" {
			t.Errorf("row %d is of %s at %s", i, rows[i].Text("system"), rows[i].Text("site"))
		}
		for name, w := range want[i] {
			if got, ok := rows[i].Number(name); !ok || got < w-0.001 || got > w+0.001 {
				t.Errorf("%s: %s is %v, want %v", site, name, rows[i].Value(name), w)
			}
		}
	}
	if v := rows[3].Value("attempt_mean_ms"); v != nil {
		t.Errorf("a site without transactions has a mean of %v", v)
	}
}

func TestComparedRows(t *testing.T) {
	row := func(system, site string, ops int, mean, aborts float64) table.Row {
		return table.Row{table.Is("system", system), table.Is("site", site), table.Is("ops", ops),
			table.Is("attempt_mean_ms", mean), table.Is("abort_percent", aborts)}
	}
	rows := []table.Row{
		row("grpc", "all", 5, 400, 1), row("spec", "all", 5, 200, 1.5), row("grpc", "all", 50, 3000, 60),
		row("spec", "all", 50, 240, 80), row("spec", "seoul", 50, 1, 1),
	}
	addRatios(rows, "grpc", "attempt", "abort")
	addRatios(rows, "spec", "attempt")
	addGrowth(rows)
	var got [][]any
	for _, r := range rows {
		got = append(got, []any{r.Value("attempt_ratio_to_grpc"), r.Value("abort_points_above_grpc"),
			r.Value("abort_points_above_spec"), r.Value("attempt_ratio_to_spec"), r.Value("attempt_growth_percent")})
	}
	want := [][]any{
		{nil, nil, nil, 2.0, 0.0}, {0.5, 0.5, nil, nil, 0.0}, {nil, nil, nil, 12.5, 650.0}, {0.08, 20.0, nil, nil, 20.0},
		{nil, nil, nil, nil, 0.0},
	}
	round := cmp.Transformer("round", func(v float64) int { return int(v*1000 + 0.5) })
	if diff := cmp.Diff(want, got, round); diff != "" {
		t.Errorf("ratio, points and growth (-want +got):\n%s", diff)
	}
}

// TestBestOfTheOthers: what chooses is compared with the best at its site and point, and nothing
// else is.
func TestBestOfTheOthers(t *testing.T) {
	row := func(system, site string, mean float64) table.Row {
		return table.Row{table.Is("system", system), table.Is("site", site), table.Is("alpha", 0.9),
			table.Is("end_to_end_mean_ms", mean)}
	}
	rows := []table.Row{
		row("spec", "all", 250), row("predicated", "all", 200), row("auto", "all", 210), row("spec", "seoul", 100),
		row("auto", "seoul", 150), row("auto", "oregon", 1),
		{table.Is("system", "auto"), table.Is("site", "all"), table.Is("alpha", 0.9), table.Is("txns", 0)},
	}
	addBest(rows, "auto")
	var got []any
	for _, r := range rows {
		got = append(got, r.Value("end_to_end_ratio_to_best"))
	}
	if diff := cmp.Diff([]any{nil, nil, 1.05, nil, 1.5, nil, nil}, got); diff != "" {
		t.Errorf("ratios (-want +got):\n%s", diff)
	}
}

// smallRetwis is a study that is over in a second.
func smallRetwis() latencyStudy {
	return latencyStudy{distribution: true, growth: true, points: func(o bench.Options) ([]studyPoint, error) {
		keys, err := workload.Zipfian(fullKeys, 0.5)
		return []studyPoint{{params: []table.Cell{table.Is("alpha", 0.5)}, workload: workload.Retwis{Keys: keys}, txns: 60,
			clients: 3}}, err
	}}
}

// TestStoreInVirtualTime: all systems play the same transactions, whose latencies are those of the
// model, and two runs give the same.
func TestStoreInVirtualTime(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // see below
	run := func() []table.Row {
		rows, err := smallRetwis().run(t.Context(),
			bench.Run{Options: bench.Options{Mode: bench.Virtual, Quick: true, Seed: 3, Bubble: bubbles(t)},
				Experiment: "small"})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := run()
	var means []float64
	for i := range systemModes() {
		row := rows[4*i] // after it, those of three sites
		mean, _ := row.Number("attempt_mean_ms")
		means = append(means, mean)
		if n, _ := row.Number("txns"); n != 60 {
			t.Errorf("%s: %v transactions were measured, want 60", row.Text("system"), n)
		}
		if ms, _ := row.Number("sync_ms"); ms != 1 {
			t.Errorf("%s: a sync takes %v ms, want 1", row.Text("system"), ms)
		}
	}
	// Without contention one commit follows the reads: about 5 round trips one after the other, or
	// two in all, or one if the commit says whether the reads were right. Auto is that, unless
	// aborts speak against it.
	if predicated, auto := means[3], means[4]; predicated < 122 || predicated > 140+10 || auto < 0.95*predicated ||
		auto > means[2] {
		t.Errorf("mean attempts of %v take %v ms", systemModes(), means)
	}
	if grpc, off, spec := means[0], means[1], means[2]; spec < 2*122 || spec > 2*140+10 || grpc < 550 || grpc > 750 ||
		off < grpc-30 || off > grpc+30 {
		t.Errorf("mean attempts of %v take %v ms", systemModes(), means)
	}
	// What happens at one instant has no order but that in which goroutines happen to run. On one
	// processor runs are equal to the last figure, unless the system interrupts a goroutine; on two
	// none was. Then a vote may find the disk busy in one run and idle in the other.
	alike := cmp.Comparer(func(a, b int) bool { return a-b <= 1 && b-a <= 1 })
	almost := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= max(a, b)/15 })
	// auto goes by what it measures
	fixed := func(rows []table.Row) []table.Row { return rows[:4*slices.Index(systemModes(), client.Auto)] }
	if diff := cmp.Diff(fixed(rows), fixed(run()), alike, almost); diff != "" {
		t.Errorf("two runs with one seed differ:\n%s", diff)
	}
}

// bubbles runs functions in bubbles of the test.
func bubbles(t *testing.T) func(func()) {
	return func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
}
