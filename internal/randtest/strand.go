package randtest

import (
	"context"
	"sync"

	"github.com/foresay/foresay"
)

// strand is one goroutine that executes a part of the program, in one run. Only
// within it there is one order in which rollback hooks are registered.
type strand struct {
	hooks int // registered so far
	// shared: others make calls on its context, so that the order of calls tells nothing.
	shared bool

	mu     sync.Mutex
	rolled int // the hook that was rolled back last, 0 for none
}

type strandKey struct{}

// newStrand returns the context of a goroutine that has just begun.
func newStrand(ctx context.Context) context.Context {
	s := new(strand)
	if from, ok := ctx.Value(strandKey{}).(*strand); ok {
		s.shared = from.shared
	}
	return context.WithValue(ctx, strandKey{}, s)
}

// sharedStrand is newStrand for one of several goroutines on one context.
func sharedStrand(ctx context.Context) context.Context {
	return context.WithValue(ctx, strandKey{}, &strand{shared: true})
}

// onRollback registers a rollback hook, and checks that those of a strand run
// last first. One that is registered when all is undone already runs at once.
func (j *journal) onRollback(ctx context.Context, at string, f func()) {
	s := ctx.Value(strandKey{}).(*strand)
	s.hooks++
	n, registered := s.hooks, false
	foresay.OnRollback(ctx, func() {
		s.mu.Lock()
		if registered {
			if s.rolled > 0 && n > s.rolled {
				j.brokenRule("the rollback hook of %s ran after one that was registered before it", at)
			}
			s.rolled = n
		}
		s.mu.Unlock()
		f()
	})
	s.mu.Lock()
	registered = true
	s.mu.Unlock()
}
