package bench

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// bubbles runs functions in bubbles of the test.
func bubbles(t *testing.T) func(func()) {
	return func(f func()) { synctest.Test(t, func(*testing.T) { f() }) }
}

func TestPlainChainTakesExactlyItsWork(t *testing.T) {
	l := chainLoad(scale{mode: Virtual, quick: true})
	st := study{
		top:    topology{servers: 1},
		groups: [][]trial{{{stack: grpcStack(), load: l}}},
	}
	s := newSession("test", st, Virtual, 1, nil)
	if err := s.virtual(t.Context(), bubbles(t)); err != nil {
		t.Fatal(err)
	}
	got := s.tally[0][0]
	if want := clients * l.perCaller; got.count != want {
		t.Fatalf("%d requests were measured, want %d", got.count, want)
	}
	for _, q := range []float64{0, 0.5, 1} {
		if d := got.dist.quantile(q); d != chainCalls*chainWork {
			t.Errorf("quantile %v is %v, want exactly %v", q, d, chainCalls*chainWork)
		}
	}
	if got.total.calls != int64(got.count*chainCalls) {
		t.Errorf("the servers saw %d calls, want %d", got.total.calls, got.count*chainCalls)
	}
}

func TestRoundTripsTakeTheirTime(t *testing.T) {
	st := study{
		top:    topology{servers: 2, rtt: 10 * time.Millisecond, forward: true},
		groups: [][]trial{{{stack: grpcStack(), load: load{callers: 3, calls: 2, perCaller: 4, ask: ask{work: time.Millisecond, hops: 1}}}}},
	}
	s := newSession("test", st, Virtual, 1, nil)
	if err := s.virtual(t.Context(), bubbles(t)); err != nil {
		t.Fatal(err)
	}
	// Each of two calls is passed on once: two round trips, the second a nanosecond longer, and twice the work.
	if got, want := s.tally[0][0].dist.quantile(1), 2*(2*10+2)*time.Millisecond+2; got != want {
		t.Errorf("the slowest request took %v, want %v", got, want)
	}
}

func TestSeedsReproduce(t *testing.T) {
	e, _ := Lookup("chain")
	run := func() string {
		r, err := e.Run(t.Context(), Options{Quick: true, Seed: 7, Bubble: bubbles(t)})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if diff := cmp.Diff(run(), run()); diff != "" {
		t.Errorf("two runs with one seed differ:\n%s", diff)
	}
}
