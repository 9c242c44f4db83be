package foresay

import (
	"context"

	"github.com/foresay/foresay/internal/engine"
)

// Do runs f, ordinary sequential code, and returns its result. Calls that f
// makes through a speculative client may return predicted responses; the code
// after such a call is a run that depends on it. If the actual response
// differs, the run is discarded and f runs again from the top, in a new
// goroutine: the calls that it already made are answered from the task's record.
// Do returns only what was confirmed, after its commit hooks ran.
//
// f must be deterministic given its calls' results, must touch the world only
// through its calls, Act, Memo and hooks (or after Barrier), and must not share
// variables that it changes between runs. A panic of a confirmed run is raised
// again here as a *PanicError. Within a task, Do is a plain call of f. Do may be
// called concurrently.
func Do[T any](ctx context.Context, f func(ctx context.Context) (T, error), opts ...Option) (T, error) {
	return engine.Do(ctx, f, opts...)
}

// Loop runs step from state, and again from the state that it returned, until a step is done, and
// returns the last state. It is a loop of Do, in which a wrong guess costs the step that went on
// with it and what followed, and never a step that is confirmed by then: each step is a task of its
// own, with the state of the one before as its first call. A step may begin while those before it
// stand on guesses, as many as Limits.Depth says. What is kept is what is not confirmed, so a loop
// may go on for ever.
//
// step has the rights of a function given to Do, may execute for several states at once, and must
// have nothing of earlier steps but state. Run again with the same state and results, it must
// return an equal state: a time or a random number in it may have the calls of the next step made
// twice. Once a step is confirmed its commit hooks run, in the order of the steps. A step that made
// calls with side effects is confirmed before the next one begins, unless these are predicated. The
// options hold for each step's task: a report is one of a step. A step's error or panic ends the
// loop once the steps before it are confirmed. Within a task, Loop is a plain loop, and a part of
// that task.
func Loop[S any](
	ctx context.Context, state S, step func(ctx context.Context, state S) (next S, done bool, err error), opts ...Option,
) (S, error) {
	return engine.Loop(ctx, state, step, opts...)
}

// Predicting returns a context that offers values for the result of the calls
// made with it through a speculative client, best first. A value that cannot be
// the call's response is ignored and counted as invalid. [SpecRPC §2, Figure 1]
func Predicting(ctx context.Context, values ...any) context.Context {
	return engine.Predicting(ctx, values...)
}

// Predict sends an early answer to the caller of the handler that ctx belongs
// to, if the caller wants one; the handler goes on to its actual answer. It
// returns ErrMisspeculated in a discarded run. [SpecRPC §2.1, specReturn]
func Predict(ctx context.Context, response any) error {
	return engine.Predict(ctx, response)
}

// ExecutionState tells how the code that holds a context is being run.
type ExecutionState struct {
	InTask      bool // in a Do, a Then or a speculative handler
	Speculative bool // the run, or its caller, stands on an open assumption
	Discarded   bool // one of them was wrong
	Depth       int  // open assumptions, those of callers on other nodes included
	Run         int  // which run of the task this is, from 1
}

// State reports whether one runs speculatively.
func State(ctx context.Context) ExecutionState {
	return ExecutionState(engine.State(ctx))
}

// Group runs functions concurrently within a task and keeps their calls apart,
// so that a replay knows which goroutine made which. Go must be called from one
// goroutine. A run ends only when its groups' functions have ended. Outside of
// a task a Group only runs functions and waits.
type Group engine.Group

// NewGroup returns an empty group for the goroutine that owns ctx.
func NewGroup(ctx context.Context) *Group {
	return (*Group)(engine.NewGroup(ctx))
}

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func(ctx context.Context) error) { (*engine.Group)(g).Go(f) }

// Wait waits until all functions returned and returns the error of the first,
// in the order of Go, that has one. It panics with a *PanicError if one panicked: in a
// task only once the run is confirmed, for which it waits as [Barrier] does.
func (g *Group) Wait() error { return (*engine.Group)(g).Wait() }
