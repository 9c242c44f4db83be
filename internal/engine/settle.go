package engine

import (
	"time"

	"github.com/foresay/foresay/control"
)

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
