package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// lingering takes a while to end after its context has, as a call with an interceptor may.
type lingering struct{ fakeTransport }

func (l *lingering) Blocking() {}

func (l *lingering) Start(ctx context.Context, a *Attempt) {
	select {
	case <-time.After(l.delay):
		a.Finish(l.answer())
	case <-ctx.Done():
		time.Sleep(10 * ms)
		a.Finish(nil, ctx.Err())
	}
}

// TestCancelledBesideOthers: a goroutine whose call is cancelled, and waits for the end of it,
// takes nothing from the calls that another one makes meanwhile.
func TestCancelledBesideOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone})
		get := func(ctx context.Context, key string, delay time.Duration) error {
			op := read(site, key, delay, val(key))
			op.Transport = &lingering{fakeTransport{delay, val(key)}}
			_, err := Perform(ctx, op)
			return err
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			var wg sync.WaitGroup
			wg.Go(func() {
				for range 5 {
					if err := get(ctx, "read", 2*ms); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() {
				time.Sleep(ms) // Do's goroutine carries the other one's call
				d, cancel := context.WithCancel(ctx)
				defer time.AfterFunc(2*ms, cancel).Stop()
				if err := get(d, "cancelled", 50*ms); err == nil {
					t.Error("a call that was cancelled succeeded")
				}
			})
			wg.Wait()
			return 0, nil
		})
		if took := time.Since(start); err != nil || took != 13*ms {
			t.Errorf("the task took %v, want 13ms: %v", took, err)
		}
		time.Sleep(time.Second)
	})
}
