package observe_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/specgrpc"
)

// TestVerdicts: two calls of 10 ms, one after the other, of which the first is what is judged.
func TestVerdicts(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name     string
		requests int
		call     func(i int, c *control.CallRecord)
		took     time.Duration // by the first call
		want     observe.Verdict
		why      string
		needed   bool
		line     string
	}{
		{
			"pays", 1000, func(i int, c *control.CallRecord) {
				c.Guessed, c.Right, c.Digest = true, i%20 > 0, true
			}, 10 * ms, observe.WorthIt,
			"the last response to the same request would have been right 95 % of 1,000; needs 50 %: a right guess saves 10.0 " +
				"ms, a wrong one wastes 10.0 ms of calls",
			false, `{"method": "/a.S/Get", "mode": "canary", "share": 0.1, "predictors": [{"kind": "last"}]}`,
		},
		{
			"pays, with a predictor", 1000, func(i int, c *control.CallRecord) {
				c.Guessed, c.Right = true, i%20 > 0
			}, 10 * ms, observe.WorthIt,
			"right 95 % of 1,000; needs 50 %: a right guess saves 10.0 ms, a wrong one wastes 10.0 ms of calls",
			false, `"mode": "canary", "share": 0.1`,
		},
		{
			"mostly wrong", 1000, func(i int, c *control.CallRecord) {
				c.Guessed, c.Right = true, i%5 == 0
			}, 10 * ms, observe.NotWorthIt,
			"right 20 % of 1,000; needs 50 %", false, "",
		},
		{
			"loads too much", 1000, func(i int, c *control.CallRecord) {
				c.Guessed, c.Right = true, i%3 > 0
			}, 10 * ms, observe.NotWorthIt,
			"its wrong guesses add 16.7 % of load, above the budget of 10 %", false, "",
		},
		{
			"nothing waits", 1000, func(_ int, c *control.CallRecord) {
				c.Guessed, c.Right = true, true
			}, 20 * time.Microsecond, observe.NotWorthIt,
			"the request's end hardly waits for it: a right guess saves 0.02 ms", false, "",
		},
		{
			"few", 12, func(i int, c *control.CallRecord) { c.Guessed, c.Right = i > 0, true }, 10 * ms, observe.TooEarly,
			"there was a guess for 11 of 12 calls: 9 more are needed", true, "",
		},
		{
			"close", 100, func(i int, c *control.CallRecord) { c.Guessed, c.Right = true, i%50 < 27 }, 10 * ms, observe.TooEarly,
			"about 497 more guesses are needed", true, "",
		},
		{
			"never the same", 1000, func(_ int, c *control.CallRecord) { c.Digest = true }, 10 * ms, observe.NotWorthIt,
			"its requests hardly repeat: there was a last response for only 0 of 1,000 calls", false, "",
		},
		{
			"off", 1000, func(_ int, c *control.CallRecord) { c.Mode = control.ModeOff }, 10 * ms, observe.TooEarly,
			"no guess was looked for, so nothing is known of predictions", false, "",
		},
		{
			"effects", 1000, func(_ int, c *control.CallRecord) {
				c.Effect, c.Guessed, c.Right, c.Digest = control.EffectImmediate, true, true, true
			}, 10 * ms, observe.HasEffects,
			"what follows it wait; its name says that it only reads: if so, say it (the last response to the same request " +
				"would have been right 100 % of 1,000; to predict it would save 10.0 ms, for what follows it)",
			false, `{"method": "/a.S/Get", "effect": "none"}`,
		},
		{
			"effects, predicted on purpose", 1000, func(i int, c *control.CallRecord) {
				c.Effect, c.Guessed, c.Right = control.EffectImmediate, true, i%20 > 0
			}, 10 * ms, observe.NotWorthIt, "the request's end hardly waits for it: a right guess saves 0 ms", false, "",
		},
		{
			"effects, predicted on purpose, before computing", 1000, func(i int, c *control.CallRecord) {
				c.Effect, c.Guessed, c.Right = control.EffectImmediate, true, i%20 > 0
				c.End -= 8 * ms
			}, 10 * ms, observe.WorthIt, "right 95 % of 1,000", false, `"mode": "canary"`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := watched(t, control.Config{})
			for i := range test.requests {
				first := control.CallRecord{CallSite: "/a.S/Get", Effect: control.EffectNone, Mode: control.ModeObserve,
					End: test.took}
				test.call(i, &first)
				c.Record(&control.RequestRecord{
					Name: "GET /page", Start: time.Unix(int64(i), 0), Duration: test.took + 10*ms,
					Calls: []control.CallRecord{first, {CallSite: "/a.S/List", Effect: control.EffectNone, Mode: control.ModeObserve,
						Start: test.took, End: test.took + 10*ms}},
				})
			}
			m := methodOf(t, only(t, c.Report(nil)), "/a.S/Get")
			if m.Verdict != test.want || !strings.Contains(m.Why, test.why) || (m.Needed > 0) != test.needed ||
				!strings.Contains(m.Configure, test.line) || test.line == "" && m.Configure != "" {
				t.Errorf("got %q: %s (needed %d)\n%s\nwant %q: ...%s\n%s", m.Verdict, m.Why, m.Needed, m.Configure, test.want,
					test.why, test.line)
			}
			if m.Configure != "" {
				line := m.Configure
				if !strings.HasPrefix(line, "{") {
					line = `{"method": "/a.S/Get", "predictors": [{"kind": "last"}], ` + line + `}`
				}
				if _, err := specgrpc.ParseCallSites([]byte(`{"sites": [`+line+`]}`),
					map[string]control.Predictor{"last": nothing{}}); err != nil {
					t.Errorf("the line to write is refused: %v", err)
				}
			}
		})
	}
}

type nothing struct{}

func (nothing) Predict(context.Context, any) []any { return nil }
func (nothing) Learn(context.Context, any, any)    {}

// TestKilled: a method of which nothing is known because of the kill switch is not said to have no
// guesses.
func TestKilled(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{})
		ctl.Kill(true)
		conn := s.dial("front", s.back(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...))
		s.visit(300, &page{back: conn}, observe.UnaryServerInterceptor(ctl))
		q := only(s.t, collector.Report(ctl))
		if q.Summary != "nothing is known: the kill switch has stopped all predictions" {
			s.t.Errorf("summary: %s", q.Summary)
		}
		m := methodOf(s.t, q, getUser)
		if m.Verdict != observe.TooEarly || !strings.Contains(m.Why, "kill switch") || m.Calls != 300 || m.Asked != 0 {
			s.t.Errorf("%s: %s, %+v", m.Verdict, m.Why, m)
		}
	})
}
