package engine

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestSpentAnswers: behind a barrier a task lets go of the answers that its last run
// has, and of none that a goroutine of that run, which replays another one, has yet to
// ask for.
func TestSpentAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, quick, s := newWorld(10*ms), newWorld(2*ms), testCallSites(t)
		w.kv["a"], w.kv["b"], w.kv["c"] = 1, 2, 3
		quick.kv = w.kv
		var last *task
		_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			last = laneOf(ctx).run.task
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				if _, err := perform(Predicting(ctx, 7), w.op(t, s.get, "get a")); err != nil {
					return err
				}
				return Barrier(ctx)
			})
			g.Go(func(ctx context.Context) error {
				if State(ctx).Run > 1 { // the other goroutine has passed its barrier
					time.Sleep(50 * ms)
				}
				for _, key := range []string{"b", "c"} {
					v, err := perform(ctx, quick.op(t, s.get, "get %s", key))
					if State(ctx).Discarded {
						return err
					}
					if err != nil || v != w.kv[key] {
						t.Errorf("run %d: got %v, %v for %s, want %v", State(ctx).Run, v, err, key, w.kv[key])
					}
				}
				return nil
			})
			return 0, g.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for u := range last.winner.tree.Uses {
			if c, ok := u.Call.Data.(*call); ok && (c.value != nil || slices.ContainsFunc(c.predictions, func(p any) bool {
				return p != nil
			})) {
				kept++
			}
		}
		if last.winner.tree.ID != 2 || kept != 0 {
			t.Errorf("run %d ended with %d answers kept, want run 2 and none", last.winner.tree.ID, kept)
		}
	})
}
