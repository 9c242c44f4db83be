package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// lastingCase is a blockingCase that has an answer after its delay, or none if that is 0,
// and that ends with its context.
type lastingCase struct{ blockingCase }

func (l *lastingCase) Start(ctx context.Context, a *Attempt) {
	var answer <-chan time.Time
	if l.delay > 0 {
		answer = time.After(l.delay)
	}
	select {
	case <-ctx.Done():
		a.Finish(nil, ctx.Err())
	case <-answer:
		a.Finish(l.answer())
	}
}

// TestAttemptsWithoutAnEndOfTheirOwn: what Do's goroutine carries ends with the context that
// Do was given, and before that if nobody wants it any more, which may be where it was not
// made in the run's own context, or where another goroutine of the run began before.
func TestAttemptsWithoutAnEndOfTheirOwn(t *testing.T) {
	call := func(ctx context.Context, s *control.CallSite, key string, delay time.Duration, guess any) (any, error) {
		return Perform(Predicting(ctx, guess), &Operation{
			CallSite: s, Identity: key, CanSpeculate: true,
			Transport: &lastingCase{blockingCase{fakeTransport{delay, val("answer")}}},
		})
	}
	t.Run("of the task", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := callSiteCase(t, mustControl(t, control.Config{}), control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn,
				Effect: control.EffectNone})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*ms, cancel)
			start := time.Now()
			_, err := Do(ctx, func(ctx context.Context) (any, error) { return call(ctx, s, "a", 0, "guess") })
			if took := time.Since(start); took != 10*ms || err == nil {
				t.Errorf("took %v, %v; want an error after 10ms, when the context ended", took, err)
			}
		})
	})
	t.Run("of a call that only a wrong guess leads to", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := callSiteCase(t, mustControl(t, control.Config{}), control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn,
				Effect: control.EffectNone})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			start := time.Now()
			v, err := Do(ctx, func(ctx context.Context) (any, error) {
				g, said := NewGroup(ctx), make(chan string, 1)
				g.Go(func(ctx context.Context) error {
					v, err := Perform(Predicting(ctx, "wrong"), &Operation{
						CallSite: s, Identity: "b", CanSpeculate: true, Transport: &fakeTransport{10 * ms, val("right")},
					})
					if err == nil {
						said <- v.(string)
					}
					return err
				})
				key, delay := <-said, 5*ms
				if key == "wrong" {
					delay = 0
				}
				v, err := call(ctx, s, key, delay, "answer")
				if err == nil {
					err = g.Wait()
				}
				return v, err
			})
			if took := time.Since(start); took > 20*ms || err != nil || v != "answer" {
				t.Errorf("%v, %v after %v; want the answer after 15ms: nobody wants the other call", v, err, took)
			}
		})
	})
	t.Run("of a goroutine that nobody waits for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := callSiteCase(t, mustControl(t, control.Config{}), control.CallSiteConfig{Name: "/s/a", Mode: control.ModeOn,
				Effect: control.EffectNone})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			start := time.Now()
			_, err := Do(ctx, func(ctx context.Context) (any, error) {
				go Perform(ctx, &Operation{
					CallSite: s, Identity: "a", CanSpeculate: true,
					Transport: &lastingCase{blockingCase{fakeTransport{0, val("answer")}}},
				})
				time.Sleep(ms)
				return nil, nil
			})
			if took := time.Since(start); took != ms || err != nil {
				t.Errorf("took %v, %v; want 1ms: nobody waits for the call", took, err)
			}
		})
	})
}
