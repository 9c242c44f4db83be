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

// TestContextThatTheCodeEnded: Act, Barrier and Memo with a context that the code has ended before do what they do in plain
// code, which need not look at it, whether a guess is open, right or wrong.
func TestContextThatTheCodeEnded(t *testing.T) {
	for _, guess := range []int{0, 1, 2} { // none, right, wrong
		for try := range 20 { // Memo chose at random
			synctest.Test(t, func(t *testing.T) {
				s, acts, commits := testSites(t), 0, 0
				got, err := Do(t.Context(), func(ctx context.Context) (string, error) {
					c := ctx
					if guess > 0 {
						c = Predicting(ctx, guess)
					}
					if _, err := perform(c, read(s.get, "x", 20*ms, val(1))); err != nil {
						return "", err
					}
					OnCommit(ctx, func() { commits++ })
					ended, cancel := context.WithCancel(ctx)
					cancel()
					m, errM := Memo(ended, "m", func(context.Context) (string, error) { return "memo", nil })
					a, errA := Act(ended, "a", func(ctx context.Context) (string, error) {
						acts++
						return fmt.Sprint("act ", ctx.Err()), nil
					})
					errB := Barrier(ended)
					again, errAgain := Memo(ended, "m", func(context.Context) (string, error) { return "memo", nil })
					return fmt.Sprint(m, errM, a, errA, errB, again, errAgain), nil
				})
				if want := fmt.Sprint("memo", nil, "act context canceled", nil, nil, "memo", nil); got != want || err != nil || acts != 1 || commits != 1 {
					t.Errorf("guess %d, try %d: %q, %v, %d acts, %d commits; want %q", guess, try, got, err, acts, commits, want)
				}
			})
		}
	}
}
