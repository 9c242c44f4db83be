package engine

import (
	"context"
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// begin gives the attempt's context its end, and has the transport carry the attempt. What
// the context is derived from may be of a user's type, so that no lock is held.
func (a *Attempt) begin() {
	c, t := a.call, a.call.task
	if a.needed && !a.isUnwanted() {
		c.op.Transport.Start(a.ctx, a)
		return
	}
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
	c.op.Transport.Start(ctx, a)
}

// needed reports whether the task must have the result of a plain attempt before it can
// end, so that the attempt needs no end of its own but the task's: a context that is
// cancelled is a good part of what an attempt costs. Code of a run went on with a
// prediction in the run's own context, and in no other goroutine of the run, from which
// this code might have its arguments, has anything begun: so each other run makes the
// call, too. Under mu.
func (c *call) needed(use *spectree.Use) bool {
	_, own := c.ctx.(*runContext)
	return own && use != nil && use.Answer() >= 0 && len(use.Run.Data.(*run).forked) == 0 && c.waiter.deadline == 0
}

// isUnwanted reports whether nobody wants the attempt any more.
func (a *Attempt) isUnwanted() bool {
	a.call.task.mu.Lock()
	defer a.call.task.mu.Unlock()
	return a.unwanted
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

// Timeout returns what the task's deadline leaves for a speculative attempt, 0
// for no deadline. A transport that asks for it ends the attempt by itself then.
func (a *Attempt) Timeout() time.Duration {
	t := a.call.task
	t.mu.Lock()
	a.limited = true
	t.mu.Unlock()
	if d, ok := t.ctx.Deadline(); ok {
		return max(time.Until(d), time.Millisecond)
	}
	return 0
}

// Limit returns the time limit that the code set for the call itself, 0 for
// none. For a speculative attempt it begins when the caller is confirmed: run
// without speculation, the code would have made the call only then.
// It is that of the run that is right from then on.
func (a *Attempt) Limit() time.Duration {
	a.call.task.mu.Lock()
	defer a.call.task.mu.Unlock()
	return a.call.limit
}

// CodeDeadline returns the deadline that the context of the code has, which an attempt without one
// does not show: plain code would make the call with it. A limit of the code's own counts from now.
func (a *Attempt) CodeDeadline() (time.Time, bool) {
	whole, ok := a.call.task.ctx.Deadline()
	limit := a.Limit()
	if limit == 0 {
		return whole, ok
	}
	if own := time.Now().Add(limit); !ok || own.Before(whole) {
		return own, true
	}
	return whole, true
}
