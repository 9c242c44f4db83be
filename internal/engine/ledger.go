package engine

import (
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"
)

// ledger is what a task came to, for those who count.
type ledger struct {
	counted bool  // somebody does
	kept    bool  // the Control keeps its report
	ahead   int32 // runs that are counted as being ahead
	start   moment
	number  int32         // in its request
	wasted  int32         // calls made in vain
	sent    int32         // attempts
	waited  time.Duration // of a shadow: how long after its beginning they were made, in all
	settled moment        // when it had its result, but for its caller's word and its hooks
	callers time.Duration // how long it waited for nothing but the caller's word

	plainEnd moment // see run.plainEnd
}

// open begins the ledger of a configured task.
func (t *task) open() {
	c := t.control
	if c != nil {
		t.ledger.kept = c.Engine().Records()
		if tr := c.Engine().Tracer(); tr != nil {
			t.contain("tracer", func() { t.tracer = tr.Task(t.ctx, t.cfg.name) })
		}
	}
	if t.request == nil && c == nil {
		return
	}
	t.ledger.counted = true
	t.ledger.start = now()
	if t.request != nil && t.ledger.number == 0 {
		t.ledger.number = int32(t.request.Engine().Number())
	}
}

// killed reports whether the task's futures take no predictions.
func (t *task) killed() bool {
	if c := t.control; c != nil {
		return c.Killed()
	}
	return control.Engine().KilledFromOutside()
}

// clock returns the time if somebody counts, and no time otherwise.
func (t *task) clock() (now time.Time) {
	if t.ledger.counted {
		now = time.Now()
	}
	return now
}

// luck returns the task's lot.
func (t *task) luck() uint64 {
	for {
		if l := t.lot.Load(); l != 0 {
			return l
		}
		t.lot.CompareAndSwap(0, rand.Uint64()|1)
	}
}

// goesOn notes that a run goes on with a prediction. Under mu.
func (c *call) goesOn(r *run) {
	if ctl := r.task.control; ctl != nil && !r.ahead {
		r.ahead = true
		r.task.ledger.ahead++
		ctl.Engine().Ahead(1)
	}
	if c.phantom || r.task.shadowOf != nil {
		return
	}
	c.op.CallSite.Engine().Counts().Predicted.Add(1)
	c.goneOn = now()
}

// behind notes that a run is not ahead any more. Under mu.
func (r *run) behind() {
	if r.ahead && r.task.ledger.ahead > 0 {
		r.ahead = false
		r.task.ledger.ahead--
		r.task.control.Engine().Ahead(-1)
	}
}

// settleRuns notes that the task has ended. Under mu.
func (t *task) settleRuns() {
	if n := t.ledger.ahead; n > 0 {
		t.ledger.ahead = 0
		t.control.Engine().Ahead(int64(-n))
	}
}

// waste notes that an attempt was made in vain, and whose guess is to blame.
// Under mu.
func (t *task) waste(c *call) {
	t.ledger.wasted++
	guilty := c.maker.refuter
	if guilty == nil || t.shadowOf != nil { // of a shadow everything is: see thrownAway
		return
	}
	end := c.finished
	if end == 0 {
		end = now()
	}
	guilty.Engine().Counts().Wasted.Add(1)
	guilty.Engine().Counts().WastedNanos.Add(int64(end.sub(c.attempt.launched)))
	t.judge(guilty)
}

// judge has the call site's Control look at its call sites, if it is time. Under mu.
func (t *task) judge(s *control.CallSite) {
	if c := s.Engine().Due(); c != nil {
		t.todo = append(t.todo, duty{kind: dutyJudge, of: c})
	}
}

// entered enters a call that counts into the task's request.
func (c *call) entered(right bool) {
	r := c.task.request
	if r == nil || c.attempt == nil {
		return
	}
	if c.op.CallSite.Engine().Local() {
		if _, ok := c.op.Transport.(*act); ok {
			r.Engine().Waits(control.WaitAct, c.op.Identity, c.attempt.launched.time(), int(c.task.ledger.number))
		}
		return
	}
	var g guessing
	if c.guess != nil {
		g = *c.guess
	}
	r.Engine().AddCall(control.CallRecord{
		CallSite: c.op.config().Name, Effect: c.op.config().Effect, Mode: c.mode,
		Start: c.attempt.launched.time().Sub(r.Engine().Start()), End: c.finished.time().Sub(r.Engine().Start()),
		Guessed: len(c.predictions) > 0 || g.guessed(), Digest: g.asked != 0, Right: right, Failed: c.err != nil,
		Peer: c.op.Peer, Ordered: c.op.config().Ordered, SendPlainly: c.op.config().SendPlainly,
		SharedGuessed: g.shared.known, SharedRight: g.shared.right, Task: int(c.task.ledger.number),
	})
}

// closeLedger enters the task into its request, once it has ended.
func (t *task) closeLedger(out *report.Report) {
	r := t.request
	if out != nil {
		out.Wasted = int(t.ledger.wasted)
	}
	if t.winner == nil || t.err != nil || !t.ledger.counted {
		return
	}
	t.mu.Lock()
	end := time.Now()
	plainEnd := t.winner.plainEnd()
	t.ledger.plainEnd = momentOf(plainEnd)
	// What follows the answer, the commit hooks, takes the same time without speculation.
	saved := momentOf(plainEnd).sub(t.winner.began) - (t.ledger.settled.sub(t.ledger.start) - t.ledger.callers)
	t.mu.Unlock()
	if out != nil {
		out.Saved = saved
	}
	if r == nil {
		return
	}
	r.Engine().AddTask(control.TaskRecord{
		Number: int(t.ledger.number), Name: t.cfg.name, Start: t.ledger.start.time().Sub(r.Engine().Start()),
		End:   end.Sub(r.Engine().Start()),
		Saved: saved, Wasted: int(t.ledger.wasted),
	})
}
