package engine

import (
	"context"
	"time"

	"github.com/foresay/foresay/control"
)

// hooks is one step of a lane's commit hooks: a function, or the place where
// the hooks of other lanes belong, because the lane waited for them or went on
// with a guess at their result.
type hooks struct {
	f      func()
	lanes  []*lane
	future *future
}

// OnCommit is foresay.OnCommit.
func OnCommit(ctx context.Context, f func()) {
	l := laneOf(ctx)
	if l == nil {
		began := time.Now()
		f()
		control.RequestOf(ctx).Engine().Waits(control.WaitHooks, "", began, 0)
		return
	}
	l.hook(hooks{f: f})
}

func (l *lane) hook(h hooks) {
	t := l.run.task
	t.mu.Lock()
	defer t.mu.Unlock()
	if !l.run.tree.Discarded() && !t.ended { // what has ended calls its hooks now, and code that outlives it adds none
		l.commit = append(l.commit, h)
		l.run.hooked = l.run.hooked || h.f != nil
	}
}

// release runs the commit hooks of a confirmed run, in order.
func (r *run) release() {
	if !r.hooked {
		return
	}
	r.hooked = false
	began := time.Now()
	defer func() { r.task.request.Engine().Waits(control.WaitHooks, "", began, int(r.task.ledger.number)) }()
	done := make(map[*lane]bool)
	r.main.release(done)
	r.task.mu.Lock()
	forked := r.forked // code that outlives its task may add to them
	r.task.mu.Unlock()
	for _, l := range forked { // those that nobody waited for
		l.release(done)
	}
}

func (l *lane) release(done map[*lane]bool) {
	if done[l] {
		return
	}
	done[l] = true
	l.run.task.mu.Lock()
	commit := l.commit // as above
	l.run.task.mu.Unlock()
	for _, h := range commit {
		lanes := h.lanes
		if h.future != nil {
			lanes = h.future.lanes
		}
		for _, other := range lanes {
			other.release(done)
		}
		if h.f != nil {
			h.f()
		}
	}
}

// OnRollback is foresay.OnRollback.
func OnRollback(ctx context.Context, f func()) {
	l := laneOf(ctx)
	if l == nil {
		return
	}
	t := l.run.task
	t.mu.Lock()
	if l.run.tree.Discarded() {
		t.mu.Unlock()
		t.contain("rollback hook", f)
		return
	}
	x := l.run.rarely()
	x.rollback = append(x.rollback, f)
	t.mu.Unlock()
}
