package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeyOfAnotherType: a key of Memo or Act that is used for two types gives an
// error that names it and them, and each type's own use goes on.
func TestKeyOfAnotherType(t *testing.T) {
	failed := errors.New("failed")
	number := func(context.Context) (int, error) { return 7, nil }
	text := func(context.Context) (string, error) { return "seven", nil }
	none := func(context.Context) (error, error) { return nil, failed }
	uses := map[string]struct {
		number func(ctx context.Context, key string) (int, error)
		text   func(ctx context.Context, key string) (string, error)
		none   func(ctx context.Context, key string) (error, error)
	}{
		"Memo": {
			func(ctx context.Context, key string) (int, error) { return Memo(ctx, key, number) },
			func(ctx context.Context, key string) (string, error) { return Memo(ctx, key, text) },
			func(ctx context.Context, key string) (error, error) { return Memo(ctx, key, none) },
		},
		"Act": {
			func(ctx context.Context, key string) (int, error) { return Act(ctx, key, number) },
			func(ctx context.Context, key string) (string, error) { return Act(ctx, key, text) },
			func(ctx context.Context, key string) (error, error) { return Act(ctx, key, none) },
		},
	}
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, err := Do(t.Context(), func(ctx context.Context) (int, error) {
					for range 2 {
						if v, err := use.number(ctx, "k"); v != 7 || err != nil {
							t.Errorf("for an int: %v, %v; want 7", v, err)
						}
						if v, err := use.none(ctx, "nil"); v != nil || err != failed {
							t.Errorf("for a nil error: %v, %v; want nil and its error", v, err)
						}
					}
					v, err := use.text(ctx, "k")
					if v != "" {
						t.Errorf("for a string: %q; want none", v)
					}
					return 0, err
				})
				want := "foresay: " + name + `: key "k" is of type int in this task and cannot be used for type string`
				if err == nil || err.Error() != want {
					t.Errorf("got error %v\nwant %s", err, want)
				}
			})
		})
	}
}

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
