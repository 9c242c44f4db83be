package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// TestCancellation: cancelling ends everything, whatever the task waits for.
func TestCancellation(t *testing.T) {
	for _, when := range []time.Duration{0, 5 * ms, 15 * ms} {
		for _, deadline := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(10*ms), testCallSites(t)
				ctx, cancel := context.WithCancel(t.Context())
				if deadline {
					ctx, cancel = context.WithTimeout(t.Context(), when)
				} else {
					time.AfterFunc(when, cancel)
				}
				defer cancel()
				start := time.Now()
				_, err := Do(ctx, func(ctx context.Context) (int, error) {
					for i := range 3 {
						if _, err := perform(Predicting(ctx, i), w.op(t, s.get, "get a")); err != nil {
							return 0, err
						}
						if _, err := perform(ctx, w.op(t, s.put, "put a %d", i)); err != nil {
							return 0, err
						}
					}
					return 0, nil
				})
				if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if d := time.Since(start); d != when {
					t.Errorf("took %v, want %v", d, when)
				}
			})
		}
	}
}

// TestCallersCancelIsNoResult: defer cancel() after a prediction does not reach the call.
func TestCallersCancelIsNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"] = 1
		get := func(ctx context.Context) (int, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return perform(Predicting(ctx, 1), w.op(t, s.get, "get a"))
		}
		if got, err := Do(t.Context(), get); got != 1 || err != nil {
			t.Fatal(got, err)
		}
	})
}

// TestLocalExpiryIsNoResult: a time limit that runs out only because the code ran
// ahead starts anew when the call is really made.
func TestLocalExpiryIsNoResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(100*ms), testCallSites(t)
		quick := newWorld(10 * ms)
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get a")); err != nil {
				return 0, err
			}
			ctx, cancel := context.WithTimeout(ctx, 20*ms)
			defer cancel()
			return perform(ctx, quick.op(t, s.put, "put a 1"))
		})
		if err != nil || time.Since(start) != 110*ms {
			t.Fatal(err, time.Since(start))
		}
	})
}

// TestExpiryAtABarrier: nor does it run out while the code waits at a barrier.
func TestExpiryAtABarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(30*ms), testCallSites(t)
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get a")); err != nil {
				return 0, err
			}
			if _, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get a")); err != nil {
				return 0, err
			}
			limited, cancel := context.WithTimeout(ctx, 20*ms)
			defer cancel()
			if err := Barrier(limited); err != nil {
				return 0, err
			}
			quick := newWorld(10 * ms)
			limited, cancel = context.WithTimeout(ctx, 20*ms)
			defer cancel()
			return perform(limited, quick.op(t, s.put, "put a 1"))
		})
		if err != nil || time.Since(start) != 40*ms {
			t.Fatal(err, time.Since(start))
		}
	})
}

// TestEnded: a context does not outlive its task.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		var kept context.Context
		if _, err := Do(t.Context(), func(ctx context.Context) (int, error) { kept = ctx; return 0, nil }); err != nil {
			t.Fatal(err)
		}
		kept = context.WithoutCancel(kept)
		if _, err := perform(kept, w.op(t, s.get, "get a")); !errors.Is(err, ErrEnded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestDiverged: a function that does not repeat its side effects is stopped.
func TestDiverged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		runs := 0
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			runs++
			if _, err := perform(ctx, w.op(t, s.put, "put a %d", runs)); err != nil {
				return 0, err
			}
			return perform(Predicting(ctx, 99), w.op(t, s.get, "get a"))
		})
		if !errors.Is(err, ErrDiverged) || !slices.Equal(w.log, []string{"put a 1"}) {
			t.Fatal(err, w.log)
		}
	})
}

// TestGroupLanes: each goroutine's calls are its own in a replay, in whatever
// order the goroutines run.
func TestGroupLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["k"] = 3
		runs := 0
		got, err := Do(t.Context(), func(ctx context.Context) ([2]int, error) {
			runs++
			run := runs
			var out [2]int
			g := NewGroup(ctx)
			for i := range out {
				g.Go(func(ctx context.Context) error {
					if (run+i)%2 == 0 {
						time.Sleep(ms)
					}
					v, err := perform(Predicting(ctx, 3), w.op(t, s.get, "get k"))
					if err != nil {
						return err
					}
					out[i], err = perform(ctx, w.op(t, s.put, "put k%d %d", i, v+i))
					return err
				})
			}
			if err := g.Wait(); err != nil {
				return out, err
			}
			_, err := perform(Predicting(ctx, 99), w.op(t, s.get, "get k"))
			return out, err
		})
		slices.Sort(w.log)
		if err != nil || got != [2]int{3, 4} || runs != 2 || !slices.Equal(w.log, []string{"put k0 3", "put k1 4"}) {
			t.Fatal(got, err, runs, w.log)
		}
	})
}

// TestSharedContext: goroutines that share a lane pin the run before it writes.
func TestSharedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		runs := 0
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			runs++
			var wg sync.WaitGroup
			var vs [2]int
			for i := range vs {
				wg.Go(func() { vs[i], _ = perform(Predicting(ctx, 0), w.op(t, s.get, "get k")) })
			}
			wg.Wait()
			if _, err := perform(ctx, w.op(t, s.put, "put k %d", vs[0])); err != nil {
				return 0, err
			}
			if State(ctx).Speculative {
				t.Error("speculative after a pin")
			}
			return perform(Predicting(ctx, 99), w.op(t, s.get, "get k"))
		})
		if err != nil || runs != 1 {
			t.Fatal(err, runs)
		}
	})
}

// TestSlowToRepeat: what a goroutine wrote at once it is to repeat in a replay, too, but may be
// kept from it for a while. What another one writes waits until then.
func TestSlowToRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		runs := 0
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			slow := time.Duration(runs) * 3 * time.Second
			runs++
			var wg sync.WaitGroup
			wg.Go(func() {
				time.Sleep(slow)
				_, _ = perform(ctx, w.op(t, s.put, "put a 1"))
			})
			wg.Go(func() {
				time.Sleep(20 * ms)
				_, _ = perform(ctx, w.op(t, s.put, "put b 1"))
				_, _ = perform(Predicting(ctx, 99), w.op(t, s.get, "get k"))
				_, _ = perform(ctx, w.op(t, s.put, "put c 1"))
			})
			wg.Wait()
			return 0, nil
		})
		if err != nil || runs != 2 || !slices.Equal(w.log, []string{"put a 1", "put b 1", "put c 1"}) {
			t.Errorf("%v in %d runs, %v", err, runs, w.log)
		}
	})
}

// TestGroupsInAnotherOrder: goroutines that share the task's context start their Groups in
// another order in each run, and the Groups' writes are sent before that can be noticed. A
// replay finds them under whatever name: each is sent once.
func TestGroupsInAnotherOrder(t *testing.T) {
	writes := func(keys ...string) []string { return keys }
	for name, tt := range map[string]struct {
		groups [][]string // what each writes; reads if nothing
		pause  time.Duration
	}{
		"noticed while they run":       {[][]string{writes("a"), writes("b"), writes("c")}, 5 * ms},
		"noticed by the replay":        {[][]string{writes("a", "b"), writes("c", "d"), writes("e")}, 50 * ms},
		"equal writes":                 {[][]string{writes("a", "b"), writes("a", "b"), writes("a", "c")}, 50 * ms},
		"one writes, the others read":  {[][]string{writes("a", "b"), nil, nil}, 50 * ms},
		"two of them write, one reads": {[][]string{writes("a", "b"), nil, writes("c")}, 50 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { groupsInAnotherOrder(t, tt.groups, tt.pause) })
		})
	}
}

func groupsInAnotherOrder(t *testing.T, groups [][]string, pause time.Duration) {
	w, s := newWorld(10*ms), testCallSites(t)
	runs := 0
	_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
		run := runs
		runs++
		var wg sync.WaitGroup
		for i, keys := range groups {
			wg.Go(func() {
				time.Sleep(time.Duration((run+i)%len(groups)) * ms)
				g := NewGroup(ctx)
				g.Go(func(ctx context.Context) error {
					if keys == nil {
						_, err := perform(ctx, w.op(t, s.get, "get x"))
						return err
					}
					for _, key := range keys {
						if _, err := perform(ctx, w.op(t, s.put, "put %s 1", key)); err != nil {
							return err
						}
					}
					return nil
				})
				time.Sleep(pause)
				_ = g.Wait()
			})
		}
		wg.Wait()
		return perform(Predicting(ctx, 99), w.op(t, s.get, "get k"))
	})
	var want []string
	for _, keys := range groups {
		for _, key := range keys {
			want = append(want, "put "+key+" 1")
		}
	}
	slices.Sort(want)
	if slices.Sort(w.log); err != nil || runs != 2 || !slices.Equal(w.log, want) {
		t.Errorf("%v in %d runs, %v, want %v", err, runs, w.log, want)
	}
}

// TestGroupReadsBeforeTheWriteAfterIt: goroutines on the task's context each read in a Group what
// they write after it. They come in another order in a replay, whose Groups have swapped names.
// Made anew the reading would see the writing, and code that computes on that would be in a run
// that is right.
func TestGroupReadsBeforeTheWriteAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		runs := 0
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			run := runs
			runs++
			var wg sync.WaitGroup
			for i, key := range []string{"a", "b"} {
				wg.Go(func() {
					time.Sleep(time.Duration((run+i)%2) * ms)
					g := NewGroup(ctx)
					g.Go(func(ctx context.Context) error {
						v, err := perform(ctx, w.op(t, s.get, "get %s", key))
						if err == nil && v != 0 {
							t.Errorf("run %d reads %s = %d before it writes that", run+1, key, v)
						}
						return err
					})
					time.Sleep(time.Duration(1+i) * 50 * ms) // so that no calls overlap in the first run
					if err := g.Wait(); err != nil {
						t.Error(err)
						return
					}
					if _, err := perform(ctx, w.op(t, s.put, "put %s 1", key)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			return perform(Predicting(ctx, 99), w.op(t, s.get, "get k"))
		})
		slices.Sort(w.log)
		if want := []string{"put a 1", "put b 1"}; err != nil || runs != 2 || !slices.Equal(w.log, want) {
			t.Errorf("%v in %d runs, %v, want %v", err, runs, w.log, want)
		}
	})
}

// TestGoroutineThatSleeps: in a replay a goroutine on the task's context sleeps before it
// repeats a write, while another one comes to its next write at once. That waits for the
// first, however long: the function has done nothing wrong.
func TestGoroutineThatSleeps(t *testing.T) {
	for _, sleep := range []time.Duration{20 * ms, 300 * ms, 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w, slow, s := newWorld(10*ms), newWorld(sleep+5*ms), testCallSites(t)
			put := func(ctx context.Context, key string) error {
				_, err := perform(ctx, w.op(t, s.put, "put %s 1", key))
				return err
			}
			_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				var wg sync.WaitGroup
				var errs [4]error
				wg.Go(func() {
					time.Sleep(sleep)
					errs[0] = put(ctx, "a")
				})
				wg.Go(func() {
					_, errs[1] = perform(ctx, slow.op(t, s.get, "get j"))
					_, errs[2] = perform(Predicting(ctx, 99), w.op(t, s.get, "get k"))
					errs[3] = put(ctx, "b")
				})
				wg.Wait()
				return 0, errors.Join(errs[:]...)
			}, WithLimits(control.Limits{AdoptGrace: ms}))
			if slices.Sort(w.log); err != nil || fmt.Sprint(w.log) != "[put a 1 put b 1]" {
				t.Errorf("after %v: %v, %v", sleep, w.log, err)
			}
		})
	}
}

// TestNestedDo joins the enclosing task.
func TestNestedDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			for range 3 {
				if _, err := Do(ctx, func(ctx context.Context) (int, error) {
					return perform(Predicting(ctx, 0), w.op(t, s.get, "get k"))
				}); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		if err != nil || time.Since(start) != 10*ms {
			t.Fatal(err, time.Since(start))
		}
	})
}

// TestGoexit: a function that ends its goroutine ends its caller's, if it was right.
func TestGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan bool, 1)
		go func() {
			defer func() { done <- true }()
			Do(t.Context(), func(context.Context) (int, error) { runtime.Goexit(); return 0, nil })
			t.Error("Do returned")
		}()
		<-done
	})
}

// TestDiscardedRunEnds: a discarded run's operations fail, and its goroutine is
// ended if it goes on for long.
func TestDiscardedRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		var causes []error
		ops := 0
		ended := make(chan bool)
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, _ := perform(Predicting(ctx, 5), w.op(t, s.get, "get k"))
			if v == 5 {
				defer close(ended)
				<-ctx.Done()
				causes = append(causes, context.Cause(ctx))
				for { // ignores its errors
					if _, err := perform(ctx, w.op(t, s.get, "get z%d", ops)); !errors.Is(err, ErrMisspeculated) {
						t.Error("no error in a discarded run:", err)
					}
					ops++
				}
			}
			return v, nil
		})
		if got != 0 || err != nil {
			t.Fatal(got, err)
		}
		<-ended
		if len(causes) != 1 || causes[0] != ErrMisspeculated || ops != wastedOperations {
			t.Fatal(causes, ops)
		}
	})
}
