package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestHooksBesideCodeThatOutlivesItsTask: goroutines that nobody waits for go on while the task
// that has ended calls its hooks. What they register then is not called. The race detector looks
// on.
func TestHooksBesideCodeThatOutlivesItsTask(t *testing.T) {
	lab := newLab(t)
	var strays sync.WaitGroup
	ended, called := make(chan struct{}), 0
	late := func() { t.Error("a hook of code that outlived its task was called") }
	for _, stray := range []func(ctx context.Context){
		func(ctx context.Context) { OnCommit(ctx, late) },
		func(ctx context.Context) {
			g := NewGroup(ctx)
			g.Go(func(ctx context.Context) error { OnCommit(ctx, late); return nil })
			_ = g.Wait()
		},
		func(ctx context.Context) {
			_, _ = Go(ctx, func(ctx context.Context) (int, error) { OnCommit(ctx, late); return 1, nil }).Wait(ctx)
		},
		func(ctx context.Context) {
			if _, err := lab.call(ctx, lab.put, "w", 0); !errors.Is(err, ErrEnded) {
				t.Errorf("a call: %v", err)
			}
		},
	} {
		idle := true
		f := func(ctx context.Context) (int, error) {
			if idle {
				return 0, nil
			}
			OnCommit(ctx, func() { called++; close(ended) }) // and others go on beside what comes next
			for range 20 {
				OnCommit(ctx, func() { called++ })
			}
			strays.Go(func() { <-ended; stray(ctx) })
			return 0, nil
		}
		for i := range 40 {
			for range i % 2 * plainEnough { // so that every other one is no task when it begins
				_, _ = Do(t.Context(), f)
			}
			idle, called, ended = false, 0, make(chan struct{})
			if _, err := Do(t.Context(), f); err != nil || called != 21 {
				t.Fatalf("%v, %d hooks were called, want 21", err, called)
			}
			strays.Wait()
			idle = true
		}
	}
}
