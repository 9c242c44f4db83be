package command

import (
	"context"
	"sync"
)

// A Throttle bounds how many transactions are under way at a time: few at first, more while all is
// well, half as many when one failed. What a store and its network take differs by orders of
// magnitude, and one that gets too much at once refuses what it could have done.
type Throttle struct {
	most int

	mu    sync.Mutex
	free  chan struct{} // closed, and replaced, when there may be room
	limit float64       // Invariant: from 1 to most
	busy  int
	eased bool // something failed: it grows slowly from now on
}

// NewThrottle returns a throttle that lets at most so many run at once.
func NewThrottle(most int) *Throttle {
	return &Throttle{most: most, free: make(chan struct{}), limit: 1}
}

// Begin waits until there is room for one more. Each begin without an error is followed by one end.
func (t *Throttle) Begin(ctx context.Context) error {
	for {
		t.mu.Lock()
		if float64(t.busy) < t.limit {
			t.busy++
			t.mu.Unlock()
			return nil
		}
		free := t.free
		t.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// End says how it went.
func (t *Throttle) End(well bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy--
	switch {
	case !well:
		t.limit, t.eased = max(1, t.limit/2), true
	case t.eased:
		t.limit = min(float64(t.most), t.limit+1/t.limit)
	default:
		t.limit = min(float64(t.most), t.limit+1)
	}
	close(t.free)
	t.free = make(chan struct{})
}
