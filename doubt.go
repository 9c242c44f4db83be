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
	long time.Time // if it is not answered by then, it takes long
}

// doubts are the cancellable calls of a task, and when they are looked at. Under mu.
type doubts struct {
	calls []cancellable
	timer *time.Timer // nil until it is needed
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
	t.doubts.calls = append(t.doubts.calls, cancellable{u, withoutOffers(ctx), now, now.Add(long)})
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
	d := &t.doubts
	if d.set || len(d.calls) == 0 || t.ended {
		return
	}
	next := slices.MinFunc(d.calls, func(a, b cancellable) int { return a.long.Compare(b.long) })
	wait := time.Until(next.long)
	if d.timer == nil {
		d.timer = time.AfterFunc(wait, t.doubt)
	} else {
		d.timer.Reset(wait)
	}
	d.set = true
}

// doubt starts a doubter if a call that takes long was cancelled.
func (t *task) doubt() {
	t.mu.Lock()
	d := &t.doubts
	d.calls = slices.DeleteFunc(d.calls, func(c cancellable) bool { return !c.use.Doubtful() })
	calls := slices.Clone(d.calls)
	t.mu.Unlock()
	long := false
	var uses []*spectree.Use
	for _, c := range calls { // not under mu: contexts may be the user's own code
		if c.cancelled() {
			uses = append(uses, c.use)
			long = long || !time.Now().Before(c.long)
		}
	}
	t.mu.Lock()
	if long && !t.ended {
		t.tree.Doubt(uses)
	}
	for now, i := time.Now(), 0; i < len(d.calls); i++ {
		c := &d.calls[i]
		if now.Before(c.long) {
			continue
		}
		wait := now.Sub(c.made)
		if !slices.Contains(uses, c.use) { // else there is a doubter, or there has been one
			wait = min(wait, longMost)
		}
		c.long = now.Add(wait)
	}
	d.set = false
	t.doubtLater()
	t.unlock()
}

// cancelled reports whether the code cancelled the call's context.
func (c cancellable) cancelled() bool {
	r := c.use.Run.Data.(*run)
	return c.ctx.Err() == context.Canceled && !givenUp(c.ctx) && r.ctx.Err() == nil
}
