package foresay

import "github.com/foresay/foresay/internal/engine"

// What the operations of a task return.
var (
	// ErrMisspeculated is what the operations of a discarded run return, and the
	// cause of its context's end: the run computed on a wrong guess, and another
	// one takes its place. User code passes it on like any error; nobody outside
	// the run ever sees it.
	ErrMisspeculated = engine.ErrMisspeculated

	// ErrDiverged ends a task whose function did not repeat itself: run again on
	// the same results, it did not make a call with side effects that it had made
	// before. Something that it depends on is neither a call's result nor recorded
	// with Memo. The error that wraps it names the task and the call.
	ErrDiverged = engine.ErrDiverged

	// ErrEnded is what operations return whose context belongs to a task that has
	// ended, as in a goroutine that outlives its handler: use a context of one's own.
	ErrEnded = engine.ErrEnded

	// ErrForeignFuture is returned for a future of one task that is used in another.
	ErrForeignFuture = engine.ErrForeignFuture

	// ErrUnfinished is wrapped by the error of a Wait whose context ended first: what computes the
	// future may go on, and its effects may happen yet. So is the error of a task that ended, say
	// since its context did, while a server might yet carry out a predicated call that it had got.
	ErrUnfinished = engine.ErrUnfinished

	// ErrAbandoned, as the cause with which the context of a task is cancelled, says that
	// nobody wants the task's result (context.WithCancelCause; a cause may wrap it). A
	// task that stands on guesses then ends at once. With any other cause its function is
	// run once more, without predictions, to come to the end that plain code comes to.
	ErrAbandoned = engine.ErrAbandoned

	// ErrNoQuorum is wrapped by the error of a Quorum of which too many futures
	// failed or disagree.
	ErrNoQuorum = engine.ErrNoQuorum
)

// PanicError carries a panic of a function that the engine ran in a goroutine of its own. Do, Wait
// and Group.Wait panic with it in their caller's goroutine if the run is confirmed; a discarded
// run's panic counts for nothing. Its Value is what the function panicked with, its Stack where, as
// runtime/debug.Stack prints it.
type PanicError = engine.PanicError
