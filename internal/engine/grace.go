package engine

import (
	"time"

	"github.com/foresay/foresay/internal/spectree"
)

// grace is how long a task waits for its runs to repeat what others did. Under mu.
//
// Calls that no run uses are abandoned once the timer fires. A call that took effect, and
// that a run has yet to make, is waited for longer. Goroutines that share a lane come in
// another order in a replay: one of them makes its next call while another one is still on
// its way to what it did before. It may sleep or compute on its way, as it did the first
// time, but hardly for longer than the task has taken so far; so that is waited for, and some
// seconds more. As long as an attempt whose caller is right is under way, its code may be
// waiting for that.
type grace struct {
	timer   *time.Timer
	set     bool
	missing *spectree.Call // see spectree.Tree.Early
	until   time.Time      // it is waited for
}

// repeatsWithin is for how long, beyond what the task has taken so far, code may be on its way to
// repeat what took effect. Only code that breaks the rules is waited for in vain; that which keeps
// them may have to wait for a processor, or for what is no call.
const repeatsWithin = 5 * time.Second

// watchOrphans has calls that no run uses abandoned after the grace, and ends the task
// if a run does not repeat in time what took effect.
func (t *task) watchOrphans() {
	g := t.grace
	if t.tree.Orphans() == 0 || t.tree.Over() {
		if g != nil {
			g.missing = nil
		}
		return
	}
	if g == nil {
		g = new(grace)
		t.grace = g
	}
	if missing := t.tree.Early(); missing != g.missing {
		g.missing, g.until = missing, time.Now().Add(time.Since(t.began)+repeatsWithin)
	}
	if g.set {
		return
	}
	lasts := t.cfg.limits.AdoptGrace
	if lasts <= 0 {
		lasts = 250 * time.Millisecond
	}
	if g.set = true; g.timer == nil {
		g.timer = time.AfterFunc(lasts, t.graceOver)
	} else {
		g.timer.Reset(lasts)
	}
}

func (t *task) graceOver() {
	cut := t.cut()
	t.mu.Lock()
	t.note(cut)
	g := t.grace
	g.set = false
	t.tree.Expire(g.missing != nil && t.dog.underWay == 0 && !time.Now().Before(g.until))
	t.unlock()
}
