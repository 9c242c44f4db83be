package engine

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// call is a remote operation of a task.
type call struct {
	task *task
	tree *spectree.Call
	op   *Operation

	// Under the task's mu.
	maker       *run // that made it first
	mode        control.Mode
	abandoned   bool
	phantom     bool // a shadow's, that no one makes
	right       bool // one of the predictions was
	released    bool // nothing but its answer is kept, see letGo
	spent       bool // nor that, see forget
	permit      bool // it counts as having a prediction, see CallSiteLimits.Pending
	apart       bool // its code's context may not end when the run's does
	late        bool // it failed after the task's context had ended
	failed      bool // plainlyMore is what a failed attempt took
	attempts    int32
	guess       *guessing     // in modes that only compare, or nil
	goneOn      moment        // when a run last went on with a prediction
	finished    moment        // when the actual result came
	plainlyMore time.Duration // that it would have taken if its caller had been known to be right, see Served
	stopped     moment        // when it was held last, for what its code stands on
	predictions []any
	withdrawn   []int // predictions that are not offered any more
	value       any
	err         error
	attempt     *Attempt
	first       Attempt // here to save an allocation, as is the waiter of its maker
	waiter      waiter
	ended       error           // with what the code's own context ended, if err comes from that
	looks       *lookups        // in ctx, if it may say something else than another run's
	ctx         context.Context // of the code that made the call
	limit       time.Duration   // what a deadline of ctx's own left then
	watchers    []chan struct{} // closed when the actual result is in
}

// indexOf returns the index of a prediction that is still offered, or -1.
func (c *call) indexOf(predictions []any, withdrawn []int, v any) int {
	for i, p := range predictions {
		if !slices.Contains(withdrawn, i) && c.op.Transport.Same(p, v) {
			return i
		}
	}
	return -1
}

// told tells a shadow that the actual result is in. Under mu.
func (c *call) told() {
	for _, w := range c.watchers {
		close(w)
	}
	c.watchers = nil
	if s := c.task.shadow; s != nil && s.shadowOf.at == c {
		c.task.uncast()
	}
}

// match returns the index of the first prediction still offered that v is
// equivalent to.
func (c *call) match(predictions []any, withdrawn []int, v any) (idx int) {
	idx = spectree.Actual
	c.task.contain("equivalence", func() {
		for i, p := range predictions {
			if !slices.Contains(withdrawn, i) && c.op.Transport.Equal(p, v) {
				idx = i
				return
			}
		}
	})
	return idx
}

// answer returns the result that a use of the call goes on with. A use of a
// discarded run that comes for what was let go of is told so. Under mu.
func (c *call) answer(idx int) (any, error) {
	if match, _ := c.tree.Answered(); c.released && idx != match || c.spent {
		return nil, ErrMisspeculated
	}
	if idx >= 0 {
		return c.predictions[idx], nil
	}
	return c.value, c.err
}

// letGo lets go of all but the answer that the call has: its caller is right, so
// that no run of the task goes on with another one, and none of them sends the call
// any more. Under mu.
func (c *call) letGo() {
	match, _ := c.tree.Answered()
	for i := range c.predictions {
		if i != match {
			c.predictions[i] = nil
		}
	}
	if match >= 0 {
		c.value = nil
	}
	c.released = true
	if c.guess != nil {
		c.guess.values = nil
	}
	if r, ok := c.op.Transport.(Releaser); ok {
		r.Release()
	}
	c.forget()
}

// forget lets go of the answer, too, once nobody will ask for it any more. Under mu.
func (c *call) forget() {
	t := c.task
	// A shadow begins at the top, and asks for all that its task was told.
	if !c.released || c.spent || t.shadows || !t.tree.Spent(c.tree) {
		return
	}
	c.spent, t.forgetful = true, true
	c.value = nil
	clear(c.predictions)
}

// forgetAll lets go of answers when the task has come to its last run. Under mu.
func (t *task) forgetAll() {
	last := t.tree.Last()
	if last == t.last {
		return
	}
	if t.last = last; last == nil {
		return
	}
	for u := range last.Uses {
		if c, ok := u.Call.Data.(*call); ok {
			c.forget()
		}
	}
}

// settle counts a confirmed call's predictions, and has the predictors learn its
// result. Under mu.
func (t *task) settle(c *call) {
	c.score()
	if c.guess != nil {
		c.guess.count(c.op.CallSite)
	}
	c.entered(c.right || c.guess != nil && c.guess.right)
	if c.err == nil && len(c.op.config().Predictors) > 0 && c.mode != control.ModeOff {
		t.todo = append(t.todo, duty{kind: dutyLearn, of: c})
		return
	}
	c.letGo()
}

func (c *call) learn() {
	c.op.learn(c.source(), c.guess, c.value)
	c.task.mu.Lock()
	defer c.task.mu.Unlock()
	c.letGo()
}

// score counts whether the predictions of a confirmed call were any good. What
// was asked on a wrong guess says nothing about who guesses. Under mu.
func (c *call) score() {
	match, _ := c.tree.Answered()
	switch {
	case len(c.predictions) == 0:
	case match >= 0:
		c.right = true
		c.op.CallSite.Engine().Counts().Right.Add(1)
		if c.goneOn != 0 {
			c.op.CallSite.Engine().Saved(time.Duration(max(c.spared(), 0)))
		}
	default:
		c.op.CallSite.Engine().Counts().Wrong.Add(1)
	}
	if len(c.predictions) > 0 {
		c.task.lookAtQueue(c.op.CallSite)
	}
	c.task.judge(c.op.CallSite)
}

// A right guess saves what its code did in the meantime: the time between the guess and
// the answer in which the code went on, or waited for a call that was under way. Code that
// has come to its end, to a barrier, or to a call that is held until the guess is known to
// be right waits for the answer all the same, so that what follows saves nothing.

// spared returns how long the code went on, before the answer was there, since it took
// the guess. Where several goroutines go on, or somebody hears of the result early, it is all the
// time until the answer. Under mu.
func (c *call) spared() moment {
	use := c.tree.First()
	if use == nil || c.task.out != nil {
		return c.finished - c.goneOn
	}
	r := use.Run.Data.(*run)
	if len(r.forked) > 0 {
		return c.finished - c.goneOn
	}
	end := c.goneOn
	for u := range use.Following {
		next, ok := u.Call.Data.(*call)
		if ok && c.during(next.stopped) { // and so did the code, unless it took a guess, which is that call's to count
			return max(end, next.stopped) - c.goneOn
		}
		if !ok || next.attempt == nil || next.attempt.launched == 0 {
			continue
		}
		if next.attempt.launched >= c.finished {
			break
		}
		if end = max(end, next.finished); next.finished == 0 || end >= c.finished {
			return c.finished - c.goneOn
		}
	}
	if c.during(r.left) {
		return max(end, r.left) - c.goneOn
	}
	return c.finished - c.goneOn
}

// held notes that the call waits for what its code stands on. Under mu.
func (c *call) held() {
	c.op.CallSite.Engine().Counts().Held.Add(1)
	c.stopped = now()
}

// during reports whether a moment is between the guess and the answer.
func (c *call) during(at moment) bool { return at >= c.goneOn && at < c.finished }
