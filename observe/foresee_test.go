package observe_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/specgrpc"
)

// want checks a figure.
func want(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %.4f, want %.4f within %.4f", what, got, want, tolerance)
	}
}

func methodOf(t testing.TB, q *observe.RequestReport, name string) *observe.MethodReport {
	t.Helper()
	for i := range q.Methods {
		if q.Methods[i].Name == name {
			return &q.Methods[i]
		}
	}
	t.Fatalf("no method %s in %+v", name, q.Methods)
	return nil
}

func only(t testing.TB, r *observe.Report) *observe.RequestReport {
	t.Helper()
	if len(r.Requests) != 1 {
		t.Fatalf("%d kinds of request; want 1: %+v", len(r.Requests), r.Requests)
	}
	return &r.Requests[0]
}

// TestForeseenIsWhatTheHandComputes: 15 + 10 + 20 ms one after the other are 45. Of 100 visits
//   - the first knows nothing;
//   - the tenth, the first with the other plan, guesses the user wrong and has no guess for the
//     others;
//   - 18 guess the user wrong and know the others: those begin after 15 ms, and the last ends after
//     35;
//   - 80 guess all right and end after 20 ms, when the price is there.
func TestForeseenIsWhatTheHandComputes(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(t, control.Config{})
		conn := s.dial("front", s.back(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...))
		s.visit(100, &page{back: conn}, observe.UnaryServerInterceptor(ctl))
		r := collector.Report(ctl)
		q := only(t, r)
		if q.Name != front || q.Requests != 100 || q.Failed != 0 || q.Foreseen.Requests != 100 {
			t.Errorf("%s, %d requests, %d failed, %d worked out; want %s, 100, 0, 100", q.Name, q.Requests, q.Failed,
				q.Foreseen.Requests, front)
		}
		f := &q.Foreseen
		want(t, "mean now", f.Now.MeanMS, 45, 1e-9)
		want(t, "saved", f.SavedMS, (80*25+18*10)/100.0, 1e-9)
		want(t, "mean then", f.Then.MeanMS, 45-21.8, 1e-9)
		want(t, "p50 now", f.Now.P50MS, 45, 0.45)
		want(t, "p50 then", f.Then.P50MS, 20, 0.2)
		// Each of the 19 wrong users would have sent the two others in vain.
		want(t, "extra load", f.ExtraLoad, 38/300.0, 1e-9)

		user := methodOf(t, q, getUser)
		if user.Calls != 100 || user.Guessed != 99 || user.Right != 80 || user.Effect != "none" {
			t.Errorf("GetUser: %+v", user)
		}
		// Alone it lets Check begin at once: 10 + 20 ms.
		want(t, "user alone", user.SavedAloneMS, 80*15/100.0, 1e-9)
		// With the others known it is 20 instead of 35.
		want(t, "user with others", user.SavedMS, 80*15/100.0, 1e-9)
		want(t, "user's gain", user.GainMS, 15, 1e-9)
		want(t, "user's cost", user.CostMS, 30, 1e-9)
		want(t, "user's break-even", user.BreakEven, 30.0/45, 1e-9)
		want(t, "user's load", user.ExtraLoad, 38/300.0, 1e-9)
		want(t, "user's latency", user.Latency.MeanMS, 15, 1e-9)
		permission := methodOf(t, q, check)
		// Its 98 guesses are right; the price begins 10 ms earlier.
		want(t, "check with others", permission.SavedMS, 9.8, 1e-9)
		want(t, "check's cost", permission.CostMS, 20, 1e-9)
		price := methodOf(t, q, quote)
		want(t, "quote", max(price.SavedMS, price.SavedAloneMS, price.GainMS), 0, 1e-9)
		if price.Verdict != observe.NotWorthIt || permission.Verdict != observe.WorthIt ||
			user.Verdict != observe.NotWorthIt {
			t.Errorf("verdicts: user %s (%s), check %s (%s), price %s (%s)", user.Verdict, user.Why, permission.Verdict,
				permission.Why, price.Verdict, price.Why)
		}
		if user.Predictors != 1 || user.Mode != "observe" {
			t.Errorf("GetUser has %d predictors and the mode %s", user.Predictors, user.Mode)
		}
	})
}

// TestForeseenIsRealised: the same program, then with speculation, saves what was foreseen, with
// services that always take the same time and with such that take between none and four times that.
func TestForeseenIsRealised(t *testing.T) {
	for n := uint64(0); n < 3; n += uint64(seed.Every(3)) {
		t.Run(fmt.Sprint("seed=", n), func(t *testing.T) {
			testRealised(t, n, false)
			testRealised(t, n, true)
		})
	}
}

func testRealised(t *testing.T, seed uint64, view bool) {
	foreseen, before := visits(t, control.ModeObserve, seed, view)
	realised, after := visits(t, control.ModeOn, seed, view)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what visitors saw (-observe +on):\n%s", diff)
	}
	if foreseen.Realised != nil || realised.Realised == nil || realised.Foreseen.Requests != 0 {
		t.Fatalf("observe: realised %+v; on: realised %+v, foreseen %+v", foreseen.Realised, realised.Realised,
			realised.Foreseen)
	}
	saved := foreseen.Latency.MeanMS - realised.Latency.MeanMS
	want(t, "saved, by the visits' durations", saved, foreseen.Foreseen.SavedMS, 0.02*foreseen.Foreseen.SavedMS)
	want(t, "saved, by the tasks", realised.Realised.SavedMS, foreseen.Foreseen.SavedMS, 0.02*foreseen.Foreseen.SavedMS)
	want(t, "p50", realised.Latency.P50MS, foreseen.Foreseen.Then.P50MS, 0.02*foreseen.Foreseen.Then.P50MS)
	want(t, "extra load", realised.Realised.ExtraLoad, foreseen.Foreseen.ExtraLoad, 0.02)
	if realised.Realised.Tasks != 100 {
		t.Errorf("%d tasks, want 100", realised.Realised.Tasks)
	}
	t.Logf("view=%v: foreseen %.2f ms, realised %.2f ms (tasks: %.2f); extra load foreseen %.4f, realised %.4f", view,
		foreseen.Foreseen.SavedMS, saved,
		realised.Realised.SavedMS, foreseen.Foreseen.ExtraLoad, realised.Realised.ExtraLoad)
}

// visits has the page visited, whose handler is a task, in a mode.
func visits(t *testing.T, mode control.Mode, seed uint64, view bool) (q *observe.RequestReport, seen []string) {
	t.Helper()
	inShop(t, func(s *shop) {
		s.seed = seed
		collector, ctl := watched(t, control.Config{Budget: -1})
		conn := s.dial("front", s.registered(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...),
			specgrpc.WithMode(mode))
		task := func(ctx context.Context, f func(ctx context.Context) (*kvpb.GetResponse, error)) (*kvpb.GetResponse, error) {
			return foresay.Do(ctx, f)
		}
		seen = s.visit(100, &page{back: conn, wrap: task, view: view}, observe.UnaryServerInterceptor(ctl))
		q = only(t, collector.Report(ctl))
	})
	return q, seen
}

// TestObservingChangesNothing: what servers, handlers and visitors see, and when, is what they see
// of plain gRPC, errors included. Both kinds of connection are observed.
func TestObservingChangesNothing(t *testing.T) {
	const visits = 30
	type seen struct {
		Served, Visitor []string
		Took            time.Duration
	}
	world := func(kind string) (out seen) {
		inShop(t, func(s *shop) {
			s.refuses = "gold"
			addr := s.back()
			p := &page{view: true}
			var interceptors []grpc.UnaryServerInterceptor
			collector, ctl := watched(s.t, control.Config{})
			opts := []specgrpc.ClientOption{specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...)}
			switch kind {
			case "plain":
				p.back = s.plain("front", addr)
			case "interceptor":
				watch, err := specgrpc.ObserveInterceptor(opts...)
				if err != nil {
					s.t.Fatal(err)
				}
				p.back = s.plain("front", addr, grpc.WithChainUnaryInterceptor(watch))
			case "connection":
				p.back = s.dial("front", addr, opts[0], opts[1])
			}
			if kind != "plain" {
				interceptors = append(interceptors, observe.UnaryServerInterceptor(ctl))
			}
			start := time.Now()
			out.Visitor = s.visit(visits, p, interceptors...)
			out.Took = time.Since(start)
			out.Served = s.handledCalls()
			if kind == "plain" {
				return
			}
			q := only(s.t, collector.Report(ctl))
			if q.Requests != visits || q.Failed != visits/10 || methodOf(s.t, q, recordView).Calls != visits ||
				methodOf(s.t, q, quote).Failed != visits/10 {
				s.t.Errorf("%s: observed %d requests, %d failed, %+v", kind, q.Requests, q.Failed, q.Methods)
			}
		})
		return out
	}
	plain := world("plain")
	if len(plain.Served) != 4*visits || !strings.Contains(plain.Visitor[9], "no price for the plan gold") {
		t.Fatalf("%d calls were served, want %d; the tenth visitor saw %s", len(plain.Served), 4*visits, plain.Visitor[9])
	}
	for _, kind := range []string{"interceptor", "connection"} {
		if diff := cmp.Diff(plain, world(kind)); diff != "" {
			t.Errorf("observed by an %s (-plain +observed):\n%s", kind, diff)
		}
	}
}
