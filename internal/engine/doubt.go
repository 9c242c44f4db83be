package engine

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

// overtaken is a call, or a lane at a barrier, that waits for what other goroutines guess.
type overtaken struct {
	use  *spectree.Use   // nil for a lane
	lane *spectree.Lane  // nil for a call
	own  []*spectree.Use // guesses that plain code comes to the call after, of which nothing was known yet
	made time.Time       // or when nothing but others' guesses was left to wait for, here or in a run before
	next time.Time       // when the tree is told that it waits; zero for a lane that waits for its own guesses, too
}

// waits reports whether it still waits. Under mu.
func (o *overtaken) waits() bool {
	if o.use != nil {
		return o.use.Overtaken()
	}
	return o.lane.WaitsForOthers()
}

// patience is how long a call with effects, or a lane at a barrier, waits for what other
// goroutines guess, until a run is started beside the one that it belongs to.
const patience = 2 * time.Millisecond

// doubts are the cancellable calls of a task, what is overtaken, and when they are looked at. Under
// mu.
type doubts struct {
	calls []cancellable
	held  []overtaken
	timer *time.Timer
	set   time.Time     // that of the timer, if it runs
	over  chan struct{} // closed when the task ends; nil if nobody waits for that
	// unsure are members of combinations that came to something on guesses.
	unsure []*arrival
	// outrun says that code ended the context of what it had a guess at, see lane.outrun.
	outrun bool
}

// A call takes long if that is so many times what its call site's quickest calls took lately,
// within these bounds.
const (
	longFactor = 3
	longLeast  = 20 * time.Millisecond
	longMost   = 250 * time.Millisecond
)

// wentOn notes that the lane's code went on with this answer for a call that it made with
// ctx, which only matters if that is a prediction.
func (l *lane) wentOn(ctx context.Context, c *call, u *spectree.Use, answer int) {
	t := l.run.task
	if answer < 0 || t.shadowOf != nil || c.tree.Effect() != spectree.None || !l.mayCancel(ctx) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	long := longMost
	if usual := c.op.CallSite.Engine().Quickest().Least(); usual != 0 {
		long = min(max(longFactor*usual, longLeast), longMost)
	}
	made := time.Now()
	if c.attempt != nil { // it may take long already: a run that ends by another guess leaves no time to doubt it
		made = c.attempt.began()
	}
	t.mayDoubt()
	t.doubts.calls = append(t.doubts.calls, cancellable{u, made, made.Add(long)})
	t.doubtLater()
}

func (t *task) mayDoubt() {
	if t.doubts == nil {
		t.doubts = new(doubts)
	}
}

// mayWait has the tree told if the call waits long for what other goroutines guess: see
// spectree.Tree.Hurry. Under mu.
func (t *task) mayWait(u *spectree.Use) {
	if !u.Overtaken() {
		return
	}
	o := overtaken{use: u, own: u.Own()}
	t.mayDoubt()
	t.doubts.begins(&o)
	t.doubts.held = append(t.doubts.held, o)
	t.doubtLater()
}

// isHeld notes that the call is held from now on, say since its server refused it: if it is a read
// at which its code guessed, that may be long. Under mu.
func (t *task) isHeld(c *spectree.Call) {
	c.Data.(*call).held()
	u := c.First()
	if u == nil || u.Answer() < 0 || c.Effect() != spectree.None {
		return
	}
	if t.doubts == nil || !slices.ContainsFunc(t.doubts.held, func(o overtaken) bool { return o.use == u }) {
		t.mayWait(u)
	}
}

// mayBeHeldUp has the tree told if the lane, which has come to a barrier, waits long for nothing
// but other goroutines' guesses: see spectree.Tree.HurryLane. Under mu.
func (t *task) mayBeHeldUp(l *lane) {
	if l.tree.WaitsForOthers() {
		t.mayDoubt()
		t.doubts.held = append(t.doubts.held, overtaken{lane: l.tree})
	}
}

// seeHeldUp sees which calls, and lanes at barriers, wait for others' guesses only since something
// has just become known: plain code comes there now. Under mu.
func (t *task) seeHeldUp() {
	if t.doubts == nil || len(t.doubts.held) == 0 {
		return
	}
	t.doubts.held = slices.DeleteFunc(t.doubts.held, func(h overtaken) bool { return h.next.IsZero() && !h.waits() })
	for i := range t.doubts.held {
		h := &t.doubts.held[i]
		switch {
		case h.use == nil && h.next.IsZero() && h.lane.HeldUp():
			t.doubts.begins(h)
		case h.use != nil && h.comesOnlyNow():
			h.begins(time.Now())
		default:
			continue
		}
		t.doubtLater()
	}
}

// comesOnlyNow reports whether the last of the call's own guesses has just become known.
func (o *overtaken) comesOnlyNow() bool {
	open := len(o.own)
	for len(o.own) > 0 && !o.own[len(o.own)-1].Doubtful() {
		o.own = o.own[:len(o.own)-1]
	}
	return open > 0 && len(o.own) == 0
}

// begins notes that the wait begins. If a run that is discarded by now waited in the same place,
// the wait goes on from there: others' wrong guesses must not make it longer.
func (d *doubts) begins(o *overtaken) {
	made := time.Now()
	if i := slices.IndexFunc(d.held, o.takesOver); i >= 0 {
		made = d.held[i].made
	}
	o.begins(made)
}

func (o *overtaken) begins(made time.Time) { o.made, o.next = made, made.Add(patience) }

// takesOver reports whether a discarded run waited where the other one waits.
func (o *overtaken) takesOver(h overtaken) bool {
	switch {
	case h.next.IsZero() || (o.use == nil) != (h.use == nil):
		return false
	case o.use == nil:
		return h.lane.Run().Discarded() && h.lane.ID() == o.lane.ID()
	}
	a, b := h.use.Call, o.use.Call
	return h.use.Run.Discarded() && a.Lane() == b.Lane() && a.Op() == b.Op() && a.Occurrence() == b.Occurrence()
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

// doubtLater has the task look at these calls once the next one takes long, or has waited
// for long. Under mu.
func (t *task) doubtLater() {
	d := t.doubts
	if len(d.calls)+len(d.held) == 0 || t.ended {
		return
	}
	var next time.Time
	for _, c := range d.calls {
		next = sooner(next, c.long)
	}
	for _, h := range d.held {
		if !h.next.IsZero() {
			next = sooner(next, h.next)
		}
	}
	if next.IsZero() {
		return
	}
	switch wait := time.Until(next); {
	case d.timer == nil:
		d.timer = time.AfterFunc(wait, t.doubt)
	case d.set.IsZero() || next.Before(d.set):
		d.timer.Reset(wait)
	default:
		return
	}
	d.set = next
}

// sooner returns the sooner of two times, the first of which may be zero for none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// doubt starts a doubter if a call takes long, or waits for long. If there has been one
// already the next comes later.
func (t *task) doubt() {
	t.mu.Lock()
	defer t.unlock()
	d := t.doubts
	d.set = time.Time{}
	if t.ended {
		return
	}
	now := time.Now()
	d.calls = slices.DeleteFunc(d.calls, func(c cancellable) bool { return !c.use.Doubtful() })
	long := false
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
	d.held = slices.DeleteFunc(d.held, func(h overtaken) bool { return !h.waits() })
	for i := range d.held {
		h := &d.held[i]
		if h.next.IsZero() || now.Before(h.next) {
			continue
		}
		h.next = now.Add(now.Sub(h.made))
		if h.use != nil {
			t.tree.Hurry(h.use)
		} else {
			t.tree.HurryLane(h.lane)
		}
	}
	t.doubtLater()
}

// over returns a channel that is closed when the task ends. The task has none of its own,
// since hardly anybody waits for that only. Under mu.
func (t *task) over() <-chan struct{} {
	t.mayDoubt()
	d := t.doubts
	if d.over == nil {
		d.over = make(chan struct{})
		if t.ended {
			close(d.over)
		}
	}
	return d.over
}

// end has the calls not be looked at any more: the task ends.
func (d *doubts) end() {
	if d == nil {
		return
	}
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.over != nil && !isClosed(d.over) {
		close(d.over)
	}
}
