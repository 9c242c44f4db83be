package engine

import (
	"cmp"
	"context"
	"runtime"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// Do is foresay.Do.
func Do[T any](ctx context.Context, f func(ctx context.Context) (T, error), opts ...Option) (T, error) {
	if InTask(ctx) {
		return f(ctx)
	}
	cfg, habit := with(defaults(ctx), opts), habitOf(f)
	if habit.light(ctx, cfg) {
		v, err := newLight(ctx, function[T](f), cfg, habit).do()
		out, _ := v.(T)
		return out, err
	}
	t := newTask(ctx, function[T](f))
	t.cfg = cfg
	t.setUp(spectree.Config{Replayable: true})
	t.idle, t.watched = true, true
	t.start()
	t.waitForEnd()
	habit.had(t.asked.Load())
	v, err := t.result()
	out, _ := v.(T)
	return out, err
}

// waitForEnd waits until the task has ended. Meanwhile its goroutine, whose stack is
// warm, carries plain attempts: their results are part of the task's.
func (t *task) waitForEnd() {
	for a := t.nextWork(); a != nil; a = t.nextWork() {
		a.begin()
		t.mu.Lock()
		t.idle = !t.ended
		t.mu.Unlock()
	}
}

// nextWork waits for an attempt to carry. It returns nil if the task ends before
// that.
func (t *task) nextWork() *Attempt {
	select {
	case <-t.done:
		return t.takeWork()
	case <-t.ctx.Done():
		t.cancelled()
		t.drainWork()
		return nil
	}
}

// drainWork waits for the end of a task that is being cancelled.
func (t *task) drainWork() {
	for range t.done {
		a := t.takeWork()
		go a.carry()
	}
}

// takeWork returns the attempt that an idle goroutine is to carry, or nil if it
// was woken by the task's end. It needs no lock: there is no more work before the
// goroutine is idle again.
func (t *task) takeWork() *Attempt {
	a := t.work
	t.work = nil
	return a
}

// result returns what an ended task gives its caller, after its commit hooks.
func (t *task) result() (any, error) {
	defer t.reported()
	r := t.winner
	if t.err != nil || r == nil {
		return nil, t.err
	}
	defer r.ctx.cancel(context.Canceled)
	r.release()
	t.request.Engine().Waits(control.WaitResult, t.cfg.name, time.Now(), 0)
	v, err := r.outcome()
	t.mu.Lock()
	defer t.mu.Unlock()
	return v, cmp.Or(r.unsure(), err)
}

// outcome ends its caller's goroutine as the run's function ended its own.
func (r *run) outcome() (any, error) {
	if r.failed != nil {
		panic(r.failed)
	}
	if r.goexit {
		runtime.Goexit()
	}
	return r.value, r.err
}
