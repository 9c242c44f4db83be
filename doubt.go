package foresay

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// Code that hedges a call, or ends it early, cancels the call's context, or goes another
// way. Where it went on with a prediction that comes too late, and may look the same as
// `defer cancel()`. Only code that waits for the actual result shows which it is. So once
// a call takes long after it was predicted, and its context may be cancelled, a second
// run waits for it, beside the one that does not: see spectree.Tree.Doubt.

// cancellable is a call of a run that went on with a prediction, made with a context that
// the code may cancel.
type cancellable struct {
	use  *spectree.Use
	made time.Time
	long time.Time // if it is not answered by then, it takes long, and is looked at again
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
	t.doubts.calls = append(t.doubts.calls, cancellable{u, now, now.Add(long)})
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
	if d.set || len(d.calls) == 0 || t.ended {
		return
	}
	next := slices.MinFunc(d.calls, func(a, b cancellable) int { return a.long.Compare(b.long) })
	if wait := time.Until(next.long); d.timer == nil {
		d.timer = time.AfterFunc(wait, t.doubt)
	} else {
		d.timer.Reset(wait)
	}
	d.set = true
}

// doubt starts a doubter if a call takes long. If there has been one already the next
// comes later.
func (t *task) doubt() {
	t.mu.Lock()
	defer t.unlock()
	d := t.doubts
	d.set = false
	if t.ended {
		return
	}
	d.calls = slices.DeleteFunc(d.calls, func(c cancellable) bool { return !c.use.Doubtful() })
	now, long := time.Now(), false
	var uses []*spectree.Use
	for i := range d.calls {
		if c := &d.calls[i]; !now.Before(c.long) {
			long, c.long = true, now.Add(now.Sub(c.made))
		}
		uses = append(uses, d.calls[i].use)
	}
	if long {
		t.tree.Doubt(uses)
	}
	t.doubtLater()
}

// end has the calls not be looked at any more.
func (d *doubts) end() {
	if d != nil && d.timer != nil {
		d.timer.Stop()
	}
}
