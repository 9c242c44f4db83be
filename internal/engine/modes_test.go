package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/control"
)

// Each of these notices a planted bug that nothing else did.

type askedCase struct{ asked, learnt atomic.Int64 }

func (p *askedCase) Predict(context.Context, any) []any { p.asked.Add(1); return []any{"a"} }
func (p *askedCase) Learn(context.Context, any, any)    { p.learnt.Add(1) }

func TestOffAsksNobodyForPlainCalls(t *testing.T) {
	var got *control.RequestRecord
	c := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
		got = r
	}}})
	p := &askedCase{}
	s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOff,
		Predictors: []control.Predictor{p}})
	ctx, r := c.Begin(t.Context(), "page", "1")
	var w Watched
	if w.Begin(ctx, Operation{CallSite: s, Transport: &fakeTransport{}}) {
		w.Done("a", nil)
	}
	r.End(nil)
	if p.asked.Load() != 0 || p.learnt.Load() != 0 || len(got.Calls) != 1 || got.Calls[0].Guessed ||
		got.Calls[0].Mode != control.ModeOff {
		t.Errorf("asked %d times, told %d times: %+v", p.asked.Load(), p.learnt.Load(), got.Calls)
	}
}

func TestNothingAfterEnd(t *testing.T) {
	var got *control.RequestRecord
	c := mustControl(t, control.Config{OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) {
		got = r
	}}})
	s := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a"})
	ctx, r := c.Begin(t.Context(), "page", "1")
	var w, late Watched
	w.Begin(ctx, Operation{CallSite: s, Transport: &fakeTransport{}})
	late.Begin(ctx, Operation{CallSite: s, Transport: &fakeTransport{}})
	w.Done("a", nil)
	r.End(nil)
	late.Done("a", nil)
	if n := len(got.Calls); n != 1 {
		t.Errorf("%d calls in the record, want 1", n)
	}
}

func TestShadowCountsNoCallItDoesNotMake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t, mustControl(t, control.Config{Budget: -1}), control.ModeShadow, 1, "ann")
		if _, err := Do(t.Context(), s.order, WithLimits(control.Limits{MinSaving: -1})); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := s.user.Stats(); st.Calls != 1 || st.Abandoned != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// What plain code below a shadow calls is not the request's.
func TestShadowOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got *control.RequestRecord
		c := mustControl(t, control.Config{Budget: -1,
			OnRequest: []func(*control.RequestRecord){func(r *control.RequestRecord) { got = r }}})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"wrong"}}})
		plain := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/plain"})
		ctx, r := c.Begin(t.Context(), "page", "1")
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			v, err := callCase(ctx, a, "a", 10*ms, "a", new(atomic.Int64))
			if err != nil {
				return 0, err
			}
			return Memo(ctx, v.(string), func(ctx context.Context) (int, error) {
				var w Watched
				if w.Begin(ctx, Operation{CallSite: plain, Transport: &fakeTransport{}}) {
					w.Done(1, nil)
				}
				return 1, nil
			})
		})
		synctest.Wait()
		r.End(err)
		if err != nil || len(got.Calls) != 2 {
			t.Errorf("%v: %+v", err, got.Calls)
		}
	})
}

// What a handler's shadow predicts does not go to the caller.
func TestShadowOfAHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustControl(t, control.Config{Budget: -1})
		a := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: control.ModeShadow, Share: 1,
			Effect:     control.EffectNone,
			Predictors: []control.Predictor{constant{"wrong"}}})
		var told []any
		h := NewHandler(t.Context(), HandlerConfig{Name: "h", Replayable: true, Predicted: func(v any) {
			told = append(told, v)
		}})
		h.Confirm()
		got, err := h.Run(func(ctx context.Context) (any, error) {
			v, err := callCase(ctx, a, "a", 10*ms, "a", new(atomic.Int64))
			if err != nil {
				return nil, err
			}
			if err := Predict(ctx, v); err != nil {
				return nil, err
			}
			return v, nil
		})
		if err == nil {
			err = h.Finish()
		}
		synctest.Wait()
		if err != nil || got != "a" || len(told) > 1 || len(told) == 1 && told[0] != "a" || a.Stats().Shadows != 1 {
			t.Errorf("%v, %v, told %v, %d shadows", got, err, told, a.Stats().Shadows)
		}
	})
}

// onlyNews learns, and says that it need not be told what it predicted.
type onlyNews struct {
	constant
	learnt []any
}

func (o *onlyNews) Learn(_ context.Context, _, v any) { o.learnt = append(o.learnt, v) }
func (*onlyNews) LearnsChanges()                      {}

// A predictor that learns changes is told of nothing else, unless the guess may be
// another's or need not be the response itself.
func TestChangeLearner(t *testing.T) {
	for name, tt := range map[string]struct {
		ctx   context.Context
		equal func(p, a any) bool
		want  string
	}{
		"its own":    {t.Context(), nil, "[b]"},
		"offered":    {Predicting(t.Context(), "a"), nil, "[a b]"},
		"equivalent": {t.Context(), func(p, a any) bool { return p == a }, "[a b]"},
	} {
		p := &onlyNews{constant: constant{"a"}}
		site, err := control.NewCallSite(control.CallSiteConfig{Name: "/s/get", Predictors: []control.Predictor{p},
			Equal: tt.equal})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{"a", "b"} {
			var w Watched
			w.Begin(tt.ctx, Operation{CallSite: site, Transport: &fakeTransport{}})
			w.Done(v, nil)
		}
		if got := fmt.Sprint(p.learnt); got != tt.want {
			t.Errorf("%s: learnt %v, want %v", name, got, tt.want)
		}
	}
}
