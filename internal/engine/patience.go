package engine

import (
	"time"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/processors"
	"github.com/foresay/foresay/internal/spectree"
)

// longestPatience is how long an attempt waits at once while the processors are
// busy, so that it goes on soon after they are not any more.
const longestPatience = 16 * time.Millisecond

// aboutToSettle is why a call that may be sent on a guess is held.
const aboutToSettle = "what it depends on is about to be known"

// settlesWithin returns how long a speculative attempt of a call should wait,
// because what its caller stands on is usually known before that; 0 for not at all.
// Sending on a guess costs more than it would save then. Under mu.
func (t *task) settlesWithin(sent *call, use *spectree.Use) time.Duration {
	least := sent.op.config().Limits.MinSaving
	if least == 0 {
		least = t.cfg.limits.MinSaving
	}
	if least == 0 {
		least = 500 * time.Microsecond
	}
	c := blocker(use)
	if c == nil || least < 0 {
		return 0
	}
	usual := c.op.CallSite.Engine().Quickest().Least()
	if ft, ok := c.op.Transport.(*futureTransport); ok {
		usual = ft.f.usually()
	}
	if usual > least {
		// Is it the network and the server that take so long, or do calls queue for processors here?
		// Then to send more only makes them longer.
		t.lookAtQueue(sent.op.CallSite)
		usual -= sent.op.CallSite.Engine().Quickest().Queue().PerCall()
	}
	if usual == 0 || usual > least {
		return 0
	}
	return least
}

// lookAtQueue has somebody find out how long goroutines wait for a processor, if it is time. Under
// mu.
func (t *task) lookAtQueue(at *control.CallSite) {
	if at.Engine().Quickest().Queue().Due() {
		t.todo = append(t.todo, duty{kind: dutyLook, of: at})
	}
}

// seeQueue finds out how long goroutines wait for a processor.
func (t *task) seeQueue(at *control.CallSite) time.Duration {
	wait := processors.Wait(t.ctx)
	at.Engine().Quickest().Queue().Waited(wait)
	return wait
}

// blocker returns the call whose answer the use depends on, or nil.
func blocker(use *spectree.Use) *call {
	if use == nil {
		return nil
	}
	b := use.Blocker()
	if b == nil {
		return nil
	}
	c, _ := b.Data.(*call)
	return c
}

// postpone has the attempt launched after d, unless there are reasons to wait
// longer. Under mu.
func (t *task) postpone(a *Attempt, d time.Duration) {
	t.tree.Postpone(a.call.tree)
	a.patient = time.AfterFunc(d, func() {
		more := time.Duration(0)
		if processors.Busy(t.seeQueue(a.call.op.CallSite)) { // which the answer waits for: more work would delay it
			more = min(2*d, longestPatience)
		}
		t.mu.Lock()
		if a.patient != nil && !t.tree.Over() {
			t.launchPatient(a, more)
		}
		t.unlock()
	})
}

// launchPatient launches an attempt that has waited, unless it is to wait for
// more. What it stands on now may be a call that was made while it waited, and
// has its own time. Under mu.
func (t *task) launchPatient(a *Attempt, more time.Duration) {
	use := a.call.tree.First() // that on whose account it was to be sent may be gone
	switch c := blocker(use); {
	case c == nil:
		more = 0 // there is nothing to wait for
	case c.attempt != nil && c.attempt.patient == nil && !c.attempt.speculative:
		more = max(more, t.settlesWithin(a.call, use)-time.Since(c.attempt.began()))
	}
	if more > 0 {
		t.postpone(a, more)
		return
	}
	a.patient = nil
	t.tree.Launched(a.call.tree)
	t.launch(a, nil)
}

// impatient reports whether the attempt was still waiting to be launched, and
// ends its wait. Under mu.
func (a *Attempt) impatient() bool {
	if a.patient == nil {
		return false
	}
	a.patient.Stop()
	a.patient = nil
	return true
}

// began returns when the attempt was launched. If it waits for a future, what
// counts is the newest attempt without a guess of the task that computes it: the
// result has not been on its way for longer than that.
func (a *Attempt) began() time.Time {
	begun := a.launched
	for range maxFutures {
		ft, ok := a.call.op.Transport.(*futureTransport)
		if !ok || ft.f.task == nil {
			break
		}
		if a = ft.f.task.plain.Load(); a == nil {
			break
		}
		if a.launched > begun {
			begun = a.launched
		}
	}
	return begun.time()
}

// maxFutures is how many futures that wait for each other began looks at.
const maxFutures = 16

// usually returns how long the future's result takes from its task's newest
// call on, as far as is known.
func (f *future) usually() time.Duration {
	if f.task == nil {
		return 0
	}
	if s := f.task.newest.Load(); s != nil {
		return s.Engine().Quickest().Least()
	}
	return 0
}
