package foresay

import (
	"context"
	"time"
)

// begin gives the attempt's context its end, and has the transport carry the attempt. What
// the context is derived from may be of a user's type, so that no lock is held.
func (a *Attempt) begin() {
	c, t := a.call, a.call.task
	var ctx context.Context
	var cancel context.CancelFunc
	if a.timed {
		ctx, cancel = context.WithDeadline(a.ctx, c.shifted())
	} else {
		ctx, cancel = context.WithCancel(a.ctx)
	}
	t.mu.Lock()
	a.ctx, a.cancel = ctx, cancel
	unwanted := a.unwanted
	t.mu.Unlock()
	if unwanted {
		cancel()
	}
	a.op.Transport.Start(ctx, a)
}

// end ends the attempt's context, once it has begun.
func (a *Attempt) end() {
	t := a.call.task
	t.mu.Lock()
	a.unwanted = true
	cancel := a.cancel
	t.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// shifted returns the deadline of a plain attempt. A time limit of the code's
// own starts anew when the call is really made: run without speculation, the
// code would have reached it only now. The task's own deadline stays.
func (c *call) shifted() time.Time {
	whole, _ := c.task.ctx.Deadline()
	c.task.mu.Lock()
	limit, deadline := c.limit, c.waiter.deadline
	c.task.mu.Unlock()
	if limit == 0 {
		return c.task.began.Add(deadline)
	}
	d := time.Now().Add(limit)
	if !whole.IsZero() && whole.Before(d) {
		return whole
	}
	return d
}

// PlainContext returns the context for the plain call that follows Hold: ctx
// with its values, the deadline that the call has now, and an end of its own if
// nobody wants the call any more.
func (a *Attempt) PlainContext(ctx context.Context) (context.Context, context.CancelFunc) {
	base := context.WithoutCancel(ctx)
	var out context.Context
	var cancel context.CancelFunc
	if d, ok := a.ctx.Deadline(); ok { // it was a confirmed caller's attempt, whose time runs
		out, cancel = context.WithDeadline(base, d)
	} else if _, ok := a.call.ctx.Deadline(); ok {
		out, cancel = context.WithDeadline(base, a.call.shifted())
	} else {
		out, cancel = context.WithCancel(base)
	}
	stop := context.AfterFunc(a.ctx, func() {
		if a.ctx.Err() == context.Canceled { // out has the deadline itself
			cancel()
		}
	})
	return out, func() { stop(); cancel() }
}
