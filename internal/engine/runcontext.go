package engine

import (
	"context"
	"sync"
	"time"
)

// runContext is the context of a run's code: the task's, with the run's main
// lane, and an end of its own. Most runs come to theirs before anybody waits for
// it, so that there is a context that can be waited for only once it is asked for.
// The task's context may be of a user's type, whose methods may call the engine: they
// are called without locks.
type runContext struct {
	run *run

	from context.Context // the task's with what the tracer added, or a belated one; nil: the task's

	mu    sync.Mutex
	cause error           // the run ended before inner was made
	inner context.Context // once somebody waits, or derives a context
	stop  context.CancelCauseFunc
}

// base returns the context that this one is derived from.
func (c *runContext) base() context.Context {
	if c.from != nil {
		return c.from
	}
	return c.run.task.ctx
}

// cancel ends the context, unless it has ended. It may be called more than once.
func (c *runContext) cancel(cause error) {
	if b, ok := c.from.(*belated); ok {
		b.rest()
	}
	over := c.base().Err() != nil
	c.mu.Lock()
	stop := c.stop
	if stop == nil && c.cause == nil && !over {
		c.cause = cause
	}
	c.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

func (c *runContext) waitable() context.Context {
	for {
		inner, cause := c.state()
		if inner != nil {
			return inner
		}
		base := c.base()
		if cause != nil { // it ended first, whatever became of its parent since
			base = context.WithoutCancel(base)
		}
		inner, stop := context.WithCancelCause(base)
		if cause != nil {
			stop(cause)
		}
		c.mu.Lock()
		if c.inner == nil && c.cause == cause {
			c.inner, c.stop = inner, stop
			c.mu.Unlock()
			return inner
		}
		c.mu.Unlock()
		stop(nil) // somebody else was first
	}
}

func (c *runContext) state() (inner context.Context, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.inner, c.cause
}

func (c *runContext) Deadline() (deadline time.Time, ok bool) { return c.base().Deadline() }
func (c *runContext) Done() <-chan struct{}                   { return c.waitable().Done() }

func (c *runContext) Err() error {
	switch inner, cause := c.state(); {
	case inner != nil:
		return inner.Err()
	case cause != nil:
		return context.Canceled
	}
	return c.base().Err()
}

// Value also answers package context, which asks for what it can derive a
// context from, or its cause, by a key of type *int: TestKeyOfPackageContext.
func (c *runContext) Value(key any) any {
	switch key.(type) {
	case laneKey:
		return &c.run.main
	case *int:
		return c.waitable().Value(key)
	}
	return c.base().Value(key)
}
