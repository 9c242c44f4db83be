package foresay

import (
	"context"
	"sync"
	"time"
)

// runContext is the context of a run's code: the task's, with the run's main
// lane, and an end of its own. Most runs come to theirs before anybody waits for
// it, so that there is a context that can be waited for only once it is asked for.
type runContext struct {
	run *run

	traced context.Context // the task's with what the tracer added, or nil

	mu    sync.Mutex
	cause error           // the run ended before inner was made
	inner context.Context // once somebody waits, or derives a context
	stop  context.CancelCauseFunc
}

// base returns the context that this one is derived from.
func (c *runContext) base() context.Context {
	if c.traced != nil {
		return c.traced
	}
	return c.run.task.ctx
}

// cancel ends the context, unless it has ended. It may be called more than once.
func (c *runContext) cancel(cause error) {
	c.mu.Lock()
	stop := c.stop
	if stop == nil && c.cause == nil && c.base().Err() == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	if stop != nil {
		stop(cause)
	}
}

func (c *runContext) waitable() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inner != nil {
		return c.inner
	}
	if c.cause == nil {
		c.inner, c.stop = context.WithCancelCause(c.base())
		return c.inner
	}
	// It ended first, whatever became of its parent since.
	c.inner, c.stop = context.WithCancelCause(context.WithoutCancel(c.base()))
	c.stop(c.cause)
	return c.inner
}

func (c *runContext) Deadline() (deadline time.Time, ok bool) { return c.base().Deadline() }
func (c *runContext) Done() <-chan struct{}                   { return c.waitable().Done() }

func (c *runContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.inner != nil:
		return c.inner.Err()
	case c.cause != nil:
		return context.Canceled
	}
	return c.base().Err()
}

// Value also answers package context, which asks for what it can derive a
// context from, or its cause, by a key of type *int.
func (c *runContext) Value(key any) any {
	switch key.(type) {
	case laneKey:
		return &c.run.main
	case *int:
		return c.waitable().Value(key)
	}
	return c.base().Value(key)
}
