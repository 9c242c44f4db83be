package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/control"
)

// tallied counts the calls that are really sent.
type tallied struct {
	fakeTransport
	sent *atomic.Int64
}

func (c *tallied) Start(ctx context.Context, a *Attempt) {
	c.sent.Add(1)
	c.fakeTransport.Start(ctx, a)
}

// shop is a program of three calls, the last with a side effect, over a site whose predictions are
// right or wrong.
type shop struct {
	user, price, buy *control.CallSite
	sent             map[string]*atomic.Int64
}

func newShop(t *testing.T, c *control.Control, mode control.Mode, share float64, guess any) *shop {
	site := func(cfg control.CallSiteConfig) *control.CallSite {
		s, err := c.NewCallSite(cfg, "here")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return &shop{
		user: site(control.CallSiteConfig{Name: "/s/user", Mode: mode, Share: share, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{guess}}}),
		price: site(control.CallSiteConfig{Name: "/s/price", Mode: control.ModeObserve, Effect: control.EffectNone}),
		buy:   site(control.CallSiteConfig{Name: "/s/buy", Effect: control.EffectImmediate}),
		sent: map[string]*atomic.Int64{"user": {}, "price": {}, "buy": {}, "act": {}, "memo": {}, "commit": {},
			"barrier": {}},
	}
}

type constant struct{ v any }

func (c constant) Predict(context.Context, any) []any { return []any{c.v} }
func (constant) Learn(context.Context, any, any)      {}

func (s *shop) call(ctx context.Context, site *control.CallSite, id string, delay time.Duration, v any) (any, error) {
	return Perform(ctx, &Operation{CallSite: site, Identity: id, CanSpeculate: true, Transport: &tallied{
		fakeTransport{delay, func() (any, error) { return v, nil }}, s.sent[site.Config().Name[3:]],
	}})
}

func (s *shop) order(ctx context.Context) (string, error) {
	if _, err := Memo(ctx, "m", func(context.Context) (int, error) { s.sent["memo"].Add(1); return 1, nil }); err != nil {
		return "", err
	}
	if _, err := Act(ctx, "a", func(context.Context) (int, error) { s.sent["act"].Add(1); return 1, nil }); err != nil {
		return "", err
	}
	u, err := s.call(ctx, s.user, "u", 10*ms, "ann")
	if err != nil {
		return "", err
	}
	p, err := s.call(ctx, s.price, u.(string), 10*ms, u.(string)+" 5")
	if err != nil {
		return "", err
	}
	OnCommit(ctx, func() { s.sent["commit"].Add(1) })
	if _, err := s.call(ctx, s.buy, p.(string), 10*ms, nil); err != nil {
		return "", err
	}
	if err := Barrier(ctx); err != nil {
		return "", err
	}
	s.sent["barrier"].Add(1)
	return p.(string), nil
}

// A shadow starts the work that follows a prediction, and none of it counts: the
// task takes as long as without, its effects happen once, and what is counted is
// what was sent in vain.
func TestShadow(t *testing.T) {
	for name, tt := range map[string]struct {
		mode     control.Mode
		guess    any
		took     time.Duration
		prices   int64
		shadows  int64
		right    int64
		predicts int64
	}{
		"observe":       {control.ModeObserve, "ann", 30 * ms, 1, 0, 1, 0},
		"shadow, right": {control.ModeShadow, "ann", 30 * ms, 2, 1, 1, 0},
		"shadow, wrong": {control.ModeShadow, "bob", 30 * ms, 2, 1, 0, 0},
		"on, right":     {control.ModeOn, "ann", 20 * ms, 1, 0, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := mustControl(t, control.Config{Budget: -1})
				s := newShop(t, c, tt.mode, 1, tt.guess)
				start := time.Now()
				got, err := Do(t.Context(), s.order, WithLimits(control.Limits{MinSaving: -1}))
				if took := time.Since(start); got != "ann 5" || err != nil || took != tt.took {
					t.Errorf("%v, %v after %v, want it after %v", got, err, took, tt.took)
				}
				synctest.Wait()
				sent := map[string]int64{}
				for k, v := range s.sent {
					sent[k] = v.Load()
				}
				want := map[string]int64{"user": 1, "price": tt.prices, "buy": 1, "act": 1, "memo": 1, "commit": 1, "barrier": 1}
				if diff := cmp.Diff(want, sent); diff != "" {
					t.Error(diff)
				}
				st := s.user.Stats()
				if st.Shadows != tt.shadows || st.WouldBeRight != tt.right || st.Predicted != tt.predicts ||
					st.Wasted != tt.prices-1 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

func mustControl(t testing.TB, cfg control.Config) *control.Control {
	c, err := control.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A shadow sees the errors that the task saw, and dies with it.
func TestShadowEndsWithItsTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, mustControl(t, control.Config{}), control.ModeShadow, 1, "ann")
		broken := errors.New("broken")
		ctx, cancel := context.WithCancel(t.Context())
		var rolledBack atomic.Int64
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			_, err := Perform(ctx, &Operation{CallSite: s.buy, Identity: "first",
				Transport: &fakeTransport{ms, func() (any, error) {
					return nil, broken
				}}})
			if err != broken {
				t.Errorf("got %v", err)
			}
			OnRollback(ctx, func() { rolledBack.Add(1) })
			if _, err := s.call(ctx, s.user, "u", 10*ms, "ann"); err != nil {
				return 0, err
			}
			if !State(ctx).Speculative {
				t.Error("the call is answered")
			}
			return 0, nil
		}, WithName("test"), withCancelAfter(5*ms, cancel))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if n := rolledBack.Load(); n != 1 { // the shadow; the task's own run ends as plain code does
			t.Errorf("rolled back %d times", n)
		}
	})
}

func withCancelAfter(d time.Duration, cancel func()) Option {
	time.AfterFunc(d, cancel)
	return WithLimits(control.Limits{})
}
