package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// ending30 returns a context that ends after 30 ms.
func ending30(t *testing.T, deadline bool) (context.Context, context.CancelFunc) {
	if deadline {
		return context.WithTimeout(t.Context(), 30*ms)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(30*ms, cancel)
	return ctx, cancel
}

// TestContextEndsOnAGuess: where the task's context ends, its code does what it would have done
// without guesses: it sees the call fail for which plain code waits then, and goes on as it likes.
func TestContextEndsOnAGuess(t *testing.T) {
	type program struct {
		run func(ctx context.Context, get func(ctx context.Context) error, put func(ctx context.Context, v int) error) (int,
			error)
		want int
		log  string
		took time.Duration
		fast bool // writes take no time
	}
	programs := map[string]program{
		"a fallback": {func(ctx context.Context, get func(context.Context) error, put func(context.Context, int) error) (int,
			error) {
			if err := get(ctx); err != nil {
				return 7, nil
			}
			return 8, put(ctx, 2)
		}, 7, "[put a 1]", 30 * ms, false},
		"cleaning up": {func(ctx context.Context, get func(context.Context) error, put func(context.Context, int) error) (int,
			error) {
			if err := get(ctx); err != nil {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				return 7, put(ctx, 2)
			}
			return 8, nil
		}, 7, "[put a 1 put a 2]", 40 * ms, false},
		"going on regardless": {func(ctx context.Context, get func(context.Context) error,
			put func(context.Context, int) error) (int, error) {
			_ = get(ctx)
			if err := put(ctx, 2); err == nil || ctx.Err() == nil {
				return 8, fmt.Errorf("put: %v, context: %v", err, ctx.Err())
			}
			return 7, nil
		}, 7, "[put a 1]", 30 * ms, true},
		"looking before": {func(ctx context.Context, get func(context.Context) error, put func(context.Context, int) error) (
			int, error) {
			if ctx.Err() != nil {
				return 8, nil
			}
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			if err := put(inner, 2); err != nil || inner.Err() != nil {
				return 9, err
			}
			_ = get(ctx)
			if inner.Err() != ctx.Err() || context.Cause(inner) != context.Cause(ctx) {
				return 10, errors.Join(inner.Err(), ctx.Err())
			}
			return 7, nil
		}, 7, "[put a 1 put a 2]", 30 * ms, false},
		"a group": {func(ctx context.Context, get func(context.Context) error, put func(context.Context, int) error) (int,
			error) {
			g, n := NewGroup(ctx), 0
			g.Go(func(ctx context.Context) error {
				time.Sleep(5 * ms)
				if ctx.Err() == nil && put(ctx, 2) == nil {
					n = 7
				}
				return nil
			})
			g.Go(get)
			_ = g.Wait()
			return n, nil
		}, 7, "[put a 1 put a 2]", 35 * ms, false},
	}
	for name, p := range programs {
		for _, deadline := range []bool{false, true} {
			guesses := []int{-1, 0, 1} // none, right, wrong
			if p.fast {
				// Whether a write that was sent is answered before the end is heard is luck.
				guesses = slices.Repeat(guesses, 10)
			}
			for _, guess := range guesses {
				synctest.Test(t, func(t *testing.T) {
					w, slow, s := newWorld(10*ms), newWorld(100*ms), testCallSites(t)
					if p.fast {
						w.delay = 0
					}
					ctx, cancel := ending30(t, deadline)
					defer cancel()
					hooks, start := 0, time.Now()
					got, err := Do(ctx, func(ctx context.Context) (int, error) {
						put := func(ctx context.Context, v int) error {
							_, err := perform(ctx, w.op(t, s.put, "put a %d", v))
							return err
						}
						if err := put(ctx, 1); err != nil {
							return 0, err
						}
						OnCommit(ctx, func() { hooks++ })
						return p.run(ctx, func(ctx context.Context) error {
							if guess >= 0 {
								ctx = Predicting(ctx, guess)
							}
							_, err := perform(ctx, slow.op(t, s.get, "get b"))
							return err
						}, put)
					})
					took := p.took
					if guess < 0 {
						took = max(30*ms, min(took, 40*ms))
					}
					if got != p.want || err != nil || fmt.Sprint(w.log) != p.log || hooks != 1 || time.Since(start) > took {
						t.Errorf("%s, deadline %v, guess %d: got %v, %v after %v, want %v after %v; hooks ran %d times; log %v, want %s",
							name, deadline, guess, got, err, time.Since(start), p.want, took, hooks, w.log, p.log)
					}
				})
			}
		}
	}
}

// TestWaitingForTheEndAlone: code that waits for nothing but the end of the task's context
// is told of it, in a run that began after it, too.
func TestWaitingForTheEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, s := newWorld(100*ms), testCallSites(t)
		ctx, cancel := ending30(t, false)
		defer cancel()
		start := time.Now()
		got, err := Do(ctx, func(ctx context.Context) (int, error) {
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				_, err := perform(Predicting(ctx, 0), slow.op(t, s.get, "get b"))
				return err
			})
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
				t.Error("the context does not end")
			}
			err := g.Wait()
			return 7, errors.Join(err, context.Cause(ctx))
		})
		if got != 7 || !errors.Is(err, context.Canceled) || time.Since(start) > 30*ms+endsWithin {
			t.Errorf("got %v, %v after %v", got, err, time.Since(start))
		}
	})
}

// TestDeadlineOfACallSentOnAGuess: the context of an attempt that was sent on a guess has no
// deadline. A run that takes the call over, once the guess was right, ends with the task's
// context all the same.
func TestDeadlineOfACallSentOnAGuess(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			quick, never, s := newWorld(10*ms), newWorld(time.Hour), testCallSites(t)
			ctx, cancel := ending30(t, deadline)
			defer cancel()
			start := time.Now()
			got, err := Do(ctx, func(ctx context.Context) (int, error) {
				if _, err := perform(Predicting(ctx, 0), quick.op(t, s.get, "get a")); err != nil {
					return 0, err
				}
				if _, err := perform(Predicting(ctx, 0), never.op(t, s.get, "get b")); err == nil {
					return 0, errors.New("an answer")
				}
				return 7, ctx.Err()
			})
			if got != 7 || !errors.Is(err, ctx.Err()) || time.Since(start) > 30*ms {
				t.Errorf("deadline %v: got %v, %v after %v", deadline, got, err, time.Since(start))
			}
		})
	}
}

// TestAbandonedTask: a task that was abandoned ends at once, and its code is not run again to
// see that.
func TestAbandonedTask(t *testing.T) {
	for _, c := range []struct {
		cause error
		runs  int
	}{
		{nil, 2}, {fmt.Errorf("we know it elsewhere: %w", ErrAbandoned), 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			slow, s := newWorld(100*ms), testCallSites(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(30*ms, func() { cancel(c.cause) })
			runs, start := 0, time.Now()
			_, err := Do(ctx, func(ctx context.Context) (int, error) {
				runs++
				return perform(Predicting(ctx, 0), slow.op(t, s.get, "get a"))
			})
			if !errors.Is(err, context.Canceled) || !errors.Is(err, context.Cause(ctx)) || runs != c.runs ||
				time.Since(start) != 30*ms {
				t.Errorf("cause %v: %v after %v and %d runs", c.cause, err, time.Since(start), runs)
			}
		})
	}
}

// TestBelatedTimers: a belated context's timer ends with its task, or with its run.
func TestBelatedTimers(t *testing.T) {
	for _, returns := range []bool{false, true} { // before it comes to the call
		synctest.Test(t, func(t *testing.T) {
			slow, s := newWorld(100*ms), testCallSites(t)
			ctx, cancel := ending30(t, false)
			defer cancel()
			var timed []*belated
			_, err := Do(ctx, func(ctx context.Context) (int, error) {
				if b := laneOf(ctx).run.belated(); b != nil {
					if timed = append(timed, b); returns {
						return 0, context.Canceled
					}
				}
				return perform(Predicting(ctx, 0), slow.op(t, s.get, "get a"))
			})
			if !errors.Is(err, context.Canceled) || len(timed) != 1 {
				t.Fatalf("%v, %d runs", err, len(timed))
			}
			synctest.Wait()
			if b := timed[0]; b.timer == nil || b.timer.Stop() {
				t.Errorf("returns %v: its timer goes on", returns)
			}
		})
	}
}

// deaf is a context that does not end at its deadline, nor ever.
type deaf struct {
	context.Context
	deadline time.Time
	end      chan struct{}
}

func (o *deaf) Done() <-chan struct{} { return o.end }

func (o *deaf) Deadline() (time.Time, bool) { return o.deadline, true }

// TestDeadlineThatDoesNotEnd: a transport that tells of a failure after the deadline is not
// kept until the task's context says that it has ended, and nor is anything else: the bubble's
// end would find a goroutine.
func TestDeadlineThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site, start := testCallSites(t).get, time.Now()
		op := read(site, "a", time.Hour, val(2))
		told := &timedEnd{fakeTransport: op.Transport.(*fakeTransport)}
		op.Transport = told
		_, err := Do(&deaf{t.Context(), start.Add(30 * ms), make(chan struct{})}, func(ctx context.Context) (int, error) {
			_, err := Perform(ctx, op)
			return 0, err
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*ms+endsWithin || told.took != 30*ms {
			t.Errorf("%v after %v, told within %v", err, time.Since(start), told.took)
		}
	})
}

// timedEnd is a transport that notes how long it took until it had told of the end.
type timedEnd struct {
	*fakeTransport
	took time.Duration
}

func (f *timedEnd) Start(ctx context.Context, a *Attempt) {
	start := time.Now()
	<-ctx.Done()
	a.Finish(nil, ctx.Err())
	f.took = time.Since(start)
}

// TestDiscardedWhileItWaits: code of a run that is discarded while it waits for its context to
// end gets no result.
func TestDiscardedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := ending30(t, false)
		defer cancel()
		broken, quick, slow, s := errors.New("broken"), newWorld(0), newWorld(100*ms), testCallSites(t)
		_, _ = Do(ctx, func(ctx context.Context) (int, error) {
			l := laneOf(ctx)
			if l.run.belated() == nil {
				if _, err := perform(ctx, quick.op(t, s.put, "put a 1")); err != nil {
					return 0, err
				}
				return perform(Predicting(ctx, 0), slow.op(t, s.get, "get a"))
			}
			time.AfterFunc(ms, func() { l.run.task.end(ErrDiverged) })
			if v, err := l.run.task.agree(ctx, l, &call{late: true}, 1, broken); v != nil || !errors.Is(err, ErrDiverged) {
				t.Errorf("it got %v, %v", v, err)
			}
			return 0, nil
		})
	})
}

// TestLanesBesideTheEnd checks that the end of the task's context does not overtake the other
// goroutines of the run that begins then: they had come to their ends long before.
func TestLanesBesideTheEnd(t *testing.T) {
	type C = context.Context
	for name, lane := range map[string]func(ctx C) (int, error){
		"a future": func(ctx C) (int, error) {
			return Go(ctx, func(C) (int, error) { time.Sleep(5 * ms); return 7, nil }).Wait(ctx)
		},
		"code": func(ctx C) (int, error) {
			time.Sleep(5 * ms)
			return 7, ctx.Err()
		},
		"a group": func(ctx C) (n int, err error) {
			g := NewGroup(ctx)
			g.Go(func(ctx C) error { time.Sleep(5 * ms); n = 7; return ctx.Err() })
			err = g.Wait()
			return n, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t)
				ctx, cancel := context.WithTimeout(t.Context(), 100*ms)
				defer cancel()
				start := time.Now()
				_, err := Do(ctx, func(ctx C) (int, error) {
					g := NewGroup(ctx)
					g.Go(func(ctx C) error {
						_, err := l.call(ctx, l.get, "lost", time.Hour, "lost")
						if !errors.Is(err, context.DeadlineExceeded) && err != nil {
							t.Error(err)
						}
						return nil
					})
					g.Go(func(ctx C) error {
						_, err := lane(ctx)
						return err
					})
					return 0, g.Wait()
				})
				if took := time.Since(start); err != nil || took > 105*ms {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// TestOwnLimitBeforeTheEnd: a run that begins after the end of the task's context waits for a time
// limit of the code's own to run out once more. Nothing of it executes then, and yet the task's
// context has not ended for the code, which has not come to where it was.
func TestOwnLimitBeforeTheEnd(t *testing.T) {
	for _, deadline := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			slow, s := newWorld(100*ms), testCallSites(t)
			ctx, cancel := ending30(t, deadline)
			defer cancel()
			got, err := Do(ctx, func(ctx context.Context) (int, error) {
				limited, cancel := context.WithTimeout(ctx, 5*ms)
				defer cancel()
				if _, err := perform(limited, slow.op(t, s.get, "get a")); err == nil {
					return 8, nil
				}
				if ctx.Err() != nil {
					return 9, nil
				}
				if _, err := perform(Predicting(ctx, 1), slow.op(t, s.get, "get b")); err == nil || ctx.Err() == nil {
					return 10, nil
				}
				return 7, nil
			})
			if got != 7 || err != nil {
				t.Errorf("deadline %v: got %d, %v, want 7", deadline, got, err)
			}
		})
	}
}

// TestEndOfAGroupBeforeTheContext: a replay that begins as the task's context has ended repeats
// what was done before with a context that has not, also where a goroutine of a Group, or a future,
// comes to its end while all others wait.
func TestEndOfAGroupBeforeTheContext(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			slow, s := newWorld(100*ms), testCallSites(t)
			ctx, cancel := ending30(t, false)
			defer cancel()
			var never, beside error
			_, err := Do(ctx, func(ctx context.Context) (int, error) {
				g := NewGroup(ctx)
				g.Go(func(ctx context.Context) error {
					_, never = perform(Predicting(ctx, 1), slow.op(t, s.get, "get a"))
					return nil
				})
				g.Go(func(ctx context.Context) error {
					inner := NewGroup(ctx)
					inner.Go(func(context.Context) error { time.Sleep(ms); return nil })
					beside = inner.Wait()
					for range 5 {
						_, err := Go(ctx, func(context.Context) (int, error) { return 1, nil }).Wait(ctx)
						beside = errors.Join(beside, err, ctx.Err())
					}
					return nil
				})
				return 0, g.Wait()
			})
			if err != nil || never == nil || beside != nil {
				t.Errorf("the task: %v; the call that takes longer: %v; beside it: %v", err, never, beside)
			}
		})
	}
}
