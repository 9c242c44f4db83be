package telemetry

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/foresay/foresay/control"
)

// Tracer makes spans of tasks. It is safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

var _ control.Tracer = (*Tracer)(nil)

// NewTracer returns a tracer whose spans are the provider's; nil: those of the
// global provider.
func NewTracer(p trace.TracerProvider) *Tracer {
	if p == nil {
		p = otel.GetTracerProvider()
	}
	return &Tracer{p.Tracer(scope)}
}

// Task begins the task's span, a child of the one in ctx. It returns nil, and the
// task goes on untraced, if that one is not recorded. Without one in ctx the
// provider's sampler decides.
func (t *Tracer) Task(ctx context.Context, name string) control.TaskTracer {
	parent := trace.SpanFromContext(ctx)
	if sc := parent.SpanContext(); sc.IsValid() && !parent.IsRecording() && !(sc.IsRemote() && sc.IsSampled()) {
		return nil
	}
	inner, span := t.tracer.Start(ctx, named("task", name))
	if !span.IsRecording() {
		span.End()
		return nil
	}
	if name != "" {
		span.SetAttributes(keyTask.String(name))
	}
	return &task{
		tracer: t.tracer, ctx: inner, span: span, name: name, ended: ctx.Err,
		attempts: make(map[int]*attempt),
	}
}

// named returns a span's name: what it is, and of which call site or task. Both are few.
func named(what, of string) string {
	if of == "" {
		return what
	}
	return what + " " + of
}
