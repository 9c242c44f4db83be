package engine

import (
	"errors"
	"fmt"
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
