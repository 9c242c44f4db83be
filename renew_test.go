package foresay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestBarrierThatIsGivenUp: code that gave a barrier up and returned is not run again,
// although a time limit ran there.
func TestBarrierThatIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y", Speculative: true, Replayable: true})
		var log []string
		_, _ = h.Run(func(ctx context.Context) (any, error) {
			log = append(log, "run")
			OnCommit(ctx, func() { log = append(log, "commit") })
			OnRollback(ctx, func() { log = append(log, "rollback") })
			short, cancel := context.WithTimeout(ctx, time.Second)
			time.AfterFunc(10*time.Millisecond, cancel)
			return nil, Barrier(short)
		})
		h.Confirm()
		_ = h.Finish()
		synctest.Wait()
		if want := []string{"run", "commit"}; !slices.Equal(log, want) {
			t.Errorf("%v, not %v", log, want)
		}
	})
}

// endless is a read that never answers. Its time limit begins when its caller is right.
type endless struct{ fakeTransport }

func (e *endless) Start(ctx context.Context, a *Attempt) {
	ctx, cancel := context.WithCancelCause(ctx)
	a.OnResolve(func(bool) {
		if limit := a.Limit(); limit > 0 {
			time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
		}
	})
	go func() {
		<-ctx.Done()
		a.Finish(nil, context.Cause(ctx))
	}()
}

// TestLimitThatRanOut: code that is told that its time limit is over makes no call with the same
// limit any more, although it also waited for a guess: a doubter, which starts 60 ms after
// the read, has what the first run made before in no time, and so its limit is over later.
func TestLimitThatRanOut(t *testing.T) {
	for at := 62 * ms; at < 110*ms; at += 5 * ms {
		synctest.Test(t, func(t *testing.T) {
			w, s := newWorld(10*ms), testSites(t)
			_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				if _, err := perform(Predicting(ctx, 1), read(s.get, "right", at, val(1))); err != nil {
					return 0, err
				}
				limited, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if _, err := perform(limited, read(s.get, "in between", 20*ms, val(1))); err != nil {
					return 0, err
				}
				_, err := perform(Predicting(limited, 1), &Operation{Site: s.get, Identity: "never", CanSpeculate: true, Transport: new(endless)})
				time.Sleep(ms)
				if _, late := perform(limited, w.op(t, s.put, "put k 1")); err == nil || late == nil {
					return 0, fmt.Errorf("%v, %v", err, late)
				}
				return 0, nil
			})
			if err != nil || len(w.log) > 0 {
				t.Errorf("the first guess was right after %v: %v, %v", at, err, w.log)
			}
		})
	}
}
