package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// What a shadow sends of staged calls: the guide says, calls without side effects only.
func TestShadowStaged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		w := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/w", Effect: control.EffectStaged})
		var na, nw atomic.Int64
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := callCase(ctx, a, "a", 100*ms, "a", &na); err != nil {
				return 0, err
			}
			_, err := callCase(ctx, w, "w", 5*ms, "w", &nw)
			return 0, err
		}, WithLimits(control.Limits{MinSaving: -1}))
		synctest.Wait()
		if err != nil || nw.Load() != 1 {
			t.Errorf("a staged call was sent %d times, %v", nw.Load(), err)
		}
	})
}

// The prediction of a site in ModeObserve is not used by another site's shadow.
func TestShadowUsesObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		o := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/o", Mode: control.ModeObserve,
			Effect:     control.EffectImmediate,
			Predictors: []control.Predictor{constant{"o"}}})
		d := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/d", Effect: control.EffectNone})
		var na, no, nd atomic.Int64
		time.AfterFunc(40*ms, func() {
			if nd.Load() != 0 {
				t.Error("d was sent on a prediction of a site that only observes")
			}
		})
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				_, err := callCase(ctx, a, "a", 100*ms, "a", &na)
				return err
			})
			g.Go(func(ctx context.Context) error {
				v, err := callCase(ctx, o, "o", 50*ms, "o", &no)
				if err != nil {
					return err
				}
				_, err = callCase(ctx, d, v.(string), 5*ms, "d", &nd)
				return err
			})
			return 0, g.Wait()
		}, WithLimits(control.Limits{MinSaving: -1}))
		synctest.Wait()
		if err != nil || no.Load() != 1 || na.Load() != 1 || o.Stats().Predicted != 0 {
			t.Errorf("%v: a %d o %d d %d; a %+v o %+v", err, na.Load(), no.Load(), nd.Load(), a.Stats(), o.Stats())
		}
	})
}

// A shadow uses up the tries of a site that probes.
func TestShadowTakesProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Retry: time.Second})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		b := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/b", Mode: control.ModeOn, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{"b"}}})
		for range 2 * enough { // it trips: what is said of its guesses is what a call would say
			b.Engine().Counts().Sent.Add(1)
			b.Engine().Counts().Wrong.Add(1)
			b.Engine().Counts().WastedNanos.Add(int64(ms))
		}
		time.Sleep(2 * judgeEvery)
		if st := c.Status().CallSites[1]; st.State != control.StateTripped {
			t.Fatalf("%v, want a site that tripped", st.State)
		}
		time.Sleep(time.Until(c.Status().CallSites[1].Until))
		var n atomic.Int64
		for range 30 {
			_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				if _, err := callCase(ctx, a, "a", 100*ms, "a", &n); err != nil {
					return 0, err
				}
				_, err := callCase(ctx, b, "b", 5*ms, "b", &n)
				time.Sleep(ms) // else a guess saves nothing
				return 0, err
			}, WithLimits(control.Limits{MinSaving: -1}))
			if err != nil {
				t.Fatal(err)
			}
		}
		state := c.Status().CallSites[1].State
		t.Logf("%v judged %+v", state, b.Stats())
		if b.Stats().Right < enough || state != control.StateActive {
			t.Errorf("of %d tries %d were used; state %v", enough, b.Stats().Right, state)
		}
	})
}

// Reconfigure of a site without a Control, concurrently.
func TestReconfigureRace(t *testing.T) {
	s, err := control.NewCallSite(control.CallSiteConfig{Name: "/s/a"})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { _ = s.Reconfigure(control.ModeOn, 0) })
	}
	wg.Wait()
}

// A shadow dies with its task, however that ends.
func TestShadowEnds(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context){
		"panic":  func(context.Context) { panic("x") },
		"return": func(context.Context) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mustControl(t, control.Config{Budget: -1})
				a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
					Effect:     control.EffectNone,
					Predictors: []control.Predictor{constant{"a"}}})
				var n atomic.Int64
				defer func() { _ = recover() }()
				_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					if State(ctx).Speculative {
						_, err := callCase(ctx, a, "a", 100*ms, "a", &n)
						if err != nil {
							return 0, err
						}
						panic("in the shadow")
					}
					sub, cancel := context.WithTimeout(ctx, 10*ms)
					defer cancel()
					_, err := callCase(sub, a, "a", 100*ms, "a", &n)
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					end(ctx)
					return 0, nil
				})
				t.Log(err, n.Load(), a.Stats())
			})
		})
	}
}
