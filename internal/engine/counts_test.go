package engine

import (
	"bytes"
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// A task that speculates on nothing makes no call in vain for a guess.
func TestWastedWithoutSpeculation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *control.RequestRecord
		var rep *report.Report
		c := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
			got = r
		}}})
		s := newShop(t, c, control.ModeObserve, 0, "ann")
		ctx, r := c.Begin(t.Context(), "page", "1")
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			f := Go(ctx, func(ctx context.Context) (any, error) {
				return callCase(ctx, s.user, "u", time.Hour, "ann", new(atomic.Int64))
			})
			g := Go(ctx, func(ctx context.Context) (any, error) {
				return callCase(ctx, s.price, "p", 10*ms, "5", new(atomic.Int64))
			})
			_, err := Any(f, g).Wait(ctx)
			return 0, err
		}, WithReport(func(r *report.Report) { rep = r }))
		r.End(err)
		synctest.Wait()
		if len(got.Tasks) != 1 || got.Tasks[0].Wasted != 0 || rep.Wasted != 0 || s.user.Stats().Wasted != 0 {
			t.Errorf("%v: %+v; report says %d; site %+v", err, got.Tasks, rep.Wasted, s.user.Stats())
		}
	})
}

// Calls side by side in two groups, one after the other: what is saved of both counts.
func TestSavedOfGroups(t *testing.T) {
	savedIsWhatPlainCodeTakesLonger(t, func(ctx context.Context, guessed, _ *control.CallSite) error {
		for i := range 2 {
			g := NewGroup(ctx)
			for j := range 2 {
				g.Go(func(ctx context.Context) error {
					_, err := callCase(ctx, guessed, string(rune('a'+2*i+j)), 10*ms, "a", new(atomic.Int64))
					return err
				})
			}
			if err := g.Wait(); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestSavedOfAny: what Any did without does not count, though it runs on while Any's result stands
// on a guess: plain code ends it.
func TestSavedOfAny(t *testing.T) {
	savedIsWhatPlainCodeTakesLonger(t, func(ctx context.Context, guessed, unknown *control.CallSite) error {
		if _, err := callCase(ctx, guessed, "a", 14*ms, "a", new(atomic.Int64)); err != nil {
			return err
		}
		var members []*Future[any]
		for i, d := range []time.Duration{7 * ms, 14 * ms, 14 * ms} {
			members = append(members, Go(ctx, func(ctx context.Context) (any, error) {
				return callCase(ctx, unknown, string(rune('a'+i)), d, "b", new(atomic.Int64))
			}))
		}
		_, err := Any(members...).Wait(ctx)
		return err
	})
}

// savedIsWhatPlainCodeTakesLonger compares what a task is said to have saved with how long it takes
// without speculation. Calls of the guessed site return "a"; those of the other have no predictor.
func savedIsWhatPlainCodeTakesLonger(
	t *testing.T, task func(ctx context.Context, guessed, unknown *control.CallSite) error,
) {
	synctest.Test(t, func(t *testing.T) {
		run := func(mode control.Mode) (took, saved time.Duration) {
			var got *control.RequestRecord
			c := mustControl(t, control.Config{Budget: -1,
				OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) { got = r }}})
			guessed := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: mode, Effect: control.EffectNone,
				Predictors: []control.Predictor{constant{"a"}}})
			unknown := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/b", Mode: mode, Effect: control.EffectNone})
			ctx, r := c.Begin(t.Context(), "page", "1")
			start := time.Now()
			_, err := Do(ctx, func(ctx context.Context) (int, error) { return 0, task(ctx, guessed, unknown) },
				WithLimits(control.Limits{MinSaving: -1}))
			took = time.Since(start)
			r.End(err)
			return took, got.Tasks[0].Saved
		}
		plain, _ := run(control.ModeObserve)
		took, saved := run(control.ModeOn)
		if saved != plain-took || saved == 0 {
			t.Errorf("%v without speculation, %v with; saved %v", plain, took, saved)
		}
	})
}

// What the logger does must not stop the Control.
type statusHandler struct {
	slog.Handler
	c **control.Control
}

func (h statusHandler) Handle(ctx context.Context, r slog.Record) error {
	(*h.c).Status()
	return h.Handler.Handle(ctx, r)
}

func TestLoggerUnderLock(t *testing.T) {
	var c *control.Control
	c = mustControl(t, control.Config{Logger: slog.New(statusHandler{slog.NewTextHandler(new(bytes.Buffer), nil), &c})})
	callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a"})
	done := make(chan struct{})
	go func() { defer close(done); _ = c.SetMode("/s/a", control.ModeOn, 0) }()
	select {
	case <-done:
	case <-time.After(3 * time.Second):
		t.Error("SetMode hangs: the logger is called with the Control's lock held")
	}
}

// A trip by the budget, of a site whose hit rate is fine: does it come to rest?
func TestBudgetFlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		end := time.Now().Add(20 * time.Minute)
		for i := 0; time.Now().Before(end); i++ {
			user := "ann"
			if i%3 == 0 {
				user = "eve"
			}
			if _, err := s.chain(t.Context(), user); err != nil {
				t.Fatal(err)
			}
			time.Sleep(50 * ms)
		}
		st := c.Status().CallSites[0]
		t.Logf("%v trips %d in 20 min; extra load over all %.2f", st.State, st.Stats.Trips,
			float64(st.Stats.Wasted)/float64(s.user.Stats().Calls+s.price.Stats().Calls-st.Stats.Wasted))
		if st.Stats.Trips > 15 {
			t.Errorf("the site was tripped %d times in 20 minutes and never stays away longer", st.Stats.Trips)
		}
	})
}

// Shadow: its context, after the actual answer, whatever the order of things.
func TestShadowStartRace(t *testing.T) {
	var after atomic.Int64
	for range 3000 {
		c := mustControl(t, control.Config{Budget: -1})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if ctx.Err() != nil {
				after.Add(1)
			}
			_, err := Perform(ctx, &Operation{CallSite: a, Identity: "a", CanSpeculate: true, Transport: &instantly{}})
			return 0, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	t.Logf("user code begun in a shadow that had ended: %d", after.Load())
}

type instantly struct{ fakeTransport }

func (f *instantly) Start(_ context.Context, a *Attempt) { go a.Finish("a", nil) }
