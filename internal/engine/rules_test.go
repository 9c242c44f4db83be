package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// world is a server's state as the tests of the engine's rules see it: calls
// take effect when their attempt reaches it, half its delay after the start.
type world struct {
	mu    sync.Mutex
	kv    map[string]int
	log   []string
	spec  []string // what ran for a speculative caller
	delay time.Duration
}

func newWorld(delay time.Duration) *world { return &world{kv: map[string]int{}, delay: delay} }

// op returns an operation: "get k" or "put k v".
func (w *world) op(t testing.TB, site *control.CallSite, format string, args ...any) *Operation {
	text := fmt.Sprintf(format, args...)
	return &Operation{CallSite: site, Identity: text,
		CanSpeculate: site.Engine().Config().Effect != control.EffectImmediate,
		Transport:    &worldCall{w, text}}
}

type worldCall struct {
	w    *world
	text string
}

func (c *worldCall) Equal(p, a any) bool      { return p == a }
func (c *worldCall) Same(a, b any) bool       { return a == b }
func (c *worldCall) Accept(v any) (any, bool) { _, ok := v.(int); return v, ok }

func (c *worldCall) Start(ctx context.Context, a *Attempt) {
	spec := a.Speculative()
	go func() {
		wait := func() bool {
			select {
			case <-time.After(c.w.delay / 2):
				return true
			case <-ctx.Done():
				return false
			}
		}
		if !wait() {
			a.Finish(nil, ctx.Err())
			return
		}
		v, err := c.w.serve(c.text, spec)
		if !wait() {
			err = ctx.Err()
		}
		a.Finish(v, err)
	}()
}

func (w *world) serve(text string, spec bool) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := strings.Fields(text)
	if spec {
		w.spec = append(w.spec, text)
	}
	switch f[0] {
	case "get":
		return w.kv[f[1]], nil
	case "put":
		w.log = append(w.log, text)
		var v int
		if _, err := fmt.Sscan(f[2], &v); err != nil {
			return 0, err
		}
		w.kv[f[1]] = v
		return v, nil
	}
	return 0, fmt.Errorf("no such call: %s", text)
}

const ms = time.Millisecond

type sites struct{ get, put *control.CallSite }

func testCallSites(t testing.TB) sites {
	return sites{mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone}),
		mustCallSite(t, control.CallSiteConfig{Name: "/kv/Put", Effect: control.EffectImmediate})}
}

func perform(ctx context.Context, op *Operation) (int, error) {
	v, err := Perform(ctx, op)
	if err != nil {
		return 0, err
	}
	return v.(int), nil
}

// TestReadAfterPredictedWrite: a read behind a predicted write sees the write.
func TestReadAfterPredictedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			if _, err := perform(Predicting(ctx, 7), w.op(t, s.put, "put k 7")); err != nil {
				return 0, err
			}
			return perform(Predicting(ctx, 0), w.op(t, s.get, "get k"))
		})
		if got != 7 || err != nil || !slices.Equal(w.log, []string{"put k 7"}) {
			t.Fatal(got, err, w.log)
		}
	})
}

// TestEffectsWait: a write behind a wrong guess is never sent, and one behind a
// right guess is sent once, after the answer.
func TestEffectsWait(t *testing.T) {
	for _, guess := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			w, s := newWorld(10*ms), testCallSites(t)
			w.kv["a"] = 1
			start := time.Now()
			_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
				v, err := perform(Predicting(ctx, guess), w.op(t, s.get, "get a"))
				if err != nil {
					return 0, err
				}
				if _, err := perform(Predicting(ctx, v), w.op(t, s.put, "put b %d", v)); err != nil {
					return 0, err
				}
				// A second guess, wrong, after the write: the replay must not write again.
				x, err := perform(Predicting(ctx, 99), w.op(t, s.get, "get a"))
				if err != nil {
					return 0, err
				}
				return perform(ctx, w.op(t, s.put, "put c %d", x))
			})
			if err != nil || !slices.Equal(w.log, []string{"put b 1", "put c 1"}) {
				t.Fatal(err, w.log)
			}
			if d := time.Since(start); d != 40*ms {
				t.Errorf("took %v", d)
			}
		})
	}
}

// TestSiblings: several predictions make sibling runs, of which one wins, also
// if two are equivalent to the actual value.
func TestSiblings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"] = 10
		near := &near{worldCall{w, "get a"}}
		var mu sync.Mutex
		commits, rollbacks := []int{}, []int{}
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, err := perform(Predicting(ctx, 5, 9, 11), &Operation{CallSite: s.get, Identity: "a", CanSpeculate: true,
				Transport: near})
			if err != nil {
				return 0, err
			}
			OnCommit(ctx, func() { commits = append(commits, v) })
			OnRollback(ctx, func() { mu.Lock(); rollbacks = append(rollbacks, v); mu.Unlock() })
			return v, nil
		})
		if got != 9 || err != nil || !slices.Equal(commits, []int{9}) {
			t.Fatal(got, err, commits)
		}
		synctest.Wait()
		slices.Sort(rollbacks)
		if !slices.Equal(rollbacks, []int{5, 11}) {
			t.Fatal(rollbacks)
		}
	})
}

type near struct{ worldCall }

func (n *near) Equal(p, a any) bool { d := p.(int) - a.(int); return -1 <= d && d <= 1 }

// TestHooks: commit hooks run in order and before Do returns; a discarded run's
// rollback hooks run last first, before its replay begins.
func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"] = 1
		var log []string
		var mu sync.Mutex
		note := func(s string) { mu.Lock(); log = append(log, s); mu.Unlock() }
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			note("start")
			v, err := perform(Predicting(ctx, 5), w.op(t, s.get, "get a"))
			if err != nil {
				return 0, err
			}
			for i := range 2 {
				OnCommit(ctx, func() { note(fmt.Sprintf("commit%d%d", v, i)) })
				OnRollback(ctx, func() { note(fmt.Sprintf("rollback%d%d", v, i)) })
			}
			return v, nil
		})
		want := []string{"start", "rollback51", "rollback50", "start", "commit10", "commit11"}
		if err != nil || !slices.Equal(log, want) {
			t.Fatal(err, log)
		}
		OnCommit(t.Context(), func() { note("plain") })
		OnRollback(t.Context(), func() { note("never") })
		if log[len(log)-1] != "plain" {
			t.Fatal(log)
		}
	})
}

// TestBarrierActMemo checks what each waits for, and that Act and Memo happen once.
func TestBarrierActMemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"] = 1
		start := time.Now()
		acts, memos, runs := 0, 0, 0
		var after []time.Duration
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			runs++
			m, err := Memo(ctx, "m", func(context.Context) (int, error) { memos++; return memos, nil })
			if err != nil {
				return 0, err
			}
			v, err := perform(Predicting(ctx, 1), w.op(t, s.get, "get a"))
			if err != nil {
				return 0, err
			}
			if runs == 1 && !State(ctx).Speculative {
				t.Error("not speculative after a prediction")
			}
			n, err := Act(ctx, "act", func(ctx context.Context) (int, error) {
				if InTask(ctx) {
					t.Error("Act's function runs in the task")
				}
				acts++
				after = append(after, time.Since(start))
				return 100, nil
			})
			if err != nil {
				return 0, err
			}
			x, err := perform(Predicting(ctx, 77), w.op(t, s.get, "get zero"))
			if err != nil {
				return 0, err
			}
			if err := Barrier(ctx); err != nil {
				return 0, err
			}
			after = append(after, time.Since(start))
			if State(ctx).Speculative {
				t.Error("speculative after Barrier")
			}
			// No predictions are taken any more.
			y, err := perform(Predicting(ctx, 55), w.op(t, s.get, "get y"))
			if y != 0 {
				t.Error("predicted after Barrier")
			}
			return m + v + n + x + y, err
		})
		if got != 102 || err != nil || acts != 1 || memos != 1 || runs != 2 {
			t.Fatal(got, err, acts, memos, runs)
		}
		if !slices.Equal(after, []time.Duration{10 * ms, 20 * ms}) || time.Since(start) != 30*ms {
			t.Error(after, time.Since(start))
		}
	})
}

// TestErrorWherePredictedSuccess: the code sees the error on re-execution.
func TestErrorWherePredictedSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := testCallSites(t)
		boom := errors.New("boom")
		got, err := Do(t.Context(), func(ctx context.Context) (string, error) {
			_, err := Perform(Predicting(ctx, 1), read(s.get, "x", ms, func() (any, error) { return nil, boom }))
			if err != nil {
				return "recovered from " + err.Error(), nil
			}
			return "fine", nil
		})
		if got != "recovered from boom" || err != nil {
			t.Fatal(got, err)
		}
	})
}

// TestPanics: a wrong run's panic counts for nothing, a right one's is raised in Do.
func TestPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"] = 1
		f := func(bad int, inGroup bool) func(ctx context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				v, err := perform(Predicting(ctx, 5), w.op(t, s.get, "get a"))
				if err != nil {
					return 0, err
				}
				if v == bad {
					if !inGroup {
						panic("bad value")
					}
					g := NewGroup(ctx)
					g.Go(func(context.Context) error { panic("bad value") })
					return 0, g.Wait()
				}
				return v, nil
			}
		}
		for _, inGroup := range []bool{false, true} {
			if got, err := Do(t.Context(), f(5, inGroup)); got != 1 || err != nil {
				t.Fatal(got, err)
			}
			func() {
				defer func() {
					p, ok := recover().(*PanicError)
					if !ok || p.Value != "bad value" || !strings.Contains(string(p.Stack), "rules_test.go") {
						t.Errorf("got panic %v", p)
					}
				}()
				Do(t.Context(), f(1, inGroup))
				t.Error("no panic")
			}()
		}
	})
}

// TestAdoption: a replay uses the calls that its request did not change.
func TestAdoption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, err := perform(Predicting(ctx, 9), w.op(t, s.get, "get a"))
			if err != nil {
				return 0, err
			}
			time.Sleep(time.Duration(v) * ms / 3) // the first run makes its next call 3 ms later
			u, err := perform(ctx, w.op(t, s.get, "get b"))
			return v + u, err
		})
		if st := s.get.Stats(); err != nil || time.Since(start) != 13*ms || st.Adopted != 2 || st.Abandoned != 0 {
			t.Fatal(err, time.Since(start), st)
		}
	})
}

// TestLearning: predictors learn confirmed actual results only.
func TestLearning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(10 * ms)
		w.kv["a"] = 1
		w.kv["b"] = 2
		p := &notes{}
		site := mustCallSite(t, control.CallSiteConfig{Name: "/kv/Get", Effect: control.EffectNone,
			Predictors: []control.Predictor{p}})
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			op := w.op(t, site, "get a")
			op.Request = "a"
			v, err := perform(Predicting(ctx, 5), op)
			if err != nil {
				return 0, err
			}
			if v == 5 { // a wrong run's call
				op = w.op(t, site, "get b")
				op.Request = "b"
				return perform(ctx, op)
			}
			time.Sleep(time.Second)
			return v, nil
		})
		if err != nil || !slices.Equal(p.learnt, []string{"a=1"}) {
			t.Fatal(err, p.learnt)
		}
	})
}

type notes struct {
	mu     sync.Mutex
	learnt []string
}

func (n *notes) Predict(context.Context, any) []any { return nil }
func (n *notes) Learn(_ context.Context, req, resp any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.learnt = append(n.learnt, fmt.Sprint(req, "=", resp))
}

// TestLimits: at each limit the task waits, and comes to the same result.
func TestLimits(t *testing.T) {
	for _, l := range []control.Limits{{Depth: 1}, {Depth: 2}, {Width: 1}, {Replays: 1}, {Runs: 1}, {}} {
		for _, guess := range []int{0, 1} {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(10*ms), testCallSites(t)
				start := time.Now()
				got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					sum := 0
					for i := range 4 {
						v, err := perform(Predicting(ctx, guess, guess+5), w.op(t, s.get, "get k%d", i))
						if err != nil {
							return 0, err
						}
						sum += v
					}
					return sum, nil
				}, WithLimits(l))
				if d := time.Since(start); got != 0 || err != nil || d > 40*ms {
					t.Fatal(l, got, err, d)
				}
			})
		}
	}
}

// TestFanOut: ten thousand calls at once.
func TestFanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		start := time.Now()
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			g := NewGroup(ctx)
			for i := range 10_000 {
				g.Go(func(ctx context.Context) error {
					_, err := perform(Predicting(ctx, 0), w.op(t, s.get, "get k%d", i))
					return err
				})
			}
			return 0, g.Wait()
		})
		if err != nil || time.Since(start) != 10*ms {
			t.Fatal(err, time.Since(start))
		}
	})
}

// TestHandler: a handler's answer is final when its own guesses are settled,
// and its hooks wait for its caller.
func TestHandler(t *testing.T) {
	for _, replayable := range []bool{false, true} {
		for _, confirm := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				w, s := newWorld(10*ms), testCallSites(t)
				w.kv["a"] = 1
				var log []string
				var early []any
				start := time.Now()
				h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y", Speculative: true, Replayable: replayable,
					Predicted: func(v any) { early = append(early, v) }})
				v, err := h.Run(func(ctx context.Context) (any, error) {
					if err := Predict(ctx, 41); err != nil {
						return nil, err
					}
					v, err := perform(Predicting(ctx, 1), w.op(t, s.get, "get a"))
					if err != nil {
						return nil, err
					}
					OnCommit(ctx, func() { log = append(log, "commit") })
					OnRollback(ctx, func() { log = append(log, "rollback") })
					return 41 + v, nil
				})
				if v != 42 || err != nil || h.Tentative() || time.Since(start) != 10*ms || len(log) != 0 {
					t.Fatal(v, err, time.Since(start), log)
				}
				want := []any{41}
				if replayable {
					want = []any{41, 42}
				}
				if !slices.Equal(early, want) {
					t.Errorf("early answers %v, want %v", early, want)
				}
				if confirm {
					time.AfterFunc(5*ms, h.Confirm)
				} else {
					time.AfterFunc(5*ms, h.Abort)
				}
				err = h.Finish()
				synctest.Wait() // rollback hooks run where Abort was called, beside Finish
				if confirm && (err != nil || !slices.Equal(log, []string{"commit"})) ||
					!confirm && (err != ErrMisspeculated || !slices.Equal(log, []string{"rollback"})) {
					t.Fatal(err, log)
				}
				h.Abort()
				h.Confirm()
			})
		}
	}
}

// TestFutureWithEffects: what depends on a guessed future does not keep what it
// read before the future's own side effects.
func TestFutureWithEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		f := Go(t.Context(), func(ctx context.Context) (int, error) {
			time.Sleep(20 * ms)
			return perform(ctx, w.op(t, s.put, "put k 7"))
		}, Guess(7))
		got, err := Then(f, func(ctx context.Context, v int) (int, error) {
			return perform(ctx, w.op(t, s.get, "get k"))
		}).Wait(t.Context())
		if got != 7 || err != nil {
			t.Fatal(got, err)
		}
	})
}
