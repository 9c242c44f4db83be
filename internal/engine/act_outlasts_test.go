package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestActOfADiscardedRun: while the function of an Act runs, the code that gave it waits for it,
// even when another goroutine's wrong guess has discarded the run. So what the function uses is as
// in plain code.
func TestActOfADiscardedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lab := newLab(t)
		bought := make(chan string, 2)
		v, err := Do(t.Context(), func(ctx context.Context) (string, error) {
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error {
				_, err := lab.call(ctx, lab.get, "a", 20*ms, "wrong")
				return err
			})
			got := ""
			g.Go(func(ctx context.Context) (err error) {
				item := "a book"
				got, err = Act(ctx, "buy", func(context.Context) (string, error) {
					time.Sleep(50 * ms)
					bought <- item
					return "bought " + item, nil
				})
				if err != nil {
					item = "nothing" // plain code comes here only if the function failed
					return fmt.Errorf("%s is bought: %w", item, err)
				}
				return nil
			})
			err := g.Wait()
			return got, err
		})
		if v != "bought a book" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		close(bought)
		for item := range bought {
			if item != "a book" {
				t.Errorf("%s is bought", item)
			}
		}
	})
}
