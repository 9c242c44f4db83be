package control

import (
	"context"

	"github.com/foresay/foresay/report"
)

// Tracer follows tasks as they happen, for telemetry. It is safe for concurrent
// use. It does not see what a task in ModeShadow starts beside itself.
type Tracer interface {
	// Task begins to follow a task that starts with this context, or returns nil.
	Task(ctx context.Context, name string) TaskTracer
}

// TaskTracer follows one task. Its methods are called one after the other or
// concurrently, and must be quick; those but Ended are called with the task's
// lock held, and must not call the engine.
type TaskTracer interface {
	// Run returns the context, derived from ctx, for the code of a run that begins.
	// The run's report comes with what is known then. If ctx comes back the code
	// sees no difference.
	Run(ctx context.Context, run report.Run) context.Context
	// Attempt returns the context, derived from ctx, with which a call is sent on
	// the account of a run. The context has what Run gave that run. The reports come
	// with what is known then; the run's steps are valid during the call only. on is
	// the call with whose prediction the run went on last, and whose answer is still
	// to come: 0 if there is none.
	Attempt(ctx context.Context, call report.Call, run report.Run, on int, speculative bool) context.Context
	// Ended tells what happened, when the task has ended and its hooks ran.
	Ended(r *report.Report)
}
