package observe_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/specgrpc"
)

// TestParallelReads: of two calls side by side, none saves anything alone, and each does with the
// other.
func TestParallelReads(t *testing.T) {
	c, _ := watched(t, control.Config{})
	const ms = time.Millisecond
	for i := range 100 {
		call := func(name string, from, to time.Duration) control.CallRecord {
			return control.CallRecord{CallSite: name, Effect: control.EffectNone, Start: from, End: to, Guessed: true,
				Right: true}
		}
		c.Record(&control.RequestRecord{Name: "GET /page", Start: time.Unix(int64(i), 0), Duration: 30 * ms,
			Calls: []control.CallRecord{
				call("/a.S/GetA", 0, 10*ms), call("/a.S/GetB", 0, 10*ms), call("/a.S/GetC", 10*ms, 30*ms),
			}})
	}
	q := only(t, c.Report(nil))
	want(t, "saved", q.Foreseen.SavedMS, 10, 1e-9)
	for _, name := range []string{"/a.S/GetA", "/a.S/GetB"} {
		m := methodOf(t, q, name)
		want(t, name+" alone", m.SavedAloneMS, 0, 1e-9)
		want(t, name+" with the other", m.SavedMS, 10, 1e-9)
		if m.Verdict != observe.WorthIt {
			t.Errorf("%s is %s: %s", name, m.Verdict, m.Why)
		}
	}
}

// TestLongCallFirst: of 30, 10 and 10 ms the first alone saves 20, as the request still waits for
// it; beside the second it saves 10 more.
func TestLongCallFirst(t *testing.T) {
	c, _ := watched(t, control.Config{})
	const ms = time.Millisecond
	for i := range 100 {
		call := func(name string, from, to time.Duration) control.CallRecord {
			return control.CallRecord{CallSite: name, Effect: control.EffectNone, Start: from, End: to, Guessed: true,
				Right: true}
		}
		c.Record(&control.RequestRecord{Name: "GET /page", Start: time.Unix(int64(i), 0), Duration: 50 * ms,
			Calls: []control.CallRecord{
				call("/a.S/GetA", 0, 30*ms), call("/a.S/GetB", 30*ms, 40*ms), call("/a.S/GetC", 40*ms, 50*ms),
			}})
	}
	q := only(t, c.Report(nil))
	want(t, "saved", q.Foreseen.SavedMS, 20, 1e-9)
	m := methodOf(t, q, "/a.S/GetA")
	want(t, "alone", m.SavedAloneMS, 20, 1e-9)
	want(t, "with the others", m.SavedMS, 10, 1e-9)
	want(t, "gain", m.GainMS, 20, 1e-9)
}

// TestFirstGuessOfAWrite: the first request in which a write is predicted is worked out as later
// ones are, where the guess is not at the method's first call either. It is wrong, so that the 5 ms
// of computing are done again.
func TestFirstGuessOfAWrite(t *testing.T) {
	c, _ := watched(t, control.Config{})
	const ms = time.Millisecond
	for i := range 2 {
		put := func(from, to time.Duration, guessed bool) control.CallRecord {
			return control.CallRecord{CallSite: "/a.S/Put", Effect: control.EffectImmediate, Start: from, End: to,
				Guessed: guessed}
		}
		c.Record(&control.RequestRecord{Name: "GET /page", Start: time.Unix(int64(i), 0), Duration: 35 * ms,
			Calls: []control.CallRecord{put(0, 10*ms, false), put(15*ms, 35*ms, true)}})
		want(t, fmt.Sprint("saved after request ", i), only(t, c.Report(nil)).Foreseen.SavedMS, -5, 1e-9)
	}
}

// TestLosersAreLeftOut: a method whose guesses are wrong is not predicted once that is known, so
// that it adds no load to what is foreseen; when it becomes better it is taken again.
func TestLosersAreLeftOut(t *testing.T) {
	inShop(t, func(s *shop) {
		c, err := observe.NewCollector(observe.Config{Window: time.Minute})
		if err != nil {
			s.t.Fatal(err)
		}
		record := func(n int, right bool) *observe.Foreseen {
			for range n {
				r := sequence("GET /page", 2, 2) // 1 and 2 ms
				r.Calls[0].Right, r.Calls[1].Right = right, true
				r.Start = time.Now()
				c.Record(r)
			}
			return &only(s.t, c.Report(nil)).Foreseen
		}
		wrong := record(1000, false)
		if wrong.ExtraLoad > 0.02 || wrong.ExtraLoad == 0 {
			s.t.Errorf("extra load %v; want that of a few dozen requests", wrong.ExtraLoad)
		}
		for range 3 {
			time.Sleep(time.Minute)
			record(100, true)
		}
		time.Sleep(time.Minute)
		before := wrong.SavedMS * 1000
		right := record(1000, true)
		// Predicting the second call saves the millisecond after it, the first one more: 4 ms
		// become 2.
		if saved := right.SavedMS*2300 - before; saved < 2*1200 {
			s.t.Errorf("%v ms saved by 1,300 requests with right guesses; want nearly 2 each", saved)
		}
	})
}

// TestUndeclaredReads: an ordinary service, whose methods say nothing of effects, learns what
// saying it would save.
func TestUndeclaredReads(t *testing.T) {
	c, _ := watched(t, control.Config{})
	for i := range 100 {
		r := sequence("/shop.Page/Show", 3, 3) // 1, 2 and 3 ms; the first guess of each is wrong
		r.Start = time.Unix(int64(i), 0)
		for j := range r.Calls {
			r.Calls[j].Effect, r.Calls[j].Digest, r.Calls[j].Right = control.EffectImmediate, true, true
		}
		c.Record(r)
	}
	q := only(t, c.Report(nil))
	want(t, "saved as declared", q.Foreseen.SavedMS, 0, 0)
	if q.IfReads == nil {
		t.Fatal("nothing is said of what the reads could save")
	}
	// 7 ms: three calls and 1 ms after them. All at once: 3 ms, the longest, as the millisecond
	// after fits beside it.
	want(t, "saved if reads", q.IfReads.SavedMS, 4, 1e-9)
	if !strings.Contains(q.Summary, "if the methods that look so do only read") {
		t.Errorf("summary: %s", q.Summary)
	}
}

// TestLeftWithout: in mode on the headline is the difference to the requests that are left without
// speculation, and these are foreseen.
func TestLeftWithout(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{Budget: 10, ControlShare: 0.1})
		sites := predictors()
		sites[0].Mode = control.ModeOn
		conn := s.dial("front", s.registered(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(sites...))
		n := 0
		number := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			n++
			return handler(metadata.NewIncomingContext(ctx, metadata.Pairs("x-request-id", fmt.Sprint("request ", n))), req)
		}
		visit := func(visits int) *observe.RequestReport {
			s.visit(visits, &page{back: conn, wrap: inTask}, number, observe.UnaryServerInterceptor(ctl))
			return only(s.t, collector.Report(ctl))
		}
		if q := visit(1000); q.Canary != nil || q.Foreseen.Requests != 0 {
			s.t.Errorf("before any is left without: %+v, foreseen %+v", q.Canary, q.Foreseen)
		}
		q := visit(300)
		c := q.Canary
		if c == nil || c.Left != 0.1 || c.Off.Requests < 15 || c.Off.Requests > 50 || q.Foreseen.Requests != c.Off.Requests {
			s.t.Fatalf("compared %+v, foreseen %+v", c, q.Foreseen)
		}
		if says := fmt.Sprintf(", against the 10 %% left without: %d requests on and %d off", c.On.Requests,
			c.Off.Requests); !strings.HasSuffix(q.Summary, says) {
			s.t.Errorf("the headline is %q, want one that ends in %q", q.Summary, says)
		}
		if text := textOf(s.t, collector.Report(ctl)); !strings.Contains(text, "\n  mode on ") ||
			strings.Contains(text, "canary ") {
			s.t.Errorf("the text speaks of a canary:\n%s", text)
		}
	})
}

// TestCanaryBecomesOn: once a canary is switched to on, the report tells the canary's requests from
// those that mode on leaves without.
func TestCanaryBecomesOn(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{Budget: 10, ControlShare: 0.1})
		sites := predictors()
		sites[0].Mode, sites[0].Share = control.ModeCanary, 0.5
		conn := s.dial("front", s.registered(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(sites...))
		n := 0
		number := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			n++
			return handler(metadata.NewIncomingContext(ctx, metadata.Pairs("x-request-id", fmt.Sprint("request ", n))), req)
		}
		visit := func(visits int) *observe.Canary {
			s.visit(visits, &page{back: conn, wrap: inTask}, number, observe.UnaryServerInterceptor(ctl))
			return only(s.t, collector.Report(ctl)).Canary
		}
		then := visit(1000)
		if then.On.Canary != then.On.Requests || then.Off.Canary != then.Off.Requests || then.Left != 0 {
			s.t.Errorf("while it is a canary: %+v", then)
		}
		if err := ctl.SetMode(sites[0].Name, control.ModeOn, 0); err != nil {
			s.t.Fatal(err)
		}
		now := visit(300)
		on, off := now.On.Requests-then.On.Requests, now.Off.Requests-then.Off.Requests
		if now.On.Canary != then.On.Canary || now.Off.Canary != then.Off.Canary || on+off != 300 || off < 15 ||
			now.Left != 0.1 {
			s.t.Fatalf("once it is on: %+v, before %+v", now, then)
		}
		q := only(s.t, collector.Report(ctl))
		says := fmt.Sprintf(", by the canary of %d requests on and %d off, and against the 10 %% left without: %d "+
			"requests on and %d off", then.On.Requests, then.Off.Requests, on, off)
		if !strings.HasSuffix(q.Summary, says) {
			s.t.Errorf("the headline is %q, want one that ends in %q", q.Summary, says)
		}
		if text := textOf(s.t, collector.Report(ctl)); !strings.Contains(text, "\n  canary and mode on ") {
			s.t.Errorf("the text does not say what is compared:\n%s", text)
		}
	})
}

// TestEffectsHoldWhatFollows: a view is recorded between the reads, and the price waits for it: 15
// + 10 + 10 + 20 ms. With all reads known the view still waits for the user and the permission, and
// the price for the view.
func TestEffectsHoldWhatFollows(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{})
		conn := s.dial("front", s.back(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...))
		s.visit(50, &page{back: conn, view: true}, observe.UnaryServerInterceptor(ctl))
		q := only(s.t, collector.Report(ctl))
		want(s.t, "mean", q.Latency.MeanMS, 55, 1e-9)
		// User and permission at once take 15 ms, then the view 10 and the price 20. The first
		// visit guesses nothing, the tenth has no guess for the permission of a new plan; those
		// after a change know the permission but not the user, which saves nothing: it is asked
		// after 15 ms, as ever, and the view waits for it.
		want(s.t, "saved", q.Foreseen.SavedMS, 40*10/50.0, 1e-9)
		view := methodOf(s.t, q, recordView)
		if view.Verdict != observe.HasEffects || view.Configure != "" || view.Effect != "immediate" {
			s.t.Errorf("RecordView: %s, %s, %s (%s)", view.Effect, view.Verdict, view.Why, view.Configure)
		}
	})
}

// TestCanaryIsCompared: a request's id decides its side, and the report compares them.
func TestCanaryIsCompared(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{Budget: -1})
		sites := predictors()
		for i := range sites {
			sites[i].Mode, sites[i].Share = control.ModeCanary, 0.5
		}
		conn := s.dial("front", s.registered(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(sites...))
		task := func(ctx context.Context, f func(ctx context.Context) (*kvpb.GetResponse, error)) (*kvpb.GetResponse, error) {
			return foresay.Do(ctx, f)
		}
		n := 0
		number := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			n++
			return handler(metadata.NewIncomingContext(ctx, metadata.Pairs("x-request-id", fmt.Sprint("request ", n))), req)
		}
		s.visit(200, &page{back: conn, wrap: task}, number, observe.UnaryServerInterceptor(ctl))
		r := collector.Report(ctl)
		q := only(s.t, r)
		c := q.Canary
		if c == nil || c.On.Requests+c.Off.Requests != 200 || c.On.Requests < 80 || c.Off.Requests < 80 || c.MeanMS == nil ||
			c.P50MS == nil || c.FailedShare == nil {
			s.t.Fatalf("canary %+v", c)
		}
		if q.Realised == nil || q.Realised.Requests != c.On.Requests || q.Foreseen.Requests != c.Off.Requests {
			s.t.Errorf("realised %+v, foreseen %+v; want the two sides", q.Realised, q.Foreseen)
		}
		want(s.t, "p50 off", c.Off.Latency.P50MS, 45, 0.45)
		want(s.t, "p50 on", c.On.Latency.P50MS, 20, 0.2)
		want(s.t, "p50, on less off", c.P50MS.Value, -25, 0.65)
		want(s.t, "mean, on less off", c.MeanMS.Value, c.On.Latency.MeanMS-c.Off.Latency.MeanMS, 1e-6)
		if c.MeanMS.Low > c.MeanMS.Value || c.MeanMS.High < c.MeanMS.Value || c.MeanMS.High > -15 {
			s.t.Errorf("mean %+v", *c.MeanMS)
		}
		if !strings.Contains(c.Summary, "lower with speculation") || !strings.Contains(c.Summary, "fail as often") {
			s.t.Errorf("summary: %s", c.Summary)
		}
		if says := fmt.Sprintf(", by the canary of %d requests on and %d off", c.On.Requests,
			c.Off.Requests); !strings.HasPrefix(q.Summary, "speculation saves ") || !strings.HasSuffix(q.Summary, says) {
			s.t.Errorf("the headline is not what the canary measured: %s", q.Summary)
		}
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil {
			s.t.Fatal(err)
		}
		s.t.Log(b.String())
		data, err := json.Marshal(r)
		if err != nil {
			s.t.Fatal(err)
		}
		var back observe.Report
		if err := json.Unmarshal(data, &back); err != nil {
			s.t.Fatal(err)
		}
		again, err := json.Marshal(&back)
		if err != nil || !bytes.Equal(data, again) {
			s.t.Errorf("JSON does not come back as it was: %v\n%s", err, cmp.Diff(string(data), string(again)))
		}
	})
}

// TestOnWithoutTasks: a mode alone makes no call speculate, and the report says what is missing.
func TestOnWithoutTasks(t *testing.T) {
	inShop(t, func(s *shop) {
		collector, ctl := watched(s.t, control.Config{Budget: -1})
		conn := s.dial("front", s.back(), specgrpc.WithControl(ctl), specgrpc.WithCallSites(predictors()...),
			specgrpc.WithMode(control.ModeOn))
		s.visit(50, &page{back: conn}, observe.UnaryServerInterceptor(ctl))
		m := methodOf(s.t, only(s.t, collector.Report(ctl)), check)
		if m.Verdict != observe.WorthIt || !strings.Contains(m.Why, "its mode is on, but no call was speculated") ||
			!strings.Contains(m.Why, "not through ObserveInterceptor") || m.Configure != "" {
			s.t.Errorf("%s: %s (%s)", m.Verdict, m.Why, m.Configure)
		}
	})
}

// TestBounds: however many names there are, what is kept is bounded, and the rest is under one
// name.
func TestBounds(t *testing.T) {
	c, err := observe.NewCollector(observe.Config{MaxRequests: 3, MaxMethods: 2})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		r := sequence(fmt.Sprint("GET /", i, strings.Repeat("x", 1000)), 10, 10)
		c.Record(r)
	}
	c.Record(&control.RequestRecord{Name: "strange", Duration: time.Second,
		Calls: []control.CallRecord{{Start: 2, End: 1}}})
	c.Record(&control.RequestRecord{Name: "strange", Duration: -1})
	c.Record(&control.RequestRecord{Name: "GET /0" + strings.Repeat("x", 1000), Missed: 7, Duration: time.Second})
	r := c.Report(nil)
	if len(r.Requests) != 4 || r.Broken != 2 || r.LeftOut != 7 {
		t.Fatalf("%d kinds, %d broken, %d left out; want 4, 2, 7", len(r.Requests), r.Broken, r.LeftOut)
	}
	total := int64(0)
	for _, q := range r.Requests {
		total += q.Requests
		if len(q.Methods) != 3 || len(q.Name) > 256 {
			t.Errorf("%.20s: %d methods, a name of %d bytes; want 3, at most 256", q.Name, len(q.Methods), len(q.Name))
		}
		other := methodOf(t, &q, observe.Other)
		if q.Name == observe.Other && (q.Requests != 97 || other.Calls != 97*8) {
			t.Errorf("%s: %d requests, %d calls; want 97, %d", q.Name, q.Requests, other.Calls, 97*8)
		}
	}
	if total != 101 {
		t.Errorf("%d requests, want 101", total)
	}
	for _, cfg := range []observe.Config{{MaxRequests: -1}, {MaxMethods: -1}, {Window: -1}, {MinSaving: -1}} {
		if _, err := observe.NewCollector(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

// TestWindows: the recent figures are those of the current window and the one before.
func TestWindows(t *testing.T) {
	inShop(t, func(s *shop) {
		c, err := observe.NewCollector(observe.Config{Window: time.Minute})
		if err != nil {
			s.t.Fatal(err)
		}
		record := func(n int, right bool) {
			for range n {
				r := sequence("GET /page", 2, 2)
				r.Start = time.Now().Add(-r.Duration)
				for i := range r.Calls {
					r.Calls[i].Right = right
				}
				c.Record(r)
			}
		}
		check := func(requests int64, hitRate float64) {
			s.t.Helper()
			q := only(s.t, c.Report(nil))
			if m := methodOf(s.t, q, "/shop.Service/Get0"); q.Recent.Requests != requests || m.RecentHitRate != hitRate {
				s.t.Errorf("recently %d requests, hit rate %v; want %d, %v", q.Recent.Requests, m.RecentHitRate, requests, hitRate)
			}
		}
		record(30, true)
		check(30, 1)
		time.Sleep(time.Minute)
		record(10, false)
		check(40, 0.75)
		time.Sleep(time.Minute)
		check(10, 0)
		time.Sleep(2 * time.Minute)
		check(0, 0)
		if q := only(s.t, c.Report(nil)); q.Requests != 40 {
			s.t.Errorf("%d in all, want 40", q.Requests)
		}
	})
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	c, ctl := watched(t, control.Config{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 200 {
				r := sequence(fmt.Sprint("GET /", j%5), 4, 4)
				r.Arm = control.Arm(i % 3)
				c.Record(r)
				if j%50 == 0 {
					var b bytes.Buffer
					if err := c.Report(ctl).WriteText(&b); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	total := int64(0)
	for _, q := range c.Report(ctl).Requests {
		total += q.Requests
	}
	if total != 800 {
		t.Errorf("%d requests, want 800", total)
	}
}
