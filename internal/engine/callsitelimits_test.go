package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// chainOf reads four keys, each after the other and predicted rightly.
func chainOf(t *testing.T, w *world, site *control.CallSite) func(ctx context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		for i := range 4 {
			if _, err := perform(Predicting(ctx, 0), w.op(t, site, "get k%d", i)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
}

// TestCallSiteLimits: at a site's limit calls wait, in time as without predictions.
func TestCallSiteLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		limits control.CallSiteLimits
		took   time.Duration
		spec   int // calls that ran for a speculative caller, -1 for any number
	}{
		"none": {took: 10 * ms, spec: 3},
		// The third is sent at once, but waits for its result; the fourth then has
		// a prediction again.
		"pending": {limits: control.CallSiteLimits{Pending: 2}, took: 20 * ms, spec: -1},
		// The fourth is not even sent before the others are answered.
		"depth": {limits: control.CallSiteLimits{Depth: 2}, took: 20 * ms, spec: 2},
		// Nor is the third; the fourth is made when it is answered.
		"depth of one":  {limits: control.CallSiteLimits{Depth: 1}, took: 30 * ms, spec: 1},
		"enough of all": {limits: control.CallSiteLimits{Depth: 4, Pending: 4, Width: 1}, took: 10 * ms, spec: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(10 * ms)
				site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone, Limits: tt.limits})
				start := time.Now()
				if _, err := Do(t.Context(), chainOf(t, w, site)); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != tt.took || tt.spec >= 0 && len(w.spec) != tt.spec {
					t.Errorf("took %v, want %v; %d calls for a speculative caller, want %d: %q", took, tt.took, len(w.spec), tt.spec,
						w.spec)
				}
				if n := site.Stats().Open; n != 0 {
					t.Errorf("%d predictions pending in the end", n)
				}
			})
		})
	}
}

// TestPendingOfSeveralTasks: the limit is one for all tasks, and calls that come
// to nothing do not count for ever.
func TestPendingOfSeveralTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(10 * ms)
		site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone,
			Limits: control.CallSiteLimits{Pending: 1}})
		other := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Other", Effect: control.EffectNone})
		wrong := func(ctx context.Context) (int, error) {
			// Both are discarded; the second call is abandoned.
			if _, err := perform(Predicting(ctx, 7), w.op(t, other, "get other")); err != nil {
				return 0, err
			}
			time.Sleep(5 * ms)
			v, err := perform(Predicting(ctx, 0), w.op(t, site, "get k%d", time.Now().UnixNano()))
			return v, err
		}
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				if _, err := Do(t.Context(), wrong); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if s := site.Stats(); s.Predicted == 0 || s.Predicted >= s.Calls {
			t.Errorf("stats %+v; want some calls predicted and some not", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
		defer cancel()
		if _, err := Do(ctx, chainOf(t, w, site)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the deadline", err)
		}
		time.Sleep(time.Second)
		if n := site.Stats().Open; n != 0 {
			t.Errorf("%d predictions pending in the end", n)
		}
	})
}

// TestCallSiteWidth: of several predictions as many are followed as the site allows.
func TestCallSiteWidth(t *testing.T) {
	for width, want := range map[int]struct {
		runs        int
		predictions int
	}{0: {4, 3}, 2: {3, 2}, 1: {2, 1}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(10 * ms)
			site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone,
				Limits: control.CallSiteLimits{Width: width}})
			var rep *report.Report
			got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				op := w.op(t, site, "get k")
				op.Transport = predictingCall{&worldCall{w, "get k"}}
				return perform(Predicting(ctx, 7, 8), op)
			}, WithReport(func(r *report.Report) { rep = r }))
			if got != 0 || err != nil {
				t.Fatal(got, err)
			}
			if len(rep.Runs) != want.runs || len(rep.Calls[0].Predicted) != want.predictions {
				t.Errorf("width %d: %d runs, predictions %v; want %+v", width, len(rep.Runs), rep.Calls[0].Predicted, want)
			}
		})
	}
}

// predictingCall has the server predict 9.
type predictingCall struct{ *worldCall }

func (c predictingCall) Start(ctx context.Context, a *Attempt) {
	a.Predict(9)
	c.worldCall.Start(ctx, a)
}

// TestCallSiteMinSaving: a site's own value takes the place of the task's.
func TestCallSiteMinSaving(t *testing.T) {
	for _, tt := range []struct {
		site, task time.Duration
		spec       int
	}{{0, 0, 3}, {50 * ms, 0, 0}, {-1, 50 * ms, 3}, {0, 50 * ms, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(10 * ms)
			site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone,
				Limits: control.CallSiteLimits{MinSaving: tt.site}})
			if _, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				return perform(ctx, w.op(t, site, "get k"))
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := Do(t.Context(), chainOf(t, w, site), WithLimits(control.Limits{MinSaving: tt.task})); err != nil {
				t.Fatal(err)
			}
			if len(w.spec) != tt.spec {
				t.Errorf("%+v: %d calls for a speculative caller: %q", tt, len(w.spec), w.spec)
			}
		})
	}
}

func TestCallSiteLimitsAreChecked(t *testing.T) {
	for name, limits := range map[string]control.CallSiteLimits{"Pending": {Pending: -1}, "Depth": {Depth: -1},
		"Width": {Width: -2}} {
		_, err := control.NewCallSite(control.CallSiteConfig{Name: "/kv/Get", Limits: limits})
		if err == nil || !strings.Contains(err.Error(), "site /kv/Get: field Limits."+name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestStatsOfDoomedRuns: what was asked on a wrong guess, and answered before
// that showed, tells nothing about how good a site's predictions are.
func TestStatsOfDoomedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := mustCallSite(t, control.CallSiteConfig{Name: "/s/first", Effect: control.EffectNone})
		then := mustCallSite(t, control.CallSiteConfig{Name: "/s/then", Effect: control.EffectNone})
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, err := Perform(Predicting(ctx, 9), read(first, "a", 20*ms, val(1)))
			if err != nil {
				return 0, err
			}
			u, err := Perform(Predicting(ctx, 5), read(then, "of "+string(rune('0'+v.(int))), 5*ms, val(5+v.(int)/9)))
			if err != nil {
				return 0, err
			}
			return v.(int) + u.(int), nil
		})
		if err != nil || got != 6 {
			t.Fatal(got, err)
		}
		if st := first.Stats(); st.Right != 0 || st.Wrong != 1 {
			t.Errorf("the site of the wrong guess: %+v", st)
		}
		if st := then.Stats(); st.Calls != 2 || st.Right != 1 || st.Wrong != 0 {
			t.Errorf("the site of the call that was made twice, once on the wrong guess: %+v", st)
		}
	})
}
