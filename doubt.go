package foresay

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// Code that hedges a call, or ends it early, cancels the call's context. Where it went on
// with a prediction that comes too late, and looks the same as `defer cancel()`: the
// context ends in either case while the actual result is not in yet. Only code that waits
// for that shows which it is. So once a call takes long after it was predicted, and its
// context has been cancelled, a second run waits for it, beside the one that does not:
// see spectree.Tree.Doubt.

// cancellable is a call of a run that went on with a prediction, made with a context that
// the code may cancel.
type cancellable struct {
	use  *spectree.Use
	ctx  context.Context
	made time.Time
	long time.Time   // if it is not answered by then, it takes long, and is looked at again
	stop func() bool // ends that it is looked at as soon as it is cancelled
}

// doubts are the cancellable calls of a task, and when they are looked at. Under mu.
type doubts struct {
	calls []cancellable
	timer *time.Timer
	set   bool
}

// A call takes long if that is so many times what its site's quickest calls took lately,
// within these bounds.
const (
	longFactor = 3
	longLeast  = 20 * time.Millisecond
	longMost   = 250 * time.Millisecond
)

// wentOn notes that the lane's code went on with a prediction for a call that it made
// with ctx. Under mu.
func (l *lane) wentOn(ctx context.Context, c *call, u *spectree.Use) {
	t := l.run.task
	if t.shadowOf != nil || c.tree.Effect() != spectree.None || !l.mayCancel(ctx) {
		return
	}
	long := longMost
	if usual := c.op.Site.floor.least(); usual != 0 {
		long = min(max(longFactor*usual, longLeast), longMost)
	}
	now := time.Now()
	if t.doubts == nil {
		t.doubts = new(doubts)
	}
	t.doubts.calls = append(t.doubts.calls, cancellable{use: u, ctx: withoutOffers(ctx), made: now, long: now.Add(long)})
	t.doubtLater()
}

// mayCancel reports whether ctx may end before the run's own context does.
func (l *lane) mayCancel(ctx context.Context) bool {
	for {
		switch c := ctx.(type) {
		case *runContext:
			return false
		case *predicting:
			ctx = c.Context
		case *laneContext:
			ctx = c.Context
		default:
			return ctx.Done() != l.run.ctx.Done()
		}
	}
}

// doubtLater has the task look at its cancellable calls once the next one takes long.
// Under mu.
func (t *task) doubtLater() {
	d := t.doubts
	var next time.Time
	for _, c := range d.calls {
		if c.stop == nil && (next.IsZero() || c.long.Before(next)) {
			next = c.long
		}
	}
	switch {
	case d.set || next.IsZero() || t.ended:
		return
	case d.timer == nil:
		d.timer = time.AfterFunc(time.Until(next), t.doubt)
	default:
		d.timer.Reset(time.Until(next))
	}
	d.set = true
}

// doubt starts a doubter if a call that takes long was cancelled. It looks at those that
// were not yet as soon as they are.
func (t *task) doubt() {
	t.mu.Lock()
	d := t.doubts
	d.calls = slices.DeleteFunc(d.calls, func(c cancellable) bool { return !c.use.Doubtful() && c.forget() })
	calls := slices.Clone(d.calls)
	t.mu.Unlock()
	now, long := time.Now(), false
	var uses []*spectree.Use
	for _, c := range calls { // not under mu: contexts may be the user's own code
		if c.cancelled() {
			uses = append(uses, c.use)
			long = long || !now.Before(c.long)
		}
	}
	t.mu.Lock()
	defer t.unlock()
	d.set = false
	if t.ended {
		return
	}
	if long {
		t.tree.Doubt(uses)
	}
	for i := range d.calls {
		c := &d.calls[i]
		switch {
		case now.Before(c.long):
		case slices.Contains(uses, c.use): // there is a doubter, or there has been one
			c.forget()
			c.long = now.Add(now.Sub(c.made))
		case c.stop == nil:
			c.stop = context.AfterFunc(c.ctx, t.doubt)
		}
	}
	t.doubtLater()
}

// forget has the call not be looked at as soon as it is cancelled. It returns true.
func (c *cancellable) forget() bool {
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	return true
}

// end has the calls not be looked at any more.
func (d *doubts) end() {
	if d == nil || d.timer == nil {
		return
	}
	d.timer.Stop()
	for i := range d.calls {
		d.calls[i].forget()
	}
}

// cancelled reports whether the code cancelled the call's context.
func (c cancellable) cancelled() bool {
	r := c.use.Run.Data.(*run)
	return c.ctx.Err() == context.Canceled && !givenUp(c.ctx) && r.ctx.Err() == nil
}
