package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/control"
)

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
