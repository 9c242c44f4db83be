package engine

import (
	"context"
	"slices"

	"github.com/foresay/foresay/internal/spectree"
)

// Code that goes on with a guess at a future may end the context of those who still compute it, by
// `defer cancel()` most often: plain code has the result by then. If they were told, and gave up,
// the guess would count as wrong, and what they waited for would be asked for again. So the run is
// replayed without the guess instead, while all that is under way: the replay finds it, waits as
// plain code does, and shows what else ends the context. From then on the task takes no guesses at
// futures in contexts that may end like that, since each would cost another run.

// outrun deals with a cancelled context of code that is about to give up, or not to make a call. It
// returns an error if the lane's run is replayed for that.
func (l *lane) outrun(ctx context.Context) error {
	if ctx.Err() != context.Canceled || l.run.ctx.Err() != nil || givenUp(ctx) {
		return nil
	}
	t := l.run.task
	t.mu.Lock()
	defer t.unlock()
	if l.run.tree.Discarded() || !t.tree.Outrun(l.tree) {
		return nil
	}
	t.wasOutrun()
	return ErrMisspeculated
}

// wasOutrun notes that a run was replayed for that. Under mu.
func (t *task) wasOutrun() {
	t.mayDoubt()
	t.doubts.outrun = true
}

// A goroutine that went on with a guess has ended. Somebody cancels the context that it was started
// with before anybody waits for it: code that stands on none of its guesses, so plain code does the
// same at that time, and what is guessed ends, right or wrong. A doubter finds that out at once.
// Most contexts end later, as code that has waited for a goroutine returns, and tell nothing.

// cutOff reports whether the code of the run has cancelled the context with which goroutines were
// started, which have ended. It is called without mu: the context may be the user's.
func (r *run) cutOff(ctx context.Context) bool {
	return ctx.Err() == context.Canceled && r.ctx.Err() == nil && !givenUp(ctx)
}

// cutFutures returns the lanes of futures of the run, which has ended, whose contexts were
// cancelled.
func (r *run) cutFutures() (lanes []*lane) {
	for _, l := range r.forked {
		if f := l.future; f != nil && f.name == l.tree.ID() && r.cutOff(f.ctx) {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// doubtNow starts a doubter of what lanes guess whose contexts were cancelled before anybody waited
// for them. Under mu.
func (t *task) doubtNow(lanes []*lane) {
	var uses []*spectree.Use
	for _, l := range lanes {
		if l.tree.WaitedFor() {
			continue
		}
		for _, u := range l.tree.Guesses() {
			if !slices.Contains(uses, u) {
				uses = append(uses, u)
			}
		}
	}
	if len(uses) > 0 {
		t.tree.Doubt(uses)
	}
}
