package predict_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/predict"
)

// echo answers a request with itself after a while; "bad" is an error.
type echo struct {
	after time.Duration

	mu    sync.Mutex
	asked []string
}

func (e *echo) Start(ctx context.Context, a *driver.Attempt) {
	request := a.Operation().Request.(string)
	e.mu.Lock()
	e.asked = append(e.asked, request)
	e.mu.Unlock()
	go func() {
		select {
		case <-time.After(e.after):
		case <-ctx.Done():
			a.Finish(nil, ctx.Err())
			return
		}
		if request == "bad" {
			a.Finish(nil, errors.New("bad"))
			return
		}
		a.Finish("answer to "+request, nil)
	}()
}

func (*echo) Equal(p, a any) bool      { return p == a }
func (*echo) Same(a, b any) bool       { return a == b }
func (*echo) Accept(v any) (any, bool) { _, ok := v.(string); return v, ok }

func call(ctx context.Context, site *control.CallSite, e *echo, request string) (string, error) {
	v, err := driver.Perform(ctx, &driver.Operation{
		CallSite: site, Conn: "c", Identity: request, Request: request, CanSpeculate: true, Transport: e,
	})
	s, _ := v.(string)
	return s, err
}

// TestLearnsWhatIsConfirmed: nothing is learnt from a run that was discarded, nor
// before a run is confirmed, nor from errors; and what is learnt is the caller's.
func TestLearnsWhatIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := predict.LastValue(func(request string) string { return request }, 10)
		site := func(name string, p control.Predictor) *control.CallSite {
			s, err := control.NewCallSite(control.CallSiteConfig{
				Name: name, Mode: control.ModeOn, Effect: control.EffectNone, Predictors: []control.Predictor{p},
			})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first, second := site("first", predict.Constant("guess")), site("second", last)
		slow, quick := &echo{after: 50 * time.Millisecond}, &echo{after: 5 * time.Millisecond}
		ann := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ann")
		eve := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer eve")

		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err := foresay.Do(ann, func(ctx context.Context) (string, error) {
				a, err := call(ctx, first, slow, "x")
				if err != nil {
					return "", err
				}
				if _, err := call(ctx, second, quick, "bad"); err == nil {
					return "", errors.New("bad is no error")
				}
				return call(ctx, second, quick, a)
			})
			if got != "answer to answer to x" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}()
		time.Sleep(30 * time.Millisecond)
		quick.mu.Lock()
		if !slices.Contains(quick.asked, "guess") {
			t.Errorf("what the guess leads to was not asked, only %q", quick.asked)
		}
		quick.mu.Unlock()
		if got := last.Predict(ann, "guess"); got != nil {
			t.Errorf("an unconfirmed run taught %v", got)
		}
		<-done
		synctest.Wait()
		for _, request := range []string{"guess", "bad"} {
			if got := last.Predict(ann, request); got != nil {
				t.Errorf("%q taught %v", request, got)
			}
		}
		if got := last.Predict(ann, "answer to x"); len(got) != 1 || got[0] != "answer to answer to x" {
			t.Errorf("the confirmed call taught %v", got)
		}
		if got := last.Predict(eve, "answer to x"); got != nil {
			t.Errorf("somebody else is predicted %v", got)
		}
	})
}
