package engine

import (
	"context"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// A task's context may end while every run stands on a guess. Plain code would be waiting
// then for the first of the calls that are still guessed. It would see that call fail, and
// go on as it likes: return a fallback, clean up, run hooks for what has happened. So the
// function is run once more, without predictions. The calls that had plainly been answered
// are answered from the record. The first other call is where plain code was when the
// context ended. So the context of a run that repeats calls does not end before the run
// comes there: code that looks at its context on the way goes the way that it went in time.
// That holds for each goroutine of the run: one that executes may have come further in time.

// belated is the context of a run that repeats what others did. After the task's context it
// ends once the run has come to a call that had no answer and none of its code executes, and at
// most endsWithin later, since code may wait for its end alone.
type belated struct {
	context.Context // the task's
	over            chan struct{}

	// Under the task's mu.
	due     bool  // the task's context has ended
	arrived bool  // a lane has come to such a call
	asking  int32 // lanes that are about to wait for a future, which may have its result already

	mu    sync.Mutex
	ended bool
	after map[*func()]struct{} // called once it ends
	timer *time.Timer          // ends it at last; nil before it is due
}

func (b *belated) Done() <-chan struct{} { return b.over }

func (b *belated) Err() error {
	if isClosed(b.over) {
		return b.Context.Err()
	}
	return nil
}

// Value hides from package context, which asks by keys of type *int, that the task's
// context has ended.
func (b *belated) Value(key any) any {
	if _, ok := key.(*int); ok && !isClosed(b.over) {
		return nil
	}
	return b.Context.Value(key)
}

// AfterFunc has package context end derived contexts at once, and not in goroutines of
// their own.
func (b *belated) AfterFunc(f func()) (stop func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		go f()
		return func() bool { return false }
	}
	if b.after == nil {
		b.after = make(map[*func()]struct{})
	}
	b.after[&f] = struct{}{}
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		_, waits := b.after[&f]
		delete(b.after, &f)
		return waits
	}
}

// end ends the context. It must not be called under the task's mu.
func (b *belated) end() {
	b.mu.Lock()
	after, first := b.after, !b.ended
	b.ended, b.after = true, nil
	b.mu.Unlock()
	b.rest()
	if !first {
		return
	}
	close(b.over)
	for f := range after {
		(*f)()
	}
}

// endLater has the context end within endsWithin.
func (b *belated) endLater() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(endsWithin, b.end)
}

// rest tells that nobody waits for the context's end any more.
func (b *belated) rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
	}
}

// belated returns the run's belated context while that has not ended, or nil.
func (r *run) belated() *belated {
	if b, ok := r.ctx.from.(*belated); ok && !isClosed(b.over) {
		return b
	}
	return nil
}

// overdue reports whether the task's context is about to end: its deadline is over.
func (t *task) overdue() bool {
	d, ok := t.ctx.Deadline()
	return ok && !time.Now().Before(d) && t.ctx.Err() == nil
}

// finishLater gives the result of an attempt that failed once the task's context has ended:
// its own came to the deadline first. A context of a user's type may never end.
func (a *Attempt) finishLater(v any, err error) {
	go func() {
		timer := time.NewTimer(endsWithin)
		defer timer.Stop()
		select {
		case <-a.call.task.ctx.Done():
		case <-timer.C:
		}
		a.finish(v, err)
	}()
}

// wait waits for the end of the run's belated context, since a lane has come to a call that
// was not made before the task's context ended. It reports whether ctx has ended then, too.
// It is called under mu.
func (t *task) wait(ctx context.Context, l *lane, b *belated) (ended bool) {
	r := l.run
	b.arrived = true
	l.idle.Store(true)
	r.mayEnd(b)
	gone := r.gone()
	t.unlock()
	select {
	case <-b.over:
	case <-gone:
	}
	ended = ctx.Err() != nil
	t.mu.Lock()
	l.idle.Store(false)
	return ended
}

// follow has the run's context end after the task's. Under mu.
func (r *run) follow() {
	b := r.belated()
	if b == nil || b.due {
		return
	}
	b.due = true
	b.endLater()
	r.mayEnd(b)
}

// mayEnd ends the belated context once the run has come as far as it must, all its lanes have
// repeated what has taken effect, and none of them executes: code that does so may be on its way to
// where it was when the task's context ended. Under mu.
func (r *run) mayEnd(b *belated) {
	if !b.due || !b.arrived || b.asking > 0 {
		return
	}
	if !r.task.tree.Behind(r.tree) && !r.executes() {
		r.task.todo = append(r.task.todo, duty{kind: dutyOver, of: b})
	}
}

// rests tells that code of a lane waits now, or has ended. Under mu.
func (r *run) rests() {
	if b := r.belated(); b != nil {
		r.mayEnd(b)
	}
}

// inTime reports whether plain code would have had the call sent before the task's
// context ended, as far as the record tells. A call that is one in the whole task, an
// Act, may be made at any time: what it does with its context is up to its code. Under mu.
func (t *task) inTime(l *lane, s *spectree.CallSpec) bool {
	if s.Local || s.Once {
		return true
	}
	c, _ := t.tree.Find(l.tree, s)
	return c != nil
}

// stopped is gone, for code that goes on after the task's context ended, with a context that
// outlives it.
func (r *run) stopped() <-chan struct{} {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	return r.gone()
}

// gone returns a channel that is closed when the run is discarded, or the task over. Its
// context may have ended with the task's before. Under mu.
func (r *run) gone() <-chan struct{} {
	x := r.rarely()
	if x.gone == nil {
		x.gone = make(chan struct{})
		if r.tree.Discarded() || r.task.tree.Over() {
			close(x.gone)
		}
	}
	return x.gone
}

// leave tells those who wait for it that the run is gone. Under mu.
func (r *run) leave() {
	if r.rare != nil && r.rare.gone != nil && !isClosed(r.rare.gone) {
		close(r.rare.gone)
	}
}
