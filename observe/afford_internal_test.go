package observe

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/race"
)

// strand is a request of calls one after the other, of several methods, every seventh guess wrong.
func strand(calls, methods int) *control.RequestRecord {
	r := &control.RequestRecord{Name: "GET /page", Start: time.Unix(1e9, 0)}
	at := time.Duration(0)
	for i := range calls {
		took := time.Duration(1+i%5) * time.Millisecond
		r.Calls = append(r.Calls, control.CallRecord{
			CallSite: fmt.Sprintf("/shop.Service/Get%d", i%methods), Effect: control.EffectNone,
			Start: at, End: at + took, Guessed: true, Right: i%7 > 0,
		})
		at += took
	}
	r.Duration = at
	return r
}

// TestLargeRequests: where there are too many methods to weigh, each is weighed time and again, and
// the means are what weighing all of them gives.
func TestLargeRequests(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine computes for ten seconds")
	}
	const calls, methods, times = 40, 10, 1000
	c, err := NewCollector(Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := strand(calls, methods)
	for range times {
		r.Start = r.Start.Add(time.Second)
		c.Record(r)
	}
	k := c.kinds[r.Name]
	if k.total.worked != times {
		t.Fatalf("%d were worked out of %d that came once a second", k.total.worked, times)
	}
	// All at once.
	var w work
	if !w.read(r) {
		t.Fatal("the request is refused")
	}
	for i := range r.Calls {
		w.assign(i, k.methods[r.Calls[i].CallSite])
	}
	for i := range w.used {
		w.used[i].weighed = true
	}
	if err := w.replay(r.Duration); err != nil {
		t.Fatal(err)
	}
	for i := range w.used {
		u := &w.used[i]
		s := &u.method.total
		for _, f := range []struct {
			what      string
			got, want float64
		}{
			{"guesses", s.workedGuessed, float64(u.guessed)}, {"alone", s.alone, milliseconds(u.alone)},
			{"saved", s.saved, milliseconds(u.saved)}, {"gain", s.gain, milliseconds(u.gain)},
			{"cost", s.cost, milliseconds(u.cost)}, {"extra", s.aloneExtra, float64(u.aloneExtra)},
		} {
			// A method that loses is predicted until experience says so, which changes what the
			// others save.
			if got := f.got / times; math.Abs(got-f.want) > 0.06*f.want+0.4 {
				t.Errorf("%s, %s: got %.3f a request, want %.3f", u.method.name, f.what, got, f.want)
			}
		}
	}
}

// TestWorkIsBounded: what a request or a second may cost is the limit, whatever comes.
func TestWorkIsBounded(t *testing.T) {
	c, err := NewCollector(Config{})
	if err != nil {
		t.Fatal(err)
	}
	huge := strand(1000, 10)
	c.Record(huge)
	k := c.kinds[huge.Name]
	if k.total.skipped != 1 || k.debt != 0 || k.total.requests != 1 || k.unworked.count() != 1 {
		t.Errorf("a request that is too large: skipped %d, debt %v", k.total.skipped, k.debt)
	}
	// Ten thousand a second, for two seconds.
	small := strand(5, 5)
	for i := range 20_000 {
		small.Start = huge.Start.Add(time.Minute + time.Duration(i)*100*time.Microsecond)
		c.Record(small)
	}
	var w work
	w.read(small)
	for i := range small.Calls {
		w.assign(i, k.methods[small.Calls[i].CallSite])
	}
	if !(&kind{}).afford(&w, small.Start) {
		t.Fatal("a small request is too large")
	}
	once := &kind{}
	once.afford(&w, small.Start)
	most := (2*workPerSecond+workAtOnce)/once.debt + 1
	if got := float64(k.total.worked); got > most || got < 0.9*most {
		t.Errorf("%v of 20,000 requests were worked out; want at most %.0f, and nearly that", got, most)
	}
}
