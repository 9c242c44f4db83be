package report_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

const millisecond = time.Millisecond

// reply is how a scripted server treats one call.
type reply struct {
	after time.Duration
	value any
	err   error
	early map[time.Duration]any // the server's predictions
}

func (r *reply) Start(ctx context.Context, a *driver.Attempt) {
	for after, v := range r.early {
		time.AfterFunc(after, func() { a.Predict(v) })
	}
	go func() {
		select {
		case <-time.After(r.after):
			a.Finish(r.value, r.err)
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
		}
	}()
}

func (r *reply) Equal(prediction, actual any) bool { return prediction == actual }
func (r *reply) Same(a, b any) bool                { return a == b }
func (r *reply) Accept(v any) (any, bool)          { return v, true }

// shop is a service whose calls answer as scripted.
type shop struct{ t *testing.T }

func (s *shop) call(
	ctx context.Context, method, request string, effect control.Effect, r reply, guesses ...any,
) (any, error) {
	site, err := control.NewCallSite(control.CallSiteConfig{Name: "/shop.v1." + method, Mode: control.ModeOn,
		Effect: effect})
	if err != nil {
		s.t.Error(err)
	}
	return driver.Perform(foresay.Predicting(ctx, guesses...), &driver.Operation{
		CallSite: site, Conn: "shop", Identity: request, Request: request, Transport: &r,
		CanSpeculate: effect != control.EffectImmediate,
	})
}

// record runs f as a task in a bubble of virtual time and returns its report.
func record(t *testing.T, name string, f func(ctx context.Context, s *shop) (any, error)) *report.Report {
	var told *report.Report
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t}
		_, err := foresay.Do(t.Context(), func(ctx context.Context) (any, error) { return f(ctx, s) },
			foresay.WithName(name), foresay.WithReport(func(r *report.Report) { told = r }))
		if err != nil && !errors.Is(err, errShop) {
			t.Errorf("%s: %v", name, err)
		}
		time.Sleep(time.Second) // what a discarded run left behind ends
	})
	if told == nil {
		t.Fatalf("%s: no report", name)
	}
	return told
}

var errShop = errors.New("rpc error: code = NotFound desc = no such article")

// purchase reads a user (predicted rightly by the client), a price (wrongly) and
// the stock (rightly by the server), orders, and at last makes two calls at once.
func purchase(ctx context.Context, s *shop) (any, error) {
	user, err := s.call(ctx, "Users/Get", "me", control.EffectNone, reply{after: 10 * millisecond, value: "ann"}, "ann")
	if err != nil {
		return nil, err
	}
	price, err := s.call(ctx, "Prices/Get", user.(string), control.EffectNone, reply{after: 13 * millisecond, value: 225},
		250)
	if err != nil {
		return nil, err
	}
	stock := reply{after: 15 * millisecond, value: "in stock", early: map[time.Duration]any{2 * millisecond: "in stock"}}
	if _, err := s.call(ctx, "Stock/Get", fmt.Sprint("tea at ", price), control.EffectNone, stock); err != nil {
		return nil, err
	}
	if _, err := s.call(ctx, "Orders/Put", "tea", control.EffectImmediate,
		reply{after: 8 * millisecond, value: "done"}); err != nil {
		return nil, err
	}
	g := foresay.NewGroup(ctx)
	for i, method := range []string{"Mail/Render", "Log/Format"} {
		g.Go(func(ctx context.Context) error {
			time.Sleep(time.Duration(i) * millisecond / 2)
			_, err := s.call(ctx, method, "tea", control.EffectNone, reply{after: time.Duration(4+i) * millisecond,
				value: "text"})
			return err
		})
	}
	return nil, g.Wait()
}

// siblings takes two predictions for one call, of which the second is right.
func siblings(ctx context.Context, s *shop) (any, error) {
	v, err := s.call(ctx, "Replicas/Nearest", "", control.EffectNone, reply{after: 9 * millisecond, value: "east"}, "west",
		"east")
	if err != nil {
		return nil, err
	}
	if v == "east" {
		synctest.Wait() // the other run makes its call first
	}
	return s.call(ctx, "Articles/Get", v.(string), control.EffectNone, reply{after: 6 * millisecond, value: "tea"})
}

// failing gets an error where a response was predicted.
func failing(ctx context.Context, s *shop) (any, error) {
	return s.call(ctx, "Articles/Get", "unicorn", control.EffectNone, reply{after: 5 * millisecond, err: errShop}, "horse")
}

// right has all its calls predicted rightly.
func right(ctx context.Context, s *shop) (any, error) {
	for _, r := range []string{"a", "b", "c", "d"} {
		if _, err := s.call(ctx, "Keys/Get", r, control.EffectNone, reply{after: 10 * millisecond, value: r}, r); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// TestReport checks what reports say of real tasks.
func TestReport(t *testing.T) {
	r := record(t, "siblings", siblings)
	if got, want := len(r.Runs), 2; got != want {
		t.Fatalf("%d runs, want %d", got, want)
	}
	if first := r.Runs[0]; first.State != "discarded" || first.RefutedBy != 1 || first.Cause != 0 || first.ReplayOf != 0 {
		t.Errorf("first run: %+v", first)
	}
	if second := r.Runs[1]; second.State != "confirmed" || second.Cause != 1 || second.ReplayOf != 0 {
		t.Errorf("sibling: %+v", second)
	}
	if r.Duration != 9*millisecond || r.Calls[0].Match != 1 || r.Calls[0].Answered != 9*millisecond {
		t.Errorf("report: %+v", r)
	}

	r = record(t, "purchase", purchase)
	if got, want := len(r.Runs), 2; got != want {
		t.Fatalf("%d runs, want %d", got, want)
	}
	if replay := r.Runs[1]; replay.Cause != 2 || replay.ReplayOf != 1 || replay.Started != 13*millisecond ||
		!replay.Steps[0].Adopted {
		t.Errorf("replay: %+v", replay)
	}
	if r.Duration != 41500*time.Microsecond {
		t.Errorf("took %v", r.Duration)
	}

	r = record(t, "failing", failing)
	if r.Outcome != "confirmed" || r.Calls[0].Error == "" || r.Runs[0].RefutedBy != 1 {
		t.Errorf("report: %+v", r)
	}
}
