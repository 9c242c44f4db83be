package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// TestCancelOnAGuess: what code cancels on a wrong guess is not the call's
// result for the run that takes its place.
func TestCancelOnAGuess(t *testing.T) {
	get := func(ctx context.Context, s *control.CallSite, id string, d time.Duration, v int) (int, error) {
		return perform(ctx, read(s, id, d, val(v)))
	}
	programs := map[string]func(ctx context.Context, s *control.CallSite) (int, error){
		"a future whose prediction was taken": func(ctx context.Context, s *control.CallSite) (int, error) {
			return Go(ctx, func(ctx context.Context) (int, error) { return get(ctx, s, "a", 10*ms, 7) }, Guess(7)).Wait(ctx)
		},
		"a future that a wrong run did not wait for": func(ctx context.Context, s *control.CallSite) (int, error) {
			f := Go(ctx, func(ctx context.Context) (int, error) { return get(ctx, s, "a", 10*ms, 7) })
			v, err := get(Predicting(ctx, 1), s, "b", 5*ms, 2)
			if err != nil || v == 1 {
				return 0, err
			}
			return f.Wait(ctx)
		},
		"a future that another one's code will wait for": func(ctx context.Context, s *control.CallSite) (int, error) {
			return Go(ctx, func(ctx context.Context) (int, error) {
				inner := Go(ctx, func(ctx context.Context) (int, error) { return get(ctx, s, "a", 10*ms, 7) })
				time.Sleep(ms)
				all, err := All(inner).Wait(ctx)
				if err != nil {
					return 0, err
				}
				return all[0], nil
			}, Guess(7)).Wait(ctx)
		},
		"a group's function": func(ctx context.Context, s *control.CallSite) (int, error) {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			out := 0
			g := NewGroup(inner)
			g.Go(func(ctx context.Context) (err error) {
				out, err = get(ctx, s, "a", 10*ms, 7)
				return err
			})
			v, err := get(Predicting(ctx, 1), s, "b", 5*ms, 2)
			if err != nil {
				return 0, err
			}
			if v == 1 {
				cancel()
			}
			if err := g.Wait(); err != nil {
				return 0, err
			}
			return out, nil
		},
	}
	for name, f := range programs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := testCallSites(t)
				start := time.Now()
				got, err := Do(t.Context(), func(ctx context.Context) (int, error) { return f(ctx, s.get) })
				if d := time.Since(start); got != 7 || err != nil || d > 15*ms {
					t.Error(got, err, d)
				}
			})
		})
	}
}

// TestEndedContext: a call with a context that the code itself has ended fails
// at once, whatever is predicted for it, and is not made.
func TestEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			return perform(Predicting(ended, 1), w.op(t, s.put, "put a 1"))
		})
		if !errors.Is(err, context.Canceled) || len(w.log) != 0 {
			t.Fatal(err, w.log)
		}
	})
}

// TestWhatHappenedBeforeTheDeadline: a run that begins when the task's context has ended comes too
// late for what took effect before, where code of its own takes time. The task ends with the
// context's error then, and not with a result of a run that says that nothing was done, whether it
// was in the function itself or in a future's code.
func TestWhatHappenedBeforeTheDeadline(t *testing.T) {
	for _, forked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w, s := newWorld(100*ms), testCallSites(t)
			ctx, cancel := context.WithTimeout(t.Context(), 240*ms)
			defer cancel()
			v, err := Do(ctx, func(ctx context.Context) (string, error) {
				done := "nothing"
				write := func(ctx context.Context) error {
					slow := Go(ctx, func(context.Context) (bool, error) {
						time.Sleep(50 * ms)
						return true, nil
					})
					if _, err := slow.Wait(ctx); err != nil {
						return nil
					}
					if _, err := perform(ctx, w.op(t, s.put, "put a 2")); err == nil {
						done = "put"
					}
					return nil
				}
				if forked {
					g := NewGroup(ctx)
					g.Go(write)
					_ = g.Wait()
				} else {
					_ = write(ctx)
				}
				_, _ = perform(Predicting(ctx, 9), w.op(t, s.get, "get b")) // it takes longer than there is time
				return done, nil
			})
			if len(w.log) == 0 || err == nil && v != "put" || err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("in a group: %v: the task says %q, %v; the calls were %v", forked, v, err, w.log)
			}
		})
	}
}

// TestHookOrder: commit hooks run in program order, also where a continuation
// ran ahead of the future that it depends on.
func TestHookOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		var log []string
		note := func(ctx context.Context, what string) { OnCommit(ctx, func() { log = append(log, what) }) }
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			note(ctx, "1")
			f := Go(ctx, func(ctx context.Context) (int, error) {
				v, err := perform(ctx, w.op(t, s.get, "get a"))
				note(ctx, "2")
				return v, err
			}, Guess(0))
			g := NewGroup(ctx)
			for _, what := range []string{"4", "5"} {
				g.Go(func(ctx context.Context) error {
					if what == "4" {
						time.Sleep(ms)
					}
					note(ctx, what)
					return nil
				})
			}
			if _, err := f.Wait(ctx); err != nil {
				return 0, err
			}
			note(ctx, "3")
			err := g.Wait()
			note(ctx, "6")
			return 0, err
		})
		if got := strings.Join(log, ""); err != nil || got != "123456" {
			t.Fatal(err, got)
		}
	})
}

// TestPanicsAreNoSuccess: neither Any nor Quorum takes a panic for a value.
func TestPanicsAreNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := func() *Future[int] {
			return Go(t.Context(), func(context.Context) (int, error) { panic("bad") })
		}
		good := func() *Future[int] {
			return Go(t.Context(), func(context.Context) (int, error) { time.Sleep(ms); return 7, nil })
		}
		if v, err := Any(bad(), good()).Wait(t.Context()); v != 7 || err != nil {
			t.Error(v, err)
		}
		if v, err := Quorum(2, nil, bad(), bad(), good(), good()).Wait(t.Context()); v != 7 || err != nil {
			t.Error(v, err)
		}
		failed := Go(t.Context(), func(context.Context) (int, error) { return 0, errors.New("no") })
		if v, err := Quorum(1, nil, failed, good()).Wait(t.Context()); v != 7 || err != nil {
			t.Error(v, err)
		}
	})
}

// TestGoWithEndedContext settles.
func TestGoWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			f := Go(ctx, func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
			if _, err := f.Wait(t.Context()); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	})
}

// TestMemoOutlivesItsRun: the end of the run that computes a value does not spoil it.
func TestMemoOutlivesItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := perform(Predicting(ctx, 9), w.op(t, s.get, "get a")); err != nil {
				return 0, err
			}
			return Memo(ctx, "m", func(ctx context.Context) (int, error) {
				select {
				case <-time.After(50 * ms):
					return 5, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			})
		})
		if got != 5 || err != nil {
			t.Fatal(got, err)
		}
	})
}
