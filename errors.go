package foresay

import (
	"errors"
	"fmt"
)

var (
	// ErrMisspeculated is what the operations of a discarded run return, and the
	// cause of its context's end: the run computed on a wrong guess, and another
	// one takes its place. User code passes it on like any error; nobody outside
	// the run ever sees it.
	ErrMisspeculated = errors.New("foresay: misspeculated: this run computed on a wrong guess and was discarded")

	// ErrDiverged ends a task whose function did not repeat itself: run again on
	// the same results, it did not make a call with side effects that it had made
	// before. Something that it depends on is neither a call's result nor recorded
	// with Memo. The error that wraps it names the task and the call.
	ErrDiverged = errors.New("foresay: diverged: the function did not repeat a call with side effects that it had made before")

	// ErrEnded is what operations return whose context belongs to a task that has
	// ended, as in a goroutine that outlives its handler: use a context of one's own.
	ErrEnded = errors.New("foresay: the task that this context belongs to has ended")

	// ErrForeignFuture is returned for a future of one task that is used in another.
	ErrForeignFuture = errors.New("foresay: the future belongs to a run of another task")

	// ErrAbandoned, as the cause with which the context of a task is cancelled, says that
	// nobody wants the task's result (context.WithCancelCause; a cause may wrap it). A
	// task that stands on guesses then ends at once. With any other cause its function is
	// run once more, without predictions, to come to the end that plain code comes to.
	ErrAbandoned = errors.New("foresay: the task was abandoned: nobody wants its result")

	errNotNeeded = errors.New("foresay: nobody needs the result any more")
	errGoexit    = errors.New("foresay: the function ended its goroutine")
	errPanicked  = errors.New("foresay: the function panicked")
)

// PanicError carries a panic of a function that the engine ran in a goroutine
// of its own. Do, Wait and Group.Wait panic with it in their caller's goroutine
// if the run is confirmed; a discarded run's panic counts for nothing.
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
