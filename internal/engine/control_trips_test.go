package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

func callSiteCase(t *testing.T, c *control.Control, cfg control.CallSiteConfig) *control.CallSite {
	s, err := c.NewCallSite(cfg, "here")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func callCase(
	ctx context.Context, s *control.CallSite, id string, d time.Duration, v any, sent *atomic.Int64,
) (any, error) {
	return Perform(ctx, &Operation{CallSite: s, Identity: id, CanSpeculate: true,
		Transport: &tallied{fakeTransport{d, func() (any, error) { return v, nil }}, sent}})
}

// A shadow that guesses wrong itself replays; what the task did before must still
// be answered from the task's record, not sent again.
func TestShadowReplayRepeatsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1})
		x := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/x", Effect: control.EffectNone})
		w := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/w", Effect: control.EffectStaged})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		b := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/b", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"wrong"}}})
		d := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/d", Effect: control.EffectNone})
		var nx, nw, na, nb, nd atomic.Int64
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			_, err := callCase(ctx, x, "x", ms, "x", &nx)
			if err != nil {
				return 0, err
			}
			if _, err := callCase(ctx, w, "w", ms, "w", &nw); err != nil {
				return 0, err
			}
			if _, err := callCase(ctx, a, "a", 100*ms, "a", &na); err != nil {
				return 0, err
			}
			v, err := callCase(ctx, b, "b", 5*ms, "b", &nb)
			if err != nil {
				return 0, err
			}
			_, err = callCase(ctx, d, v.(string), 5*ms, "d", &nd)
			return 0, err
		}, WithLimits(control.Limits{MinSaving: -1}))
		synctest.Wait()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("x %d w %d a %d b %d d %d; a: %+v; b: %+v", nx.Load(), nw.Load(), na.Load(), nb.Load(), nd.Load(), a.Stats(),
			b.Stats())
		if nx.Load() != 1 || nw.Load() != 1 {
			t.Errorf("calls that the task had made already were sent %d and %d times, want once", nx.Load(), nw.Load())
		}
		if wasted := a.Stats().Wasted + b.Stats().Wasted; wasted != nb.Load()+nd.Load()-2 {
			t.Errorf("%d wasted calls are counted, and %d were sent in vain", wasted, nx.Load()+nw.Load()+nb.Load()+nd.Load()-4)
		}
	})
}

// In a shadow a call is wasted once, though it is given up in the shadow already.
func TestShadowWasteCountedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		b := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/b", Mode: control.ModeOn, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{"wrong"}}})
		d := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/d", Effect: control.EffectNone})
		var na, nb, nd atomic.Int64
		stop := errors.New("stop")
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := callCase(ctx, a, "a", 1000*ms, "other", &na); err != nil {
				return 0, err
			}
			if State(ctx).Speculative == false {
				return 0, stop
			}
			v, err := callCase(ctx, b, "b", 5*ms, "b", &nb)
			if err != nil {
				return 0, err
			}
			_, err = callCase(ctx, d, v.(string), 5*ms, "d", &nd)
			return 0, err
		}, WithLimits(control.Limits{MinSaving: -1}))
		synctest.Wait()
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		sent := nb.Load() + nd.Load()
		if wasted := a.Stats().Wasted + b.Stats().Wasted; wasted != sent {
			t.Errorf("%d calls were sent in vain, %d are counted: a %+v, b %+v", sent, wasted, a.Stats(), b.Stats())
		}
	})
}

// blockingCase is carried in Do's own goroutine, as specgrpc's calls are.
type blockingCase struct{ fakeTransport }

func (b *blockingCase) Blocking() {}
func (b *blockingCase) Start(ctx context.Context, a *Attempt) {
	time.Sleep(b.delay)
	v, err := b.answer()
	a.Finish(v, err)
}

// A shadow's rollback hooks must not delay the task beside which it ran.
func TestShadowRollbackDelaysTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := Perform(ctx, &Operation{CallSite: a, Identity: "a", CanSpeculate: true,
				Transport: &blockingCase{fakeTransport{10 * ms, val("a")}}}); err != nil {
				return 0, err
			}
			OnRollback(ctx, func() { time.Sleep(time.Second) })
			return 1, nil
		})
		if took := time.Since(start); took != 10*ms || err != nil {
			t.Errorf("took %v, %v; want 10ms: the shadow's hook ran in the task's way", took, err)
		}
		time.Sleep(5 * time.Second)
	})
}

// A task's Memo must not wait for its shadow, nor take a value of its, and runs once.
func TestShadowMemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, mode := range []control.Mode{control.ModeObserve, control.ModeShadow} {
			c := mustControl(t, control.Config{Budget: -1})
			a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: mode, Share: 1, Effect: control.EffectNone,
				Predictors: []control.Predictor{constant{"a"}}})
			var memos atomic.Int64
			var at time.Duration
			start := time.Now()
			_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				var n atomic.Int64
				if _, err := callCase(ctx, a, "a", 10*ms, "b", &n); err != nil {
					return 0, err
				}
				m, err := Memo(ctx, "now", func(context.Context) (time.Duration, error) {
					memos.Add(1)
					d := time.Since(start)
					if d == 0 { // the wrong guess leads here at once, and takes long
						time.Sleep(time.Second)
					}
					return d, nil
				})
				if err == nil && !State(ctx).Speculative {
					at = m
				}
				return 0, err
			})
			took := time.Since(start)
			t.Logf("%v: took %v, memo says %v, computed %d times, %v", mode, took, at, memos.Load(), err)
			time.Sleep(5 * time.Second)
			if took != 10*ms || at != 10*ms || memos.Load() != 1 {
				t.Errorf("%v: took %v and saw %v, computed %d times; want 10ms, 10ms, once", mode, took, at, memos.Load())
			}
		}
	})
}

// What futures guess is speculation, too: the kill switch stops it.
func TestKillStopsFutures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn, Effect: control.EffectNone})
		c.Kill(true)
		for _, in := range []bool{false, true} {
			var sent atomic.Int64
			body := func(ctx context.Context) (string, error) {
				f := Go(ctx, func(ctx context.Context) (string, error) {
					v, err := callCase(ctx, s, "a", 10*ms, "right", new(atomic.Int64))
					if err != nil {
						return "", err
					}
					return v.(string), nil
				}, Guess("wrong"))
				g := Then(f, func(ctx context.Context, v string) (string, error) {
					w, err := callCase(ctx, s, "b"+v, 10*ms, "x", &sent)
					if err != nil {
						return "", err
					}
					return w.(string), nil
				})
				return g.Wait(ctx)
			}
			var err error
			if in {
				_, err = Do(c.Context(t.Context()), body)
			} else {
				_, err = body(c.Context(t.Context()))
			}
			if err != nil || sent.Load() != 1 {
				t.Errorf("in task %v: killed, and %d calls are sent, %v; want 1", in, sent.Load(), err)
			}
			time.Sleep(time.Second)
		}
	})
}

// FORESAY_KILL is for the process: also for sites that belong to no Control.
func TestKillVariableWithoutControl(t *testing.T) {
	t.Setenv(control.KillVariable, "1")
	_ = os.Getenv(control.KillVariable)
	synctest.Test(t, func(t *testing.T) {
		s, err := control.NewCallSite(control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := callCase(ctx, s, "a", 10*ms, "a", new(atomic.Int64)); err != nil {
				return 0, err
			}
			_, err := callCase(ctx, s, "b", 10*ms, "a", new(atomic.Int64))
			return 0, err
		}, WithLimits(control.Limits{MinSaving: -1}))
		if took := time.Since(start); took != 20*ms || err != nil {
			t.Errorf("took %v, %v", took, err)
		}
	})
}

// What a tripped site still has under way must not trip a site that wastes nothing.
func TestInnocentTripped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		good, bad := newShop(t, c, control.ModeOn, 0, "ann"), newShop(t, c, control.ModeOn, 0, "ann")
		for range 200 { // concurrent requests, all of which guess right at one site, and badly at the other
			go func() { _, _ = good.chain(t.Context(), "ann") }()
			time.Sleep(ms)
			go func() { _, _ = bad.chain(t.Context(), "eve") }()
			time.Sleep(20 * ms)
		}
		for range 50 { // a burst under way when the site is tripped anew
			go func() { _, _ = bad.chain(t.Context(), "eve") }()
		}
		time.Sleep(time.Minute)
		for i, s := range c.Status().CallSites {
			t.Logf("%d %s %v trips %d wasted %d reason %q", i, s.Name, s.State, s.Stats.Trips, s.Stats.Wasted, s.Reason)
			if s.Stats.Trips > 0 && s.Stats.Wasted == 0 {
				t.Errorf("site %d %s wasted nothing and was tripped: %s", i, s.Name, s.Reason)
			}
		}
	})
}

// As above, deterministic: a burst of wrong guesses, all settled at intervals.
func TestInnocentTrippedBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		good, bad := newShop(t, c, control.ModeOn, 0, "ann"), newShop(t, c, control.ModeOn, 0, "ann")
		slow := func(n time.Duration) {
			_, _ = Do(t.Context(), func(ctx context.Context) (any, error) {
				u, err := bad.call(ctx, bad.user, "u", 10*ms+n*10*ms, "eve")
				if err != nil {
					return nil, err
				}
				return bad.call(ctx, bad.price, u.(string), 10*ms, u.(string)+" 5")
			}, WithLimits(control.Limits{MinSaving: -1}))
		}
		for range 60 {
			if _, err := good.chain(t.Context(), "ann"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 60 { // all begin before the first is found wrong; one is found wrong each 10 ms
			go slow(time.Duration(i))
		}
		time.Sleep(5 * time.Second)
		for i, s := range c.Status().CallSites {
			t.Logf("%d %s %v trips %d wasted %d", i, s.Name, s.State, s.Stats.Trips, s.Stats.Wasted)
			if s.Stats.Trips > 0 && s.Stats.Wasted == 0 {
				t.Errorf("site %d %s wasted nothing and was tripped: %s", i, s.Name, s.Reason)
			}
		}
	})
}

// Wasted calls per call that counts, where a wrong guess wastes more than one call.
func TestExtraLoad(t *testing.T) {
	extraLoad(t, 6, func(ctx context.Context, s *shop, u any, sent *atomic.Int64) error {
		g := NewGroup(ctx)
		for i := range 5 {
			g.Go(func(ctx context.Context) error {
				_, err := callCase(ctx, s.price, fmt.Sprint(u, i), 10*ms, "5", sent)
				return err
			})
		}
		return g.Wait()
	})
}

// A call that is held and never sent is no call that counts.
func TestExtraLoadHeld(t *testing.T) {
	extraLoad(t, 3, func(ctx context.Context, s *shop, u any, sent *atomic.Int64) error {
		if _, err := callCase(ctx, s.price, u.(string), 5*ms, "5", sent); err != nil {
			return err
		}
		_, err := callCase(ctx, s.buy, u.(string), 5*ms, "5", sent)
		return err
	})
}

// extraLoad has tasks guess a user wrongly and do the rest on that guess, and compares what the
// Control says with the calls that were sent beyond those that a task needs.
func extraLoad(
	t *testing.T, needs int, rest func(ctx context.Context, s *shop, user any, sent *atomic.Int64) error,
) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1, Window: time.Hour})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		useful, all := 0, new(atomic.Int64)
		for range 30 {
			_, err := Do(t.Context(), func(ctx context.Context) (any, error) {
				u, err := callCase(ctx, s.user, "u", 10*ms, "eve", all)
				if err != nil {
					return nil, err
				}
				return nil, rest(ctx, s, u, all)
			}, WithLimits(control.Limits{MinSaving: -1}))
			if err != nil {
				t.Fatal(err)
			}
			useful += needs
			time.Sleep(time.Second)
		}
		want := float64(int(all.Load())-useful) / float64(useful)
		if got := c.Status().ExtraLoad; got < want*0.95 || got > want*1.05 {
			t.Errorf("extra load %.2f, want %.2f: %d calls were sent and %d count", got, want, all.Load(), useful)
		}
	})
}

// A mode set at run time can be taken back though the connection is closed.
func TestTakeBackAfterClose(t *testing.T) {
	c := mustControl(t, control.Config{})
	s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a"})
	if err := c.SetMode("/s/a", control.ModeOn, 0); err != nil {
		t.Fatal(err)
	}
	c.Remove(s)
	if err := c.SetMode("/s/a", control.ModeDefault, 0); err != nil {
		t.Errorf("cannot be taken back: %v", err)
	}
	if m, _ := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a"}).Mode(); m != control.ModeObserve {
		t.Errorf("the next connection's site is in mode %v", m)
	}
}

// Saved of a task some of whose guesses nobody waited for.
func TestSavedUnawaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *control.RequestRecord
		c := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
			got = r
		}}})
		s := newShop(t, c, control.ModeOn, 0, "ann")
		ctx, r := c.Begin(t.Context(), "page", "1")
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			f := Go(ctx, func(ctx context.Context) (any, error) {
				return callCase(ctx, s.user, "u", time.Hour, "ann", new(atomic.Int64))
			})
			g := Go(ctx, func(ctx context.Context) (any, error) {
				return callCase(ctx, s.price, "p", 10*ms, "5", new(atomic.Int64))
			})
			time.Sleep(5 * ms)
			_ = f
			_, err := g.Wait(ctx)
			return 0, err
		}, WithLimits(control.Limits{MinSaving: -1}))
		r.End(err)
		t.Logf("%+v %v", got.Tasks, err)
		for _, task := range got.Tasks {
			if task.Saved > time.Second || task.Saved < -time.Second {
				t.Errorf("saved %v", task.Saved)
			}
		}
		time.Sleep(2 * time.Hour)
	})
}

// Calls of plain code never speculate, so a request that makes no others is on no side of a canary.
func TestArmOfPlainCalls(t *testing.T) {
	var got *control.RequestRecord
	c := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
		got = r
	}}})
	s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeCanary, Share: 1,
		Predictors: []control.Predictor{constant{"a"}}})
	ctx, r := c.Begin(t.Context(), "page", "1")
	var w Watched
	w.Begin(ctx, Operation{CallSite: s, Transport: &fakeTransport{}})
	w.Done("a", nil)
	r.End(nil)
	if got.Arm == control.ArmOn {
		t.Errorf("the request counts as speculating: arm %v, calls %+v", got.Arm, got.Calls)
	}
}
