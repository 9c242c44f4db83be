package calls

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/heap"
	"github.com/google/go-cmp/cmp"
)

// latencies plays one round of plain gRPC in a bubble.
func latencies(t *testing.T, top topology, l load) []time.Duration {
	t.Helper()
	var all []time.Duration
	synctest.Test(t, func(t *testing.T) {
		sys, err := openSystem(grpcStack(), bench.Virtual, top, l.callers)
		defer sys.close()
		if err != nil {
			t.Fatal(err)
		}
		warm := l
		warm.period, warm.perCaller = 0, top.servers // one call to each server at least
		for _, l := range []load{warm, l} {
			byCaller, err := play(t.Context(), sys, l, l.requests(1))
			if err != nil {
				t.Fatal(err)
			}
			all = slices.Concat(byCaller...)
		}
		if got, want := sys.begun(), int64((len(all)+l.callers*warm.perCaller)*l.calls*(1+l.ask.hops)); got != want {
			t.Errorf("the servers saw %d calls, want %d", got, want)
		}
	})
	return all
}

func TestPlainChainTakesExactlyItsWork(t *testing.T) {
	l := chainLoad(bench.Options{Mode: bench.Virtual, Quick: true})
	got := latencies(t, topology{servers: chainServers}, l)
	if want := clients * l.perCaller; len(got) != want {
		t.Errorf("%d requests were measured, want %d", len(got), want)
	}
	for _, d := range got {
		if d != 40*time.Millisecond {
			t.Fatalf("a request took %v, want exactly 40ms", d)
		}
	}
}

func TestRoundTripsTakeTheirTime(t *testing.T) {
	l := load{callers: 3, calls: 2, perCaller: 4, ask: ask{work: time.Millisecond, hops: 1}}
	for _, d := range latencies(t, topology{servers: 2, rtt: 10 * time.Millisecond, forward: true}, l) {
		// Each of two calls is passed on once: twice two round trips and the work of two servers.
		if want := 2 * (2*10 + 2) * time.Millisecond; d != want {
			t.Fatalf("a request took %v, want exactly %v", d, want)
		}
	}
}

// studies are all experiments that are studies.
func studies() []studied {
	return []studied{chain(), chainRTT(), chainLength(), bandwidth(), overhead(), limits(), multilevel()}
}

func TestSeedsReproduce(t *testing.T) {
	for _, e := range studies() {
		if e.Modes[0] == bench.Virtual {
			t.Run(e.Name, func(t *testing.T) { checkReproduces(t, e) })
		}
	}
}

func checkReproduces(t *testing.T, e studied) {
	t.Helper()
	run := func() []table.Row {
		st := e.study(bench.Options{Mode: bench.Virtual, Quick: true})
		// On a new connection the order of the first calls, and so some microseconds, depend on the
		// scheduler.
		st.groups = slices.DeleteFunc(st.groups, func(group []trial) bool { return group[0].cold })
		for _, group := range st.groups {
			for i := range group {
				group[i].load.callers = 3 // is enough, and soon done
			}
		}
		s := newSession(st, bench.Run{Options: bench.Options{Mode: bench.Virtual, Seed: 7}, Experiment: e.Name})
		if err := s.virtual(t.Context(), bubbles(t)); err != nil {
			t.Fatal(err)
		}
		return s.rows()
	}
	// A server that is done with a speculative stream before it has seen the client's half-close,
	// which is under way, resets the stream: some bytes depend on the scheduler. And which of
	// several calls gets its stream first on a new connection moves later ones by a nanosecond.
	almost := cmp.Comparer(func(a, b table.Cell) bool {
		x, ok := a.Value.(float64)
		y, ok2 := b.Value.(float64)
		if a.Name != b.Name || !ok || !ok2 {
			return a == b
		}
		if strings.HasPrefix(a.Name, "bytes_") {
			return math.Abs(x-y) < 0.01*y
		}
		return math.Abs(x-y) <= 1e-6*y
	})
	if diff := cmp.Diff(run(), run(), almost); diff != "" {
		t.Errorf("two runs with one seed differ:\n%s", diff)
	}
}

// TestStudiesDrawTheirFigures: the rows that a study gives have the columns that its figures show.
func TestStudiesDrawTheirFigures(t *testing.T) {
	for _, e := range studies() {
		s := newSession(e.study(bench.Options{Mode: e.Modes[0], Quick: true}),
			bench.Run{Options: bench.Options{Mode: e.Modes[0]}, Experiment: e.Name})
		for g, group := range s.groups {
			for i := range group {
				r := repeated(13 * time.Millisecond)
				r.total.bytes, r.total.cpu = 100, 50*time.Microsecond
				r.rounds[0].cpuUsPerOp = 50
				s.tally[g][i] = r
			}
		}
		pictures, err := e.Draw(&bench.Result{Experiment: e.Name, Mode: e.Modes[0], Rows: s.rows()})
		if err != nil || len(pictures) != len(e.Figures) {
			t.Errorf("%s: %d of %d figures, %v", e.Name, len(pictures), len(e.Figures), err)
		}
	}
}

// bubbles runs functions in bubbles of the test.
func bubbles(t *testing.T) func(func()) {
	return func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
