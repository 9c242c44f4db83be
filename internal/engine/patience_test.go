package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/processors"
	"github.com/foresay/foresay/report"
)

// TestMinSaving: on a fast network nothing is sent for a caller whose guess is
// about to be settled; where that takes longer than usual, or long, it is.
func TestMinSaving(t *testing.T) {
	for _, tt := range []struct {
		delay    time.Duration
		limits   control.Limits
		queued   time.Duration // what calls took for a while, after some that were fast
		busy     int           // how often the processors are found busy
		slowDown time.Duration
		waits    time.Duration // what goroutines have waited for a processor
		want     int           // calls that ran for a speculative caller
		took     time.Duration
	}{
		{delay: 100 * time.Microsecond, want: 0, took: 300 * time.Microsecond},
		{delay: 100 * time.Microsecond, limits: control.Limits{MinSaving: -1}, want: 2, took: 100 * time.Microsecond},
		{delay: 10 * ms, want: 2, took: 10 * ms},
		{delay: 100 * time.Microsecond, slowDown: 10 * ms, want: 2, took: 10*ms + 500*time.Microsecond},
		{delay: 100 * time.Microsecond, queued: 3 * ms, slowDown: 300 * time.Microsecond, want: 0,
			took: 900 * time.Microsecond},
		{delay: 100 * time.Microsecond, busy: 2 * 2, slowDown: 10 * ms, want: 2, took: 10*ms +
			(500+1000+2000)*time.Microsecond},
		{delay: 3 * ms, waits: 300 * time.Microsecond, want: 2, took: 3 * ms},
		{delay: 3 * ms, waits: 400 * time.Microsecond, busy: 1000, want: 0, took: 9 * ms},
	} {
		t.Run(fmt.Sprint(tt.delay, tt.limits.MinSaving, tt.queued, tt.busy, tt.slowDown, tt.waits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(tt.delay), testCallSites(t)
				chain := func(ctx context.Context) (int, error) {
					for i := range 3 {
						if _, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get k%d", i)); err != nil {
							return 0, err
						}
					}
					return 0, nil
				}
				learn := func(calls int) { // the site learns how long its calls take
					for range calls {
						if _, err := Do(t.Context(), func(ctx context.Context) (int, error) {
							return perform(ctx, w.op(t, s.get, "get k"))
						}); err != nil {
							t.Fatal(err)
						}
					}
				}
				learn(20)
				if tt.queued > 0 {
					w.delay = tt.queued
					learn(200)
				}
				if tt.slowDown > 0 {
					w.delay = tt.slowDown
				}
				if q := s.get.Engine().Quickest().Queue(); tt.waits > 0 {
					q.Due()
					q.Waited(tt.waits)
				}
				var looked atomic.Int32
				ctx := processors.Pretend(t.Context(), func() (wait time.Duration) {
					if int(looked.Add(1)) <= tt.busy {
						wait = ms
					}
					return wait
				})
				start := time.Now()
				var told *report.Report
				before := s.get.Stats().Abandoned
				if _, err := Do(ctx, chain, WithLimits(tt.limits), WithReport(func(r *report.Report) { told = r })); err != nil {
					t.Fatal(err)
				}
				if n := sentSpeculatively(told); n != tt.want {
					t.Errorf("the report tells of %d calls for a speculative caller, want %d: %+v", n, tt.want, told.Calls)
				}
				if n := s.get.Stats().Abandoned - before; n != 0 {
					t.Errorf("%d calls were made in vain", n)
				}
				if took := time.Since(start); len(w.spec) != tt.want || took != tt.took {
					t.Errorf("%d calls for a speculative caller, want %d; took %v, want %v", len(w.spec), tt.want, took, tt.took)
				}
			})
		})
	}
}

// sentSpeculatively counts the attempts for speculative callers.
func sentSpeculatively(r *report.Report) int {
	n := 0
	for _, c := range r.Calls {
		for _, s := range c.Sent {
			if s.Speculative {
				n++
			}
		}
	}
	return n
}

// TestPatienceOnAWrongGuess: what was not sent, since its guess turned out wrong
// first, was not made in vain, and the report says why it was held.
func TestPatienceOnAWrongGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(100*time.Microsecond), testCallSites(t)
		once := func(ctx context.Context) (int, error) { return perform(ctx, w.op(t, s.get, "get k")) }
		if _, err := Do(t.Context(), once); err != nil {
			t.Fatal(err)
		}
		var told *report.Report
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, err := perform(Predicting(ctx, 7), w.op(t, s.get, "get a"))
			if err != nil {
				return 0, err
			}
			return perform(Predicting(ctx, 0), w.op(t, s.get, "get k%d", v))
		}, WithReport(func(r *report.Report) { told = r }))
		if err != nil {
			t.Fatal(err)
		}
		if st := s.get.Stats(); st.Abandoned != 0 {
			t.Errorf("%d calls were made in vain", st.Abandoned)
		}
		c := told.Calls[1]
		if len(c.Sent) != 0 || len(c.Held) != 1 || c.Held[0].Reason != aboutToSettle || c.Abandoned < 0 {
			t.Errorf("the call on the wrong guess: %+v", c)
		}
	})
}

// TestPatienceWithFutures: what is made for a guess at a future waits from when
// the future's own call was really made, and not from when it was asked for.
func TestPatienceWithFutures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const delay = 300 * time.Microsecond
		w, s := newWorld(delay), testCallSites(t)
		get := func(ctx context.Context, v int) (int, error) {
			return perform(Predicting(ctx, 0), w.op(t, s.get, "get k%d", v))
		}
		if _, err := Do(t.Context(), func(ctx context.Context) (int, error) { return get(ctx, 0) }); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		f := Go(t.Context(), func(ctx context.Context) (int, error) { return get(ctx, 0) })
		for range 3 {
			f = Then(f, get)
		}
		if v, err := f.Wait(t.Context()); v != 0 || err != nil {
			t.Fatal(v, err)
		}
		if took := time.Since(start); took != 4*delay || len(w.spec) != 0 {
			t.Errorf("took %v, want %v; made for callers on a guess: %v", took, 4*delay, w.spec)
		}
	})
}
