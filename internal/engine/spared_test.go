package engine

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/processors"
)

// TestSpared: what a site's right guesses are said to have spared is what a clock says that
// they did, whatever follows them.
func TestSpared(t *testing.T) {
	type code struct {
		ctx   context.Context
		sites map[string]*control.CallSite
		call  func(name string, d time.Duration)
	}
	for _, tt := range []struct {
		name string
		f    func(c code)
	}{
		{"nothing follows", func(c code) { c.call("a", 50*ms) }},
		{"work", func(c code) { c.call("a", 50*ms); time.Sleep(20 * ms) }},
		{"work for longer than the call", func(c code) { c.call("a", 50*ms); time.Sleep(80 * ms) }},
		{"a guessed call", func(c code) { c.call("a", 50*ms); c.call("b", 10*ms) }},
		{"a guessed call and work", func(c code) { c.call("a", 50*ms); c.call("b", ms); time.Sleep(30 * ms) }},
		{"three guessed calls", func(c code) { c.call("a", 50*ms); c.call("b", 50*ms); c.call("c", 50*ms) }},
		{"a call without a guess", func(c code) { c.call("a", 10*ms); c.call("unknown", 50*ms) }},
		{"a short call without a guess", func(c code) { c.call("a", 50*ms); c.call("unknown", 10*ms) }},
		{"a barrier", func(c code) { c.call("a", 50*ms); _ = Barrier(c.ctx); time.Sleep(10 * ms) }},
		{"a barrier and a guessed call", func(c code) {
			c.call("a", 50*ms)
			_ = Barrier(c.ctx)
			c.call("b", 10*ms)
			time.Sleep(10 * ms)
		}},
		{"work and a barrier", func(c code) {
			c.call("a", 50*ms)
			time.Sleep(5 * ms)
			_ = Barrier(c.ctx)
			time.Sleep(10 * ms)
		}},
		{"a held call", func(c code) { c.call("a", 50*ms); c.call("held", 10*ms); time.Sleep(10 * ms) }},
		{"work and a held call", func(c code) { c.call("a", 50*ms); time.Sleep(5 * ms); c.call("held", 10*ms) }},
		{"an act", func(c code) {
			c.call("a", 50*ms)
			time.Sleep(5 * ms)
			_, _ = Act(c.ctx, "k", func(context.Context) (int, error) { time.Sleep(10 * ms); return 0, nil })
		}},
		{"a call that is not worth sending ahead", func(c code) {
			c.sites["a"].Engine().Quickest().Took(time.Now().Add(-ms/4), time.Now())
			c.call("a", ms/4) // which is known to be short
			c.call("unknown", ms/4)
		}},
		{"one that is postponed again and again, for the processors are busy", func(c code) {
			c.sites["a"].Engine().Quickest().Took(time.Now().Add(-ms/4), time.Now())
			c.call("a", 20*ms) // which is known to be short
			c.call("unknown", ms/4)
		}},
		{"a hook", func(c code) { c.call("a", 50*ms); OnCommit(c.ctx, func() { time.Sleep(10 * ms) }) }},
		{"what follows a guessed call is held", func(c code) {
			c.call("a", 50*ms)
			c.call("b", 30*ms)
			c.call("held", 10*ms)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var took [2]time.Duration
				var saved int64
				for i, mode := range []control.Mode{control.ModeOff, control.ModeOn} {
					c := mustControl(t, control.Config{Budget: -1})
					sites := make(map[string]*control.CallSite)
					for _, name := range []string{"a", "b", "c", "unknown", "held"} {
						cfg := control.CallSiteConfig{Name: name, Mode: mode, Effect: control.EffectNone,
							Predictors: []control.Predictor{constant{name}}}
						switch name {
						case "unknown":
							cfg.Predictors = nil
						case "held":
							cfg.Predictors, cfg.Effect = nil, control.EffectImmediate
						}
						sites[name] = callSiteCase(t, c, cfg)
					}
					began := time.Now()
					busy := processors.Pretend(t.Context(), func() time.Duration { return ms })
					_, err := Do(busy, func(ctx context.Context) (int, error) {
						tt.f(code{ctx, sites, func(name string, d time.Duration) {
							if _, err := callCase(ctx, sites[name], name, d, name, new(atomic.Int64)); err != nil {
								t.Error(err)
							}
						}})
						return 0, nil
					})
					if err != nil {
						t.Error(err)
					}
					took[i] = time.Since(began)
					saved = 0
					for _, s := range sites {
						saved += s.Stats().SavedNanos
					}
				}
				if want := took[0] - took[1]; time.Duration(saved) != want {
					t.Errorf("spared %v; a clock says %v (%v without guesses, %v with)", time.Duration(saved), want, took[0], took[1])
				}
			})
		})
	}
}

// TestRests: a site whose right guesses save nothing takes none, says so once, is tried now
// and then, and takes them again soon after something follows its calls.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		c := mustControl(t, control.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		calls := func(n int, work time.Duration) (predicted int64) {
			before := s.Stats().Predicted
			for range n {
				if _, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					_, err := callCase(ctx, s, "a", 5*ms, "a", new(atomic.Int64))
					time.Sleep(work)
					return 0, err
				}); err != nil {
					t.Fatal(err)
				}
			}
			return s.Stats().Predicted - before
		}
		calls(50, 0)
		st := c.Status().CallSites[0]
		if st.State != control.StateTripped || !strings.HasPrefix(st.Reason, "saves nothing: ") || st.Stats.Trips != 1 {
			t.Errorf("%v (%q) after %d trips", st.State, st.Reason, st.Stats.Trips)
		}
		compared := st.Stats.WouldBeRight
		if n := calls(640, 0); n != 0 {
			t.Errorf("%d guesses while it rests", n)
		}
		if n := s.Stats().WouldBeRight - compared; n != 10 {
			t.Errorf("%d of 640 guesses were compared while it rests, want one in 64", n)
		}
		for range 20 { // for longer than a site that is doubted would be left alone
			time.Sleep(c.Config().Retry)
			if n := calls(60, 0); n != enough {
				t.Errorf("%d guesses were tried, want %d", n, enough)
			}
			if st := c.Status().CallSites[0]; st.State != control.StateTripped || st.Stats.Trips != 1 {
				t.Errorf("%v after %d trips: %s", st.State, st.Stats.Trips, st.Reason)
			}
		}
		if n := strings.Count(log.String(), "saves nothing"); n != 1 {
			t.Errorf("the log says so %d times:\n%s", n, &log)
		}
		if st := c.Status().CallSites[0]; time.Until(st.Until) > c.Config().Retry {
			t.Errorf("it is left alone for %v, longer than %v", time.Until(st.Until), c.Config().Retry)
		}
		time.Sleep(c.Config().Retry)
		calls(60, ms)
		if n := calls(60, ms); n != 60 {
			t.Errorf("%d of 60 guesses are made when work follows again", n)
		}
		if st := c.Status().CallSites[0]; st.State != control.StateActive || st.Reason != "" {
			t.Errorf("%v: %q", st.State, st.Reason)
		}
	})
}

// TestRestsWhileProcessorsAreBusy: where goroutines queue for the processors, what is saved has to
// be more than such waits, and a site rests only while they do.
func TestRestsWhileProcessorsAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn, Effect: control.EffectNone,
			Predictors: []control.Predictor{constant{"a"}}})
		for _, tt := range []struct {
			wait, work time.Duration
			every      int // so many-th task works
			want       control.CallSiteState
		}{
			{0, ms / 2, 1, control.StateActive},
			{ms / 3, ms / 2, 1, control.StateTripped},
			{ms / 3, ms, 1, control.StateActive},
			{time.Second, ms / 2, 1, control.StateTripped},
			{time.Second, 3 * ms, 1, control.StateActive}, // a wait of a second counts as one of a millisecond
			{0, ms / 2, 1, control.StateActive},
			{ms / 3, 5 * ms, 5, control.StateTripped},
			{ms / 3, 5 * ms, 3, control.StateActive},
			{0, 5 * ms, 5, control.StateActive},
		} {
			ctx := processors.Pretend(t.Context(), func() time.Duration { return tt.wait })
			time.Sleep(4 * c.Config().Window) // what was before counts for little
			for i := range 3000 {
				if _, err := Do(ctx, func(ctx context.Context) (int, error) {
					_, err := callCase(ctx, s, "a", 5*ms, "a", new(atomic.Int64))
					if i%tt.every == 0 {
						time.Sleep(tt.work)
					}
					return 0, err
				}); err != nil {
					t.Fatal(err)
				}
			}
			if st := c.Status().CallSites[0]; st.State != tt.want {
				t.Errorf("%v of work while goroutines wait for %v: %v (%q)", tt.work, tt.wait, st.State, st.Reason)
			}
		}
	})
}

// predictingTransport is a server that predicts all its answers at once.
type predictingTransport struct{ fakeTransport }

func (p *predictingTransport) Start(ctx context.Context, a *Attempt) {
	if a.WantPredictions() {
		v, _ := p.answer()
		a.Predict(v)
	}
	p.fakeTransport.Start(ctx, a)
}

// TestRestsBesideServer: a site that rests tries as few of its server's predictions as of its
// own each time.
func TestRestsBesideServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{})
		s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn, Effect: control.EffectNone,
			ServerPredictions: true})
		calls := func() int64 {
			before := s.Stats().Predicted
			for range 60 {
				if _, err := Do(t.Context(), func(ctx context.Context) (any, error) {
					return Perform(ctx, &Operation{
						CallSite: s, Identity: "a", CanSpeculate: true, Transport: &predictingTransport{fakeTransport{ms, val("a")}},
					})
				}); err != nil {
					t.Fatal(err)
				}
			}
			return s.Stats().Predicted - before
		}
		for calls(); c.Status().CallSites[0].State != control.StateTripped; calls() { // until there is enough to judge
		}
		for range 5 {
			time.Sleep(c.Config().Retry)
			if n := calls(); n != enough {
				t.Errorf("%d predictions were tried, want %d", n, enough)
			}
			time.Sleep(judgeEvery)
			if st := c.Status().CallSites[0]; st.State != control.StateTripped {
				t.Errorf("%v: %s", st.State, st.Reason)
			}
		}
	})
}

// TestForcedGuesses: without a budget a site guesses although that saves nothing.
func TestForcedGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := callSiteCase(t, mustControl(t, control.Config{Budget: -1}),
			control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn,
				Effect: control.EffectNone, Predictors: []control.Predictor{constant{"a"}}})
		for i := range 200 {
			if _, err := Do(t.Context(), func(ctx context.Context) (any, error) {
				return callCase(ctx, s, fmt.Sprint(i), 5*ms, "a", new(atomic.Int64))
			}); err != nil {
				t.Fatal(err)
			}
		}
		if n := s.Stats().Predicted; n != 200 {
			t.Errorf("%d of 200 guesses were made", n)
		}
	})
}
