package telemetry

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// verdict is what became of a guess.
type verdict struct {
	outcome string
	at      time.Duration
}

// verdict tells what became of a step that went on with a prediction. step is its
// index in the run.
func (w *writer) verdict(r *report.Run, s *report.Step, step int) verdict {
	c := w.call(s.Call)
	right, at := c.Answered != never && c.Match == s.Prediction && c.Confirmed != never, max(c.Answered, c.Confirmed)
	if r.State == discarded {
		// What the run stood on before this guess, or this guess, was wrong.
		i := slices.IndexFunc(r.Steps, func(o report.Step) bool { return o.Call == r.RefutedBy })
		if !right || r.Ended < at || r.Ended == at && i >= 0 && i <= step {
			outcome := discarded
			if r.RefutedBy == 0 && w.report.Outcome != confirmed && w.report.Outcome != foresay.ErrMisspeculated.Error() {
				outcome = unresolved // nothing was wrong: the task was given up
			}
			return verdict{outcome, r.Ended}
		}
	}
	if right {
		return verdict{confirmed, at}
	}
	return verdict{unresolved, w.report.Duration}
}

// branch writes what became of a branch, whose span there is if calls were sent
// from it.
func (w *writer) branch(r *report.Run, s *report.Step, v verdict, depth int) {
	c := w.call(s.Call)
	name := named("branch", c.CallSite)
	attrs := append(w.step(r, s), keyMode.String(control.ModeOn.String()), keyPrediction.Int(s.Prediction),
		keyDepth.Int(depth), keyOutcome.String(v.outcome))
	if s.Adopted {
		attrs = append(attrs, keyAdopted.Bool(true))
	}
	found := false
	for _, b := range w.task.branches {
		if b.run == r.ID && b.call == s.Call {
			found, b.told = true, true
			b.span.SetName(name)
			w.tell(b.span, r, s, v, attrs)
		}
	}
	if found {
		return
	}
	if span := w.start(name, s.Resumed); span != nil {
		w.tell(span, r, s, v, attrs)
	}
}

func (w *writer) tell(span trace.Span, r *report.Run, s *report.Step, v verdict, attrs []attribute.KeyValue) {
	span.SetAttributes(attrs...)
	w.linkCall(span, s.Call)
	span.End(trace.WithTimestamp(w.at(v.at)))
	if v.outcome == discarded && r.RefutedBy == s.Call {
		w.wrong[fork{r.ID, s.Call}] = span.SpanContext()
	}
}

// held writes a span for each time that a call waited before it was sent.
func (w *writer) held(c *report.Call) {
	for i := 0; i < len(c.Held); {
		since, reason := c.Held[i].At, c.Held[i].Reason
		outcome, end := unresolved, w.report.Duration
		if n := slices.IndexFunc(c.Sent, func(s report.Send) bool { return s.At >= since }); n >= 0 {
			outcome, end = sent, c.Sent[n].At
		} else if c.Abandoned != never {
			outcome, end = discarded, c.Abandoned
		}
		span := w.start(named("held", c.CallSite), since)
		if span != nil {
			span.SetAttributes(keyCallSite.String(c.CallSite), keyCall.Int(c.ID), keyReason.String(reason))
		}
		for i++; i < len(c.Held) && (outcome != sent || c.Held[i].At < end); i++ {
			if span != nil {
				span.AddEvent("held", trace.WithTimestamp(w.at(c.Held[i].At)),
					trace.WithAttributes(keyReason.String(c.Held[i].Reason)))
			}
		}
		if span != nil {
			span.SetAttributes(keyOutcome.String(outcome))
			w.linkCall(span, c.ID)
			span.End(trace.WithTimestamp(w.at(end)))
		}
	}
}
