package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/report"
)

// maxSpans bounds the spans of a task, besides its own.
const maxSpans = 512

// never is what a report.Report has for times that did not come.
const never = time.Duration(-1)

// Ended gives all spans their verdicts.
func (t *task) Ended(r *report.Report) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &writer{task: t, report: r, wrong: make(map[fork]trace.SpanContext), spans: len(t.branches)}
	for i := range r.Runs {
		w.run(&r.Runs[i])
	}
	for i := range r.Calls {
		w.held(&r.Calls[i])
	}
	for _, b := range t.branches {
		if !b.told {
			w.untold(b)
		}
	}
	w.task.close(r, w.leftOut)
}

// close ends the task's own span. Under mu.
func (t *task) close(r *report.Report, leftOut int) {
	attrs := []attribute.KeyValue{
		keyRuns.Int(len(r.Runs)), keySavedMs.Float64(ms(r.Saved)), keyWastedMs.Float64(ms(wasted(r))),
		keyWastedCalls.Int(r.Wasted),
	}
	if r.Speculative {
		attrs = append(attrs, keySpeculative.Bool(true))
	}
	if leftOut > 0 {
		attrs = append(attrs, keyLeftOut.Int(leftOut))
	}
	switch {
	case r.Outcome == confirmed:
		attrs = append(attrs, keyOutcome.String(confirmed))
	case r.Outcome == foresay.ErrMisspeculated.Error():
		attrs = append(attrs, keyOutcome.String(discarded))
	case t.ended() == context.Canceled:
		attrs = append(attrs, keyOutcome.String(cancelled), keyReason.String(r.Outcome))
	default:
		attrs = append(attrs, keyOutcome.String(failed), keyReason.String(r.Outcome))
		t.span.SetStatus(codes.Error, r.Outcome)
	}
	t.span.SetAttributes(attrs...)
	t.span.End(trace.WithTimestamp(r.Start.Add(r.Duration)))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// wasted returns how long the wasted calls took, added up.
func wasted(r *report.Report) (d time.Duration) {
	for i := range r.Calls {
		c := &r.Calls[i]
		if c.Abandoned == never || len(c.Sent) == 0 {
			continue
		}
		end := c.Abandoned
		if c.Answered != never {
			end = c.Answered
		}
		d += max(end-c.Sent[0].At, 0)
	}
	return d
}

// fork is where a run was wrong: the run, and the call of whose prediction.
type fork struct{ run, call int }

// writer makes the spans of what a report tells.
type writer struct {
	task    *task
	report  *report.Report
	wrong   map[fork]trace.SpanContext
	spans   int
	leftOut int
}

func (w *writer) at(d time.Duration) time.Time { return w.report.Start.Add(d) }

func (w *writer) call(id int) *report.Call {
	if id < 1 || id > len(w.report.Calls) {
		return new(report.Call)
	}
	return &w.report.Calls[id-1]
}

// run writes a run's span, if it is a replay, and those of its steps.
func (w *writer) run(r *report.Run) {
	if r.ReplayOf != 0 {
		w.replay(r)
	}
	var open []time.Duration // when the verdicts come on what the run stands on
	for i := range r.Steps {
		s := &r.Steps[i]
		switch {
		case s.Prediction >= 0 && !w.settled(s):
			v := w.verdict(r, s, i)
			left := open[:0]
			for _, at := range open {
				if at > s.Resumed {
					left = append(left, at)
				}
			}
			open = append(left, v.at)
			w.branch(r, s, v, len(open))
		case s.Adopted:
			w.adopted(r, s)
		}
	}
}

// replay writes the span of a run that took another one's place.
func (w *writer) replay(r *report.Run) {
	outcome, end := unresolved, w.report.Duration
	if r.Ended != never {
		outcome, end = r.State, r.Ended
	}
	span := w.start(named("replay", w.report.Task), r.Started)
	if span == nil {
		return
	}
	span.SetAttributes(keyRun.Int(r.ID), keyReplayOf.Int(r.ReplayOf), keyCall.Int(r.Cause),
		keyCallSite.String(w.call(r.Cause).CallSite), keyOutcome.String(outcome))
	link(span, w.wrong[fork{r.ReplayOf, r.Cause}], linkBranch)
	span.End(trace.WithTimestamp(w.at(end)))
}

// settled reports whether it was known that the step's prediction is right when
// the run went on with it: then it was no guess any more.
func (w *writer) settled(s *report.Step) bool {
	c := w.call(s.Call)
	return s.Adopted && c.Confirmed != never && c.Match == s.Prediction && max(c.Answered, c.Confirmed) <= s.Resumed
}

// untold ends the branch of a run that did not come as far as the prediction for
// which it was started.
func (w *writer) untold(b *branch) {
	outcome, end := unresolved, w.report.Duration
	for _, r := range w.report.Runs {
		if r.ID == b.run && r.State == discarded {
			outcome, end = discarded, r.Ended
		}
	}
	site := w.call(b.call).CallSite
	b.span.SetName(named("branch", site))
	b.span.SetAttributes(keyRun.Int(b.run), keyCall.Int(b.call), keyCallSite.String(site), keyOutcome.String(outcome))
	b.span.End(trace.WithTimestamp(w.at(end)))
}

// adopted writes the span of a step that an earlier run's call answered.
func (w *writer) adopted(r *report.Run, s *report.Step) {
	c := w.call(s.Call)
	span := w.start(named("adopted", c.CallSite), s.At)
	if span == nil {
		return
	}
	outcome, end := confirmed, s.Resumed
	switch {
	case end != never && r.State == discarded:
		outcome = discarded
	case end == never && r.State == discarded:
		outcome, end = discarded, r.Ended
	case end == never:
		outcome, end = unresolved, w.report.Duration
	}
	span.SetAttributes(w.step(r, s)...)
	span.SetAttributes(keyOutcome.String(outcome))
	w.linkCall(span, s.Call)
	span.End(trace.WithTimestamp(w.at(end)))
}

// step returns the attributes of a step.
func (w *writer) step(r *report.Run, s *report.Step) []attribute.KeyValue {
	attrs := []attribute.KeyValue{keyCallSite.String(w.call(s.Call).CallSite), keyRun.Int(r.ID), keyCall.Int(s.Call)}
	if s.Lane != "" {
		attrs = append(attrs, keyLane.String(s.Lane))
	}
	return attrs
}

// start begins a span below the task's, or returns nil if there are too many.
func (w *writer) start(name string, at time.Duration) trace.Span {
	if w.spans++; w.spans > maxSpans {
		w.leftOut++
		return nil
	}
	_, span := w.task.tracer.Start(w.task.ctx, name, trace.WithTimestamp(w.at(at)))
	return span
}

// linkCall links a span to the client span of a call, if that is known.
func (w *writer) linkCall(span trace.Span, call int) {
	if a := w.task.attempts[call]; a != nil {
		if sc := a.span.Load(); sc != nil {
			link(span, *sc, linkCall)
		}
	}
}

func link(span trace.Span, to trace.SpanContext, what string) {
	if to.IsValid() {
		span.AddLink(trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{keyLink.String(what)}})
	}
}
