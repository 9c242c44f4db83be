package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/foresay/foresay/internal/spectree"
)

var (
	// ErrMisspeculated is foresay.ErrMisspeculated.
	ErrMisspeculated = errors.New("foresay: misspeculated: this run computed on a wrong guess and was discarded")

	// ErrDiverged is foresay.ErrDiverged.
	ErrDiverged = errors.New("foresay: diverged: the function did not repeat a call with side effects that it had made " +
		"before")

	// ErrEnded is foresay.ErrEnded.
	ErrEnded = errors.New("foresay: the task that this context belongs to has ended")

	// ErrForeignFuture is foresay.ErrForeignFuture.
	ErrForeignFuture = errors.New("foresay: the future belongs to a run of another task")

	// ErrUnfinished is foresay.ErrUnfinished.
	ErrUnfinished = errors.New("foresay: what computes the future may go on")

	// ErrAbandoned is foresay.ErrAbandoned.
	ErrAbandoned = errors.New("foresay: the task was abandoned: nobody wants its result")

	errNotNeeded = errors.New("foresay: nobody needs the result any more")
	errGoexit    = errors.New("foresay: the function ended its goroutine")
	errPanicked  = errors.New("foresay: the function panicked")
)

// PanicError is foresay.PanicError.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // where, as runtime/debug.Stack prints it
}

// Error describes the panic, with its stack.
func (p *PanicError) Error() string {
	return fmt.Sprintf("foresay: panic: %v\n\n%s", p.Value, p.Stack)
}

// Unwrap returns the panic's value if it is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// unfinished is the error of who no longer waits for a future: it reads as what it wraps.
type unfinished struct{ error }

func (u unfinished) Unwrap() []error { return []error{u.error, ErrUnfinished} }

// contextError returns the error of code that gave up because ctx ended. where
// says what it waited for, if that is known.
func contextError(ctx context.Context, where string) error { return endingOf(ctx).error(where) }

// ending is how a context ended: what it said then, which may be code of the user's.
type ending struct{ err, cause error }

func endingOf(ctx context.Context) *ending { return &ending{ctx.Err(), context.Cause(ctx)} }

func (e *ending) error(where string) error {
	if where != "" {
		where += ": "
	}
	if e.cause != e.err {
		return fmt.Errorf("foresay: %sgave up waiting: %w (%w)", where, e.err, e.cause)
	}
	return fmt.Errorf("foresay: %sgave up waiting: %w", where, e.err)
}

// cut returns how the task's context ended, or nil if it has not. It is called without
// locks, and note says so to those who hold mu.
func (t *task) cut() *ending {
	if t.ctx.Err() == nil {
		return nil
	}
	return endingOf(t.ctx)
}

func (t *task) note(e *ending) {
	if t.ending == nil && e != nil {
		t.ending = e
		t.tree.ContextEnded()
	}
}

// diverged returns the error of a task whose function did not repeat a call. What
// the function did not come to before the task's context ended it left out for
// that. Under mu.
func (t *task) diverged(c *spectree.Call) error {
	where := t.whereOf(c)
	switch {
	case t.ending != nil:
		return opOf(c).ended(t.ending.error(where))
	case where == "":
		return ErrDiverged
	}
	return fmt.Errorf("%w: %s", ErrDiverged, where)
}

// named names what is done in the task, and the task if it has a name.
func (t *task) named(what string) string {
	switch name := t.cfg.name; {
	case name == "":
		return what
	case what == "":
		return fmt.Sprintf("task %q", name)
	default:
		return fmt.Sprintf("task %q, %s", name, what)
	}
}

// where names the task and a call: its method, the peer, and which of several
// equal calls it is, counted from 1, if that is known (else 0).
func (t *task) where(op *Operation, occurrence int) string {
	what := op.config().Name
	switch tr := op.Transport.(type) {
	case *act:
		return t.named(fmt.Sprintf("Act of key %q", op.Identity))
	case *futureTransport:
		return t.named(tr.f.describe())
	}
	if occurrence > 0 {
		what += fmt.Sprintf(" (call %d of its kind)", occurrence)
	}
	if op.Conn != "" {
		what += fmt.Sprintf(" at %s", op.Conn)
	}
	return t.named(what)
}

// whereOf is where for a call of the tree's, or for none.
func (t *task) whereOf(c *spectree.Call) string {
	if c == nil {
		return t.named("")
	}
	d, ok := c.Data.(*call)
	if !ok {
		return t.named("")
	}
	return t.where(d.op, c.Occurrence()+1)
}

// opOf returns the operation of a call of the tree's, or nil. Under mu.
func opOf(c *spectree.Call) *Operation {
	if c == nil {
		return nil
	}
	if d, ok := c.Data.(*call); ok {
		return d.op
	}
	return nil
}

// ended returns the error of code that waited for a call when its context ended.
func (op *Operation) ended(err error) error {
	if op == nil {
		return err
	}
	if e, ok := op.Transport.(Ender); ok {
		return e.Ended(err)
	}
	return err
}

// describe names the future by its task.
func (f *future) describe() string {
	if f.task == nil || f.task.cfg.name == "" {
		return "a future"
	}
	return fmt.Sprintf("the future of task %q", f.task.cfg.name)
}
