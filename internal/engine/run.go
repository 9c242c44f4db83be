package engine

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// run is one execution of a task's function.
type run struct {
	task  *task
	tree  *spectree.Run
	ctx   runContext // of its code
	main  lane
	lanes sync.WaitGroup // goroutines of Group and of futures

	// Set by the run's goroutine before it returns.
	value  any
	err    error
	failed *PanicError
	stray  *PanicError // of a goroutine that nobody waited for; under mu

	// Under the task's mu, but for goexit, which is of those above.
	refuter *control.CallSite // whose wrong prediction discarded it
	goexit  bool
	ahead   bool // it went on with a prediction, and counts for the Control
	hooked  bool // there are commit hooks
	leaving bool // its function returned, see giveUp
	began   moment
	left    moment  // when its function returned, or came to a barrier that it had to wait at
	forked  []*lane // in the order in which they were forked
	rare    *rare   // or nil
	wasted  int32   // operations since the run was discarded
}

func newRun(t *task, tr *spectree.Run) *run {
	r := &t.first
	if r.task != nil {
		r = new(run)
	}
	r.task, r.tree = t, tr
	tr.Data = r
	r.began = momentOf(t.clock())
	r.main = lane{tree: tr.Main(), run: r}
	tr.Main().Data = &r.main
	r.ctx.run = r
	if t.tracer != nil {
		t.contain("tracer", func() { r.ctx.from = t.tracer.Run(t.ctx, t.rec.runs[tr.ID-1]) })
	}
	if tr.ID > 1 && t.shadowOf == nil {
		b := &belated{Context: r.ctx.base(), over: make(chan struct{})}
		if r.ctx.from = b; t.ending != nil {
			r.follow()
		}
	}
	return r
}

// rare is what few runs have. Under the task's mu.
type rare struct {
	rollback []func()
	futures  []*future // that the run started
	grouped  []*lane   // in which functions of groups run
	lost     bool      // a combination did without a member
	gone     chan struct{}
	unsure   error // in place of err: the task ended before it was known what its calls have done
}

// rarely returns it, to be added to.
func (r *run) rarely() *rare {
	if r.rare == nil {
		r.rare = new(rare)
	}
	return r.rare
}

// unsure returns the error of a task that ended before it was known what its calls have done.
// Under the task's mu.
func (r *run) unsure() error {
	if r.rare == nil {
		return nil
	}
	return r.rare.unsure
}

// executeAlone is execute in a goroutine of its own.
func (r *run) executeAlone() {
	growStack(r.tree.ID & 1)
	r.execute()
}

// execute runs the user's function to its end, whatever end that is.
func (r *run) execute() {
	normal := false
	defer func() {
		if !normal {
			r.ended(recover())
		}
		r.returned()
	}()
	r.value, r.err = r.task.fn.run(&r.ctx)
	normal = true
}

// growStack has the goroutine's stack grown while it is nearly empty, to what a
// call of grpc needs: growing it later, below the user's and the engine's frames,
// costs several times more.
//
//go:noinline
func growStack(i int) byte {
	var room [8 << 10]byte
	room[i] = 1
	return room[1-i]
}

// growStackALittle is growStack for an attempt, which may be half-open for long. What
// takes a deep stack of it, it leaves to a goroutine that ends.
//
//go:noinline
func growStackALittle(i int) byte {
	var room [3 << 10]byte
	room[i] = 1
	return room[1-i]
}

// ended notes that user code did not return: it panicked with p, or ended its
// goroutine if p is nil.
func (r *run) ended(p any) {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	switch {
	case p == nil:
		r.goexit = true
	case r.failed == nil:
		r.failed = asPanic(p)
	}
}

func (r *run) strayed(p *PanicError) {
	r.task.mu.Lock()
	defer r.task.mu.Unlock()
	if r.stray == nil {
		r.stray = p
	}
}

func asPanic(p any) *PanicError {
	if pe, ok := p.(*PanicError); ok {
		return pe
	}
	return &PanicError{Value: p, Stack: debug.Stack()}
}

// returned tells the tree that the run's goroutines ended.
func (r *run) returned() {
	t := r.task
	cut := t.cut()
	t.mu.Lock()
	r.leaving, r.left = true, now()
	if len(r.forked) > 0 {
		r.rests()
		t.unlock()
		r.giveUp()
		r.lanes.Wait()
		unwaited := r.cutFutures()
		cut = t.cut()
		t.mu.Lock()
		t.doubtNow(unwaited)
	}
	t.note(cut)
	if r.failed == nil {
		r.failed = r.stray
	}
	if t.rec != nil {
		t.rec.returned(r.tree)
	}
	t.tree.Exited(r.tree)
	t.tree.Returned(r.tree)
	t.unlock()
}

// check returns the error of a run that must not go on. A discarded run that
// ignores the error for long is ended. Called under mu, which it keeps unless
// it returns an error.
func (r *run) check() error {
	t := r.task
	if !r.tree.Discarded() && !t.tree.Over() {
		return nil
	}
	r.wasted++
	patience := r.wasted <= wastedOperations
	err := ErrMisspeculated
	switch {
	case t.err != nil:
		err = t.err
	case t.winner == r:
		err = ErrEnded
	}
	t.mu.Unlock()
	if !patience {
		runtime.Goexit()
	}
	return err
}

// wastedOperations is how many operations a discarded run may try before its
// goroutine is ended.
const wastedOperations = 100

// rollBack undoes what a discarded run did, last first.
func (r *run) rollBack() {
	t := r.task
	for {
		t.mu.Lock()
		x := r.rare
		if x == nil || len(x.rollback) == 0 {
			t.mu.Unlock()
			return
		}
		n := len(x.rollback)
		f := x.rollback[n-1]
		x.rollback = x.rollback[:n-1]
		t.mu.Unlock()
		t.contain("rollback hook", f)
	}
}

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
