package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestBarrierThatIsCancelled: code that cancels a barrier while it waits passes it once its
// caller is right, as plain code would have at once. Since a time limit ran there, it passes
// in a run that does not wait.
func TestBarrierThatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y", Speculative: true, Replayable: true})
		var log []string
		time.AfterFunc(20*time.Millisecond, h.Confirm)
		_, err := h.Run(func(ctx context.Context) (any, error) {
			log = append(log, "run")
			OnCommit(ctx, func() { log = append(log, "commit") })
			OnRollback(ctx, func() { log = append(log, "rollback") })
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			time.AfterFunc(10*time.Millisecond, cancel)
			return nil, Barrier(short)
		})
		if err == nil {
			err = h.Finish()
		}
		synctest.Wait()
		if want := []string{"run", "rollback", "run", "commit"}; err != nil || !slices.Equal(log, want) {
			t.Errorf("%v, %v, not %v", err, log, want)
		}
		time.Sleep(time.Second)
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
			w, s := newWorld(10*ms), testCallSites(t)
			_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				if _, err := perform(Predicting(ctx, 1), read(s.get, "right", at, val(1))); err != nil {
					return 0, err
				}
				limited, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if _, err := perform(limited, read(s.get, "in between", 20*ms, val(1))); err != nil {
					return 0, err
				}
				_, err := perform(Predicting(limited, 1), &Operation{CallSite: s.get, Identity: "never", CanSpeculate: true,
					Transport: new(endless)})
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

// TestContextThatTheCodeEnded: Act, Barrier and Memo with a context that the code has ended before
// do what they do in plain code, which need not look at it, whether a guess is open, right or
// wrong.
func TestContextThatTheCodeEnded(t *testing.T) {
	for _, guess := range []int{0, 1, 2} { // none, right, wrong
		for try := range 20 { // Memo chose at random
			synctest.Test(t, func(t *testing.T) {
				s, acts, commits := testCallSites(t), 0, 0
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
				if want := fmt.Sprint("memo", nil, "act context canceled", nil, nil, "memo", nil); got != want || err != nil ||
					acts != 1 || commits != 1 {
					t.Errorf("guess %d, try %d: %q, %v, %d acts, %d commits; want %q", guess, try, got, err, acts, commits, want)
				}
			})
		}
	}
}

// TestCodeEndsTheContextMeanwhile: code cancels the context of a Barrier or an Act that waits for
// its guesses, where plain code would have passed already. The Act's function sees the end as late
// as there: after 5 ms of the 10 that it takes, or after it returned.
func TestCodeEndsTheContextMeanwhile(t *testing.T) {
	for _, guess := range []int{0, 1, 2} { // none, right, wrong
		for _, takes := range []time.Duration{ms, 10 * ms} {
			synctest.Test(t, func(t *testing.T) {
				s, acts := testCallSites(t), 0
				got, err := Do(t.Context(), func(ctx context.Context) (string, error) {
					c := ctx
					if guess > 0 {
						c = Predicting(ctx, guess)
					}
					if _, err := perform(c, read(s.get, "x", 20*ms, val(1))); err != nil {
						return "", err
					}
					d, cancel := context.WithCancel(ctx)
					defer cancel()
					time.AfterFunc(5*ms, cancel)
					var errB error
					g := NewGroup(ctx)
					g.Go(func(context.Context) error {
						errB = Barrier(d)
						return nil
					})
					a, errA := Act(d, "a", func(ctx context.Context) (string, error) {
						acts++
						select {
						case <-time.After(takes):
						case <-ctx.Done():
						}
						return fmt.Sprint("act ", ctx.Err()), nil
					})
					_ = g.Wait()
					return fmt.Sprint(a, errA, errB, d.Err() != nil), nil
				})
				want := fmt.Sprint(fmt.Sprint("act ", error(nil)), nil, nil, guess == 1)
				if takes > 5*ms {
					want = fmt.Sprint("act context canceled", nil, nil, true)
				}
				if got != want || err != nil || acts != 1 {
					t.Errorf("guess %d, takes %v: %q, %v, %d acts, want %q", guess, takes, got, err, acts, want)
				}
				time.Sleep(time.Second)
			})
		}
	}
}
