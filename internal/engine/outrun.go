package engine

import "context"

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
