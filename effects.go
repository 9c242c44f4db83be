package foresay

import (
	"context"

	"github.com/foresay/foresay/internal/engine"
)

// Barrier waits until the run is confirmed, and returns ErrMisspeculated if it
// is discarded instead. From the moment it waits the run takes no predictions, and
// once it has passed it is never run again, so that what follows may touch the world
// freely.
// The responses so far are kept no longer: a task that makes many large calls takes
// less memory with a Barrier now and then.
// Outside of a task it returns nil. [SpecRPC §3.5.2, specBlock]
func Barrier(ctx context.Context) error {
	return engine.Barrier(ctx)
}

// Act runs f, which has a side effect, once per task and key, when everything
// that the code did before is confirmed, and records its result for later runs.
// The code may go on to speculate after it. f's context is outside of the task.
// A key that is used for one type cannot be used for another: that is an error.
// Outside of a task Act is a plain call of f.
func Act[T any](ctx context.Context, key string, f func(ctx context.Context) (T, error)) (T, error) {
	return engine.Act(ctx, key, f)
}

// Memo runs f, which reads something that changes, such as the time, a random
// number or a local file, and records its result once per task and key, so that
// later runs see the same. It does not wait; f must not depend on responses,
// which may be wrong guesses, and its context does not end with the run, since the
// value is the task's. A key that is used for one type cannot be used for another:
// that is an error. Outside of a task Memo is a plain call of f.
func Memo[T any](ctx context.Context, key string, f func(ctx context.Context) (T, error)) (T, error) {
	return engine.Memo(ctx, key, f)
}

// OnCommit has f run when the work up to here is confirmed: after the run
// returned, before the task's result is returned, in program order: hooks of a
// Group's function, or of a future's, run where they were waited for. If the
// run is discarded f never runs. f cannot change the result. Outside of a task
// f runs at once.
//
// In a server's handler the caller's word confirms. The result of a method free
// of side effects stands without it. If the connection is lost before the word
// arrives, the lease is over, or another call needs the stream (on a new connection,
// and where the server admits few), the caller goes on with the result, and the
// handler's commit hooks are lost; its OnRollback functions run. So they are for
// what may be missed, such as a cache. A method whose hooks matter is to be declared
// as staging its effects.
func OnCommit(ctx context.Context, f func()) {
	engine.OnCommit(ctx, f)
}

// OnRollback has f run if the run is discarded, the last registered first,
// before another run takes its place. It may run while the discarded code still
// executes, and at once if the run is discarded already. If the run is
// confirmed, and outside of a task, f never runs.
func OnRollback(ctx context.Context, f func()) {
	engine.OnRollback(ctx, f)
}
