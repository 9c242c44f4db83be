package engine

import (
	"context"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// TestHandlerOfPlainCall: a handler that has nothing to record runs as in a plain call,
// where a Do of its own may speculate, and it may predict all the same.
func TestHandlerOfPlainCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		w.kv["a"], w.kv["b"] = 1, 2
		var early, hooks []any
		h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y", Predicted: func(v any) { early = append(early, v) }})
		start := time.Now()
		var late context.Context
		v, err := h.Run(func(ctx context.Context) (any, error) {
			late = ctx
			if InTask(ctx) {
				t.Error("it is a task")
			}
			OnCommit(ctx, func() { hooks = append(hooks, "commit") })
			if err := Predict(ctx, 41); err != nil {
				return nil, err
			}
			return Do(ctx, func(ctx context.Context) (any, error) {
				a, err := perform(Predicting(ctx, 1), w.op(t, s.get, "get a"))
				if err != nil {
					return nil, err
				}
				if err := Predict(ctx, 42); err != nil {
					return nil, err
				}
				b, err := perform(ctx, w.op(t, s.get, "get b"))
				return a + b, err
			})
		})
		if v != 3 || err != nil || time.Since(start) != 10*ms {
			t.Errorf("Run: %v, %v after %v; want 3 after one call's time", v, err, time.Since(start))
		}
		if err := Predict(late, 43); err != nil {
			t.Errorf("Predict, when the handler has returned: %v", err)
		}
		if want := []any{41, 42}; !slices.Equal(early, want) {
			t.Errorf("early answers %v, want %v", early, want)
		}
		h.Confirm()
		h.Abort()
		if err := h.Finish(); err != nil || h.Tentative() || len(hooks) != 1 {
			t.Errorf("Finish: %v, tentative %v, hooks %v", err, h.Tentative(), hooks)
		}
	})
}

// TestPanicOfPlainCall: the panic of such a handler is its caller's to recover, as it is.
func TestPanicOfPlainCall(t *testing.T) {
	h := NewHandler(t.Context(), HandlerConfig{Name: "/x/Y"})
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("panicked with %v, want the value itself", p)
		}
	}()
	_, _ = h.Run(func(context.Context) (any, error) { panic("boom") })
}

// TestTasksAreNamedAfterRequests: a task without a name of its own has its request's in reports.
func TestTasksAreNamedAfterRequests(t *testing.T) {
	ctl, err := control.New(control.Config{RecentEvery: -1})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	f := func(context.Context) (int, error) { return 0, nil }
	for _, opts := range [][]Option{nil, {WithName("mine")}} {
		ctx, r := ctl.Begin(t.Context(), "GET /page", "")
		if _, err := Do(ctx, f, append(opts, WithReport(func(r *report.Report) {
			names = append(names, r.Task)
		}))...); err != nil {
			t.Fatal(err)
		}
		r.End(nil)
	}
	if _, err := Do(ctl.Context(t.Context()), f, WithReport(func(r *report.Report) {
		names = append(names, r.Task)
	})); err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 || names[0] != "GET /page" || names[1] != "mine" || names[2] != "" {
		t.Errorf("the tasks are called %q", names)
	}
}

// TestServedByALiar: what a server says of the time that it took for a call changes what is
// reported of the call by no more than that took.
func TestServedByALiar(t *testing.T) {
	for _, c := range []struct {
		waited, hooks, want time.Duration
	}{
		{0, 0, 10 * ms},
		{4 * ms, 0, 6 * ms},
		{4 * ms, 3 * ms, 9 * ms},
		{math.MaxInt64, 0, 0},
		{0, math.MaxInt64, 20 * ms},
		{math.MaxInt64, math.MaxInt64, 10 * ms},
		{-4 * ms, 3 * ms, 17 * ms},
		{-math.MaxInt64, 0, 20 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			of := &call{task: &task{}}
			of.attempt = &Attempt{call: of, launched: now()}
			time.Sleep(10 * ms)
			of.finished = now()
			of.attempt.Served(c.waited, c.hooks)
			if got := of.took(); got != c.want {
				t.Errorf("waited %v, hooks %v: a call of 10ms would have taken %v, want %v", c.waited, c.hooks, got, c.want)
			}
		})
	}
}

// budgetCall notes the budget of its attempts.
type budgetCall struct {
	*worldCall
	budgets *[]int
}

func (c budgetCall) Start(ctx context.Context, a *Attempt) {
	*c.budgets = append(*c.budgets, a.Budget())
	c.worldCall.Start(ctx, a)
}

// TestAttemptBudget: a callee is granted one run less than its caller has left,
// and none when nothing is left.
func TestAttemptBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := newWorld(10*ms), testCallSites(t)
		var budgets []int
		if _, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			for i := range 4 { // all guesses are wrong: each call adds a run
				op := w.op(t, s.get, "get k%d", i)
				op.CanSpeculate = false
				op.Transport = budgetCall{&worldCall{w, "get k"}, &budgets}
				if _, err := perform(Predicting(ctx, 7), op); err != nil {
					return 0, err
				}
			}
			return 0, nil
		}, WithLimits(control.Limits{Replays: 3, Depth: 1})); err != nil {
			t.Fatal(err)
		}
		if want := []int{2, 1, 0, 0}; !slices.Equal(budgets, want) {
			t.Errorf("budgets %v, want %v", budgets, want)
		}
	})
}
