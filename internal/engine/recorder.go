package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/foresay/foresay/internal/spectree"
	"github.com/foresay/foresay/report"
)

// recorder keeps what happens in a task for its report and its log. It is used
// under the task's mu.
type recorder struct {
	cfg   *taskConfig
	name  string // the task's, or its request's
	start time.Time
	runs  []report.Run
	calls []report.Call
	at    map[*spectree.Call]int // index in calls
	steps map[*spectree.Use]step
	// speculative: the task's caller was when it began.
	speculative bool
	// cause is the call of the event that the tree deals with, and refuted the
	// runs that it discarded and that no run replaces yet.
	cause   int
	refuted []int
}

type step struct{ run, index int }

func newRecorder(cfg *taskConfig, name string) *recorder {
	return &recorder{
		cfg: cfg, name: name, start: time.Now(),
		at: make(map[*spectree.Call]int), steps: make(map[*spectree.Use]step),
	}
}

const never = time.Duration(-1)

func (r *recorder) now() time.Duration { return time.Since(r.start) }

// call returns the call's entry, and makes it if the call is new.
func (r *recorder) call(c *spectree.Call) *report.Call {
	i, ok := r.at[c]
	if !ok {
		site := ""
		if d, ok := c.Data.(*call); ok {
			site = d.op.config().Name
		}
		i = len(r.calls)
		r.at[c] = i
		r.calls = append(r.calls, report.Call{
			ID: i + 1, CallSite: site, Lane: c.Lane(), Effect: effectName(c.Effect()),
			Made: r.now(), Answered: never, Match: spectree.Actual, Confirmed: never, Abandoned: never,
		})
	}
	return &r.calls[i]
}

func effectName(e spectree.Effect) string {
	return [...]string{"none", "staged", "immediate", "predicated"}[e]
}

// used notes that a run made a call.
func (r *recorder) used(u *spectree.Use, c *call) {
	_, adopted := r.at[c.tree]
	cr := r.call(c.tree)
	r.caused(cr)
	for range len(c.predictions) - len(cr.Predicted) {
		cr.Predicted = append(cr.Predicted, r.now())
	}
	run := &r.runs[u.Run.ID-1]
	s := report.Step{Call: cr.ID, Lane: c.tree.Lane(), At: r.now(), Resumed: never, Prediction: u.Answer(),
		Adopted: adopted}
	if s.Prediction != spectree.Waiting {
		s.Resumed = s.At
	}
	r.steps[u] = step{u.Run.ID - 1, len(run.Steps)}
	run.Steps = append(run.Steps, s)
	r.log("call", "call", cr.ID, "site", cr.CallSite, "run", u.Run.ID, "answer", s.Prediction, "adopted", adopted)
}

// caused notes that what the tree does next, it does for this call.
func (r *recorder) caused(c *report.Call) { r.cause, r.refuted = c.ID, r.refuted[:0] }

func (r *recorder) predicted(c *call) {
	cr := r.call(c.tree)
	r.caused(cr)
	cr.Predicted = append(cr.Predicted, r.now())
	r.log("predicted", "call", cr.ID, "site", cr.CallSite, "prediction", len(cr.Predicted)-1)
}

func (r *recorder) answered(c *call, match int) {
	cr := r.call(c.tree)
	r.caused(cr)
	if cr.Abandoned != never {
		return // the end of an attempt that was called off is no answer
	}
	cr.Answered, cr.Match = r.now(), match
	if c.err != nil {
		cr.Error = c.err.Error()
	}
	r.log("answered", "call", cr.ID, "site", cr.CallSite, "match", match, "error", cr.Error)
}

// record notes an action of the tree.
func (r *recorder) record(a *spectree.Action) {
	now := r.now()
	switch a.Kind {
	case spectree.StartRun:
		r.started(a, now)
	case spectree.DiscardRun:
		rr := &r.runs[a.Run.ID-1]
		rr.State, rr.Ended = "discarded", now
		if a.Call != nil {
			rr.RefutedBy = r.call(a.Call).ID
			r.cause, r.refuted = rr.RefutedBy, append(r.refuted, rr.ID)
		} else if a.Run.Renewed() {
			r.cause, r.refuted = 0, append(r.refuted, rr.ID)
		}
		r.log("discarded", "run", a.Run.ID, "refuted_by", rr.RefutedBy)
	case spectree.Resume:
		if s, ok := r.steps[a.Use]; ok {
			st := &r.runs[s.run].Steps[s.index]
			st.Resumed, st.Prediction = now, a.Use.Answer()
		}
	case spectree.Final:
		r.runs[a.Run.ID-1].State = "confirmed"
	case spectree.Commit:
		r.runs[a.Run.ID-1].Ended = now
		r.log("confirmed", "run", a.Run.ID)
	case spectree.Diverge:
		r.log("diverged", "run", a.Run.ID)
	default:
		r.recordCall(a, now)
	}
}

func (r *recorder) started(a *spectree.Action, now time.Duration) {
	rr := report.Run{ID: a.Run.ID, Started: now, Returned: never, Ended: never, State: "open", Cause: r.cause}
	switch {
	case a.Call != nil:
		rr.Cause, rr.Doubts = r.call(a.Call).ID, true
	case len(r.refuted) > 0:
		rr.ReplayOf, r.refuted = r.refuted[0], r.refuted[1:]
	}
	r.runs = append(r.runs, rr)
	r.log("run", "run", rr.ID, "cause", rr.Cause, "replay_of", rr.ReplayOf)
}

func (r *recorder) recordCall(a *spectree.Action, now time.Duration) {
	if a.Call == nil {
		return
	}
	cr := r.call(a.Call)
	switch a.Kind {
	case spectree.Hold:
		r.held(a.Call, a.Reason())
	case spectree.Settle:
		if cr.Confirmed == never {
			cr.Confirmed = now
		}
	case spectree.Confirm:
		cr.Confirmed = now
		r.log("confirm", "call", cr.ID, "site", cr.CallSite)
	case spectree.Abandon:
		cr.Abandoned = now
		r.log("abandoned", "call", cr.ID, "site", cr.CallSite)
	}
}

// sent notes that an attempt of the call is made, perhaps a while after the tree
// said so.
func (r *recorder) sent(c *spectree.Call, speculative bool) {
	cr := r.call(c)
	cr.Sent = append(cr.Sent, report.Send{At: r.now(), Speculative: speculative})
	r.log("sent", "call", cr.ID, "site", cr.CallSite, "speculative", speculative)
}

func (r *recorder) held(c *spectree.Call, reason string) {
	cr := r.call(c)
	cr.Held = append(cr.Held, report.Hold{At: r.now(), Reason: reason})
	r.log("held", "call", cr.ID, "site", cr.CallSite, "reason", reason)
}

// returned notes that a run's function returned.
func (r *recorder) returned(run *spectree.Run) { r.runs[run.ID-1].Returned = r.now() }

func (r *recorder) log(event string, args ...any) {
	if r.cfg.logger == nil {
		return
	}
	args = append([]any{"task", r.name, "at", r.now()}, args...)
	r.cfg.logger.Log(context.Background(), slog.LevelDebug, "foresay: "+event, args...)
}

// reported hands the report of an ended task to whoever asked for it, once.
func (t *task) reported() {
	r := t.rec
	if r == nil && !t.ledger.counted {
		return
	}
	t.mu.Lock()
	if t.told {
		t.mu.Unlock()
		return
	}
	t.told = true
	var out *report.Report
	if r != nil {
		out = r.report(t.err)
		out.Stalls = int(t.dog.stalls)
		out.LimitedBy = t.limitsMet()
	}
	t.mu.Unlock()
	t.closeLedger(out)
	if out == nil {
		return
	}
	if r.cfg.report != nil {
		t.contain("report", func() { r.cfg.report(out) })
	}
	if t.ledger.kept {
		t.control.Engine().Keep(out)
	}
	if t.tracer != nil {
		t.contain("tracer", func() { t.tracer.Ended(out) })
	}
}

// report returns what happened. Under the task's mu.
func (r *recorder) report(err error) *report.Report {
	out := &report.Report{
		Speculative: r.speculative,
		Task:        r.name, Start: r.start, Duration: r.now(), Outcome: "confirmed",
		Runs: append([]report.Run(nil), r.runs...), Calls: append([]report.Call(nil), r.calls...),
	}
	if err != nil {
		out.Outcome = err.Error()
	}
	for i := range out.Runs {
		out.Runs[i].Steps = append([]report.Step(nil), out.Runs[i].Steps...)
	}
	return out
}
