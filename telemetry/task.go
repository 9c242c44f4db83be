package telemetry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/foresay/foresay/report"
)

// task follows one task.
type task struct {
	tracer trace.Tracer
	ctx    context.Context // the task's with its span: what its runs' contexts are made of
	span   trace.Span
	name   string
	ended  func() error // of the task's own context

	mu       sync.Mutex
	start    time.Time        // of the task's clock
	branches []*branch        // as they began
	attempts map[int]*attempt // by call, the newest
}

// branchKey tells branches apart: a run that goes on with a prediction of a call.
// Code that makes spans of its own has a branch below each of them.
type branchKey struct {
	run, call int
	parent    trace.SpanID
}

// branch is a span that is open until the verdict.
type branch struct {
	branchKey
	span trace.Span
	told bool // its verdict
}

// attempt is a call that is sent, as ClientHandler sees it.
type attempt struct {
	site        string
	speculative bool
	outer       trace.Span // the code's, where the call would be without a guess
	span        atomic.Pointer[trace.SpanContext]
}

type attemptKey struct{}

// Run returns the task's context with its span, in which the code of the first
// run and of replays runs, for that is the confirmed path, and so may be one that waits
// for what others guessed. A run that takes another prediction than the runs before has
// its branch around all that it does.
func (t *task) Run(ctx context.Context, run report.Run) context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.start.IsZero() {
		t.start = time.Now().Add(-run.Started)
	}
	if run.Cause == 0 || run.ReplayOf != 0 || run.Doubts {
		return t.ctx
	}
	if b := t.begin(t.ctx, branchKey{run.ID, run.Cause, t.span.SpanContext().SpanID()}, run.Started); b != nil {
		return trace.ContextWithSpan(ctx, b.span)
	}
	return t.ctx
}

// Attempt puts a call that stands on a guess below the branch of that guess.
func (t *task) Attempt(
	ctx context.Context, call report.Call, run report.Run, on int, speculative bool,
) context.Context {
	outer := trace.SpanFromContext(ctx)
	a := &attempt{site: call.CallSite, speculative: speculative, outer: outer}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts[call.ID] = a
	if speculative && on != 0 {
		if b := t.branch(ctx, outer, run, on); b != nil {
			ctx = trace.ContextWithSpan(ctx, b.span)
		}
	}
	return context.WithValue(ctx, attemptKey{}, a)
}

// branch returns the branch of a run that went on with a prediction of a call, for
// code whose span is outer, or nil if there are too many. Under mu.
func (t *task) branch(ctx context.Context, outer trace.Span, run report.Run, on int) *branch {
	key := branchKey{run.ID, on, outer.SpanContext().SpanID()}
	for _, b := range t.branches {
		inside := b.run == key.run && b.call == on && b.span.SpanContext().SpanID() == key.parent
		if b.branchKey == key || inside {
			return b
		}
	}
	since := time.Duration(0)
	for _, s := range run.Steps {
		if s.Call == on {
			since = s.Resumed
		}
	}
	return t.begin(ctx, key, since)
}

// begin begins a branch's span, which gets its name with its verdict, unless there
// are too many. Under mu.
func (t *task) begin(ctx context.Context, key branchKey, since time.Duration) *branch {
	if len(t.branches) >= maxSpans {
		return nil
	}
	_, span := t.tracer.Start(ctx, "branch", trace.WithTimestamp(t.start.Add(since)))
	b := &branch{branchKey: key, span: span}
	t.branches = append(t.branches, b)
	return b
}
