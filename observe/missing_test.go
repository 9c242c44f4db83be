package observe_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/specgrpc"
)

func inTask(ctx context.Context, f func(ctx context.Context) (*kvpb.GetResponse, error)) (*kvpb.GetResponse, error) {
	return foresay.Do(ctx, f)
}

func textOf(t *testing.T, r *observe.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestServerRefuses: a server without a Registrar takes no call on a guess, and the report says so
// where it matters; one with a Registrar does not.
func TestServerRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		serve   func(*shop) string
		refuses bool
	}{{"plain", (*shop).back, true}, {"registrar", (*shop).registered, false}} {
		t.Run(test.name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				collector, ctl := watched(s.t, control.Config{Budget: -1})
				conn := s.dial("front", test.serve(s), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...),
					specgrpc.WithMode(control.ModeOn))
				s.visit(50, &page{back: conn, wrap: inTask}, observe.UnaryServerInterceptor(ctl))
				why := methodOf(s.t, only(s.t, collector.Report(ctl)), check).Why
				if strings.Contains(why, "its server takes no call on a guess (refused ") != test.refuses {
					s.t.Errorf("refuses: %v; %s", test.refuses, why)
				}
			})
		})
	}
}

// TestOnWithoutPredictors: a mode that has guesses taken where nobody makes any is said to do
// nothing.
func TestOnWithoutPredictors(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{Budget: -1})
		sites := []control.CallSiteConfig{{Name: getUser, Mode: control.ModeCanary, Share: 1}}
		conn := s.dial("front", s.back(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(sites...))
		s.visit(50, &page{back: conn, wrap: inTask}, observe.UnaryServerInterceptor(ctl))
		r := collector.Report(ctl)
		q := only(s.t, r)
		m := methodOf(s.t, q, getUser)
		const line = `{"method": "` + getUser + `", "mode": "canary", "share": 1, "predictors": [{"kind": "last"}]}`
		if !strings.HasPrefix(m.Why, "its mode is canary, but it has no predictors: nothing is predicted; ") ||
			m.Configure != line || m.Verdict == observe.InUse {
			s.t.Errorf("%s: %s (%s)", m.Verdict, m.Why, m.Configure)
		}
		text := textOf(s.t, r)
		if !strings.Contains(q.Summary, "no guess was taken in 50 of 50 requests") ||
			strings.Contains(text, "speculation in") || !strings.Contains(text, "  no guess was taken in 50 requests") {
			s.t.Errorf("summary: %s\n%s", q.Summary, text)
		}
	})
}

// TestObservedBesideOn: of a method that is observed while another is on for everybody it is said
// what helps.
func TestObservedBesideOn(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{Budget: -1})
		sites := predictors()
		sites[0].Mode = control.ModeOn
		conn := s.dial("front", s.registered(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(sites...))
		s.visit(50, &page{back: conn, wrap: inTask}, observe.UnaryServerInterceptor(ctl))
		m := methodOf(s.t, only(s.t, collector.Report(ctl)), check)
		if m.Verdict != observe.TooEarly || !strings.Contains(m.Why,
			"so what that saves is not foreseen: mode on leaves 1 % without, once a thousand have begun, a canary with a "+
				"share of 0.9 leaves 10 %") {
			s.t.Errorf("%s: %s", m.Verdict, m.Why)
		}
	})
}

// TestAllOff: nothing is known, rather than nothing there to save.
func TestAllOff(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{})
		conn := s.dial("front", s.back(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...),
			specgrpc.WithMode(control.ModeOff))
		s.visit(50, &page{back: conn}, observe.UnaryServerInterceptor(ctl))
		q := only(s.t, collector.Report(ctl))
		if q.Summary != "nothing is known: no guess was looked for" {
			s.t.Errorf("summary: %s", q.Summary)
		}
		if m := methodOf(s.t, q, getUser); m.Configure != `"mode": "observe"` {
			s.t.Errorf("a site that has predictors: %s", m.Configure)
		}
	})
}

// TestProblems: what the Control's status says is wrong is in the text, and does nothing to a
// terminal.
func TestProblems(t *testing.T) {
	collector, ctl := watched(t, control.Config{})
	ctl.SetProblem("site file /b", "line 3:\n\x1b[2Jno such kind")
	ctl.SetProblem("site file /a", "gone")
	if text := textOf(t, collector.Report(ctl)); !strings.Contains(text,
		"\nproblem: site file /a: gone\nproblem: site file /b: line 3: ?[2Jno such kind\n") {
		t.Errorf("got\n%s", text)
	}
}
