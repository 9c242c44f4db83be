package spectree

import "slices"

// detach takes a use away from its call. A call without uses is abandoned if nobody has heard of
// it, or code gave it up. Otherwise it becomes an orphan: its answer is on its way, and the run
// that takes this one's place will most likely make it again. One that is certain stays, but for
// reads that are replaced.
func (t *Tree) detach(u *Use) {
	c := u.Call
	if u.at < 0 {
		return
	}
	u.handOn()
	last := len(c.uses) - 1
	moved := c.uses[last]
	c.uses[u.at] = moved
	moved.at = u.at
	c.uses[last] = nil
	c.uses = c.uses[:last]
	u.at = -1
	if len(c.uses) > 0 || c.dead {
		return
	}
	switch {
	case c.spec.Local, c.send == unsent && !c.answered, c.postponed:
		t.abandon(c)
	case c.undecided() && c.doomed():
		t.abandon(c) // its server refuses it
	case c.givenUp():
		t.abandon(c) // as if that run had been the last to let go
	case c.settled, c.Confirmed() && !c.underWay():
		// Stays in the record: the run that turns out right makes it.
	default:
		c.orphanedAt, c.orphan = int32(t.started), int32(len(t.orphans))
		t.orphans = append(t.orphans, c)
	}
}

// replaced reports whether a read that it was right to make need not go on, since a run that is
// right so far made another call in its place. Goroutines that share a lane make ordered calls in
// another order in each run, and calls that cannot be compared are other calls in each, so the run
// that turns out right may never come to this one. It keeps a stream for which others may wait.
func (t *Tree) replaced(c *Call) bool {
	return slices.ContainsFunc(t.runs, func(r *Run) bool {
		u := r.useAt(c.key)
		return u != nil && u.Call != c && u.dep.blocker() == nil
	})
}

// underWay reports whether the call is a read that is not answered.
func (c *Call) underWay() bool { return c.spec.Effect == None && !c.answered }

func (t *Tree) unorphan(c *Call) {
	if c.orphanedAt == 0 {
		return
	}
	c.orphanedAt = 0
	if c.undecided() { // see mayEnd and parted
		t.doubtful = true
		t.freed = append(t.freed, c.wakes...)
	}
	last := len(t.orphans) - 1
	moved := t.orphans[last]
	t.orphans[c.orphan], moved.orphan = moved, c.orphan
	t.orphans[last] = nil
	t.orphans = t.orphans[:last]
}

func (t *Tree) abandon(c *Call) {
	c.dead = true
	t.unanswered.forget(c)
	t.record.remove(c)
	t.forget(c)
	t.emitCall(Abandon, c)
	t.freed = append(t.freed, c.wakes...)
	c.wakes = nil
}

// Expire abandons every call that no run uses: the grace in which a replay could have adopted it is
// over. If overdue says so, it is over too for calls that came early: see Early.
func (t *Tree) Expire(overdue bool) {
	t.sweep(t.started + 1)
	t.reconcile()
	if overdue {
		t.expireEarly()
	}
}

// sweep abandons the calls that were orphaned before the run with this ID started, save those that
// a live run is sure to make, or the run that turns out right most likely. When that run has
// returned it has made all that it makes, so it adopts none of them any more.
func (t *Tree) sweep(before int) {
	for i := 0; i < len(t.orphans); {
		c := t.orphans[i]
		if int(c.orphanedAt) >= before || c.undecided() ||
			t.expects(c) || c.Confirmed() && !t.replaced(c) {
			i++
			continue
		}
		t.unorphan(c)
		t.abandon(c)
	}
}
