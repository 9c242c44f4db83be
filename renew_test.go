package foresay

import (
	"context"
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
