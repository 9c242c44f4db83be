package foresay

import (
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// aboutToSettle is why a call that may be sent on a guess is held.
const aboutToSettle = "what it depends on is about to be known"

// settlesWithin returns how long a speculative attempt of a call should wait,
// because what its caller stands on is usually known before that; 0 for not at all.
// Sending on a guess costs more than it would save then. Under mu.
func (t *task) settlesWithin(sent *call, use *spectree.Use) time.Duration {
	least := sent.op.Site.cfg.Limits.MinSaving
	if least == 0 {
		least = t.cfg.limits.MinSaving
	}
	if least == 0 {
		least = 500 * time.Microsecond
	}
	if use == nil || least < 0 {
		return 0
	}
	b := use.Blocker()
	if b == nil {
		return 0
	}
	c, ok := b.Data.(*call)
	if !ok {
		return 0
	}
	usual := c.op.Site.usually()
	if ft, ok := c.op.Transport.(*futureTransport); ok {
		usual = ft.f.usually()
	}
	if usual == 0 || usual > least {
		return 0
	}
	return least
}

// launchPatient launches an attempt that has waited long enough.
func (t *task) launchPatient(a *Attempt) {
	t.mu.Lock()
	if a.patient != nil && !t.tree.Over() {
		a.patient = nil
		t.launch(a)
	}
	t.unlock()
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

// took notes how long a call of the site took. What is kept is a minimum that
// slowly forgets: waiting in queues on a busy machine is no reason to send more.
func (s *Site) took(d time.Duration) {
	const forget = 32
	old := time.Duration(s.latency.Load())
	if old != 0 && d > old {
		d = old + (d-old)/forget
	}
	s.latency.Store(int64(max(d, 1))) // a lost update does not matter
}

// usually returns how long the site's calls take at best, 0 if it has made none.
func (s *Site) usually() time.Duration { return time.Duration(s.latency.Load()) }

// usually returns how long the future's result takes from its task's newest
// call on, as far as is known.
func (f *future) usually() time.Duration {
	if f.task == nil {
		return 0
	}
	if s := f.task.newest.Load(); s != nil {
		return s.usually()
	}
	return 0
}
