package spectree

import "slices"

// detach takes a use away from its call. A call without uses is abandoned if nobody has heard of
// it, or code gave it up. Otherwise it becomes an orphan: its answer is on its way, and the run
// that takes this one's place will most likely make it again. One that is certain stays, unless it
// is replaced.
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
	case c.givenUp():
		t.abandon(c) // as if that run had been the last to let go
	case c.settled, c.Confirmed() && !t.replaced(c):
		// Stays in the record: the run that turns out right makes it.
	default:
		t.leave(c)
	}
}

// leave has the call, which has no uses any more, wait for a run that adopts it.
func (t *Tree) leave(c *Call) {
	c.orphanedAt, c.orphan = int32(t.started), int32(len(t.orphans))
	t.orphans = append(t.orphans, c)
}

// replaced reports whether a live run made another call in the place of a read that is under way.
// Goroutines that share a lane make ordered calls in another order in each run, and calls that
// cannot be compared are other calls in each. So even if it was right to make the read, the run
// that turns out right need not come to it. It keeps a stream for which others may wait.
func (t *Tree) replaced(c *Call) bool {
	return c.underWay() && slices.ContainsFunc(t.runs, func(r *Run) bool {
		u := r.useAt(c.key)
		return u != nil && u.Call != c
	})
}

// takePlace has a read wait for a run that adopts it, if no run makes it, it is under way, and the
// lane is about to make c in its place.
func (t *Tree) takePlace(c *Call) {
	if t.Alone() || c.spec.Local || t.record.confirmedAt(c.key) == c && !t.record.twins {
		return // nobody else made anything there
	}
	unused := t.confirmedWhere(c.key, func(o *Call) bool {
		return o != c && o.underWay() && len(o.uses) == 0 && o.orphanedAt == 0
	})
	if unused != nil {
		t.leave(unused)
	}
}

// underWay reports whether the call is a read that is not answered.
func (c *Call) underWay() bool { return c.spec.Effect == None && !c.answered }

func (t *Tree) unorphan(c *Call) {
	if c.orphanedAt == 0 {
		return
	}
	c.orphanedAt = 0
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
// a live run is sure to make. When that run has returned it has made all that it makes, so it
// adopts none of them any more.
func (t *Tree) sweep(before int) {
	for i := 0; i < len(t.orphans); {
		c := t.orphans[i]
		if int(c.orphanedAt) >= before || t.expects(c) {
			i++
			continue
		}
		t.unorphan(c)
		t.abandon(c)
	}
}
