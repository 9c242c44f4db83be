package spectree

import "slices"

// Goroutines that share a lane make its calls in another order in each run. The
// order that one run saw is then no part of what a call is: else the same call
// would be several calls, of which each run makes another one.

// share notes that goroutines share the lane: a call is made while another one
// is waited for.
func (t *Tree) share(l *Lane) {
	if _, ok := t.shared[l.id]; ok {
		return
	}
	if t.shared == nil {
		t.shared = make(map[string]struct{})
	}
	t.shared[l.id] = struct{}{}
	t.shares++
	t.rekey = true
}

// firstBefore returns a call of the chain that has to be answered before the use's call may
// be sent on its account, or nil.
func (t *Tree) firstBefore(u *Use, n *chain, right bool) *Call {
	c := u.Call
	if !right || !u.lane.awaits() { // on a guess, nobody gets ahead of others
		return t.blocker(n, c, c.spec.Conflict)
	}
	all, awaited := t.unanswered.all, int(u.lane.awaited)
	if c.counted {
		all--
		if !u.before {
			awaited--
		}
	}
	if all <= awaited && u == u.lane.uses[len(u.lane.uses)-1] { // the lane's code waits for all that are not answered
		return nil
	}
	return t.blockerBut(n, c, c.spec.Conflict, u.beside)
}

// beside reports whether code of the lane, or of one that it comes from, still waits for a call
// that it made before this one, or before it forked: a goroutine that shares that lane made it. In
// code without speculation the two calls are in flight at the same time, so neither comes before
// the other. What the code went on from with a prediction does come before.
func (u *Use) beside(earlier *Call) bool {
	beside := false
	for _, e := range earlier.uses { // a run may have made it in several lanes
		if e.Run == u.Run {
			if e.before {
				return false
			}
			beside = beside || u.follows(e)
		}
	}
	return beside
}

// follows reports whether the lane, or one that it comes from, made another use before this one, or
// before it forked.
func (u *Use) follows(e *Use) bool {
	at := u.index
	for l := u.lane; l != nil; l = l.parent {
		if l == e.lane {
			return e.index < at
		}
		at = int(l.forkedAt)
	}
	return false
}

// awaits reports whether code of the lane, or of one that it comes from, waits for a call with side
// effects, or an ordered one.
func (l *Lane) awaits() bool {
	for ; l != nil; l = l.parent {
		if l.awaited > 0 {
			return true
		}
	}
	return false
}

// orderOf returns the ordered calls that came before a call of the lane, as far
// as they are the same in each run.
func (t *Tree) orderOf(n *chain) *chain {
	if n == nil || t.shared == nil {
		return n
	}
	if n.keptAt == t.shares {
		return n.kept
	}
	kept := t.orderOf(n.prev)
	if n.join != nil {
		if join := t.orderOf(n.join); join != nil && join != kept {
			kept = kept.pushJoin(join)
		}
	} else if _, ok := t.shared[n.call.key.lane]; !ok {
		kept = kept.push(n.call)
	}
	n.kept, n.keptAt = kept, t.shares
	return kept
}

// With shared lanes the runs that make a call may disagree about the order. As long
// as none of them is known to be right so far, the first maker's counts, so that no
// two calls wait for each other. From then on any order of a run that is right so far
// will do: of all such runs, each may be wrong about what follows, and the first call
// of each that is not answered must not wait for one that comes later in its run.

// sender returns a use on account of which the call may be sent, given one of a run
// that is right so far, or nil if there is none. If none may, it returns a call that
// must be answered before, and is woken by all that may change that.
func (t *Tree) sender(c *Call, right *Use) (u *Use, before *Call, reason string) {
	if right == nil || len(c.uses) == 1 {
		if u = right; u == nil {
			u = c.uses[0]
		}
		before, reason = t.before(u, right != nil)
		return u, before, reason
	}
	for _, u := range c.uses {
		if b := u.dep.blocker(); b != nil {
			wakeOn(b, c)
			continue
		}
		if before, reason = t.before(u, true); before == nil {
			return u, nil, ""
		}
		wakeOn(before, c)
	}
	return right, before, reason
}

// before returns a call that has to be answered before the use's call may be sent on
// its account, and says why; nil if there is none.
func (t *Tree) before(u *Use, right bool) (*Call, string) {
	c := u.Call
	if b := t.firstBefore(u, u.eff, right); b != nil {
		return b, "an earlier call with side effects is not answered"
	}
	if !c.spec.Ordered {
		return nil, ""
	}
	ord := u.ord
	if t.shared != nil && !right {
		ord = c.use.ord
	}
	if b := t.firstBefore(u, ord, right); b != nil {
		return b, "an earlier ordered call is not answered"
	}
	return nil, ""
}

// findOrdered finds an ordered call in the record. It returns the key with which
// a new one is to be entered, if there is none.
func (t *Tree) findOrdered(l *Lane, k key) (*Call, key) {
	k.ord = t.orderOf(l.ord)
	t.rekeyAll()
	c := t.record.find(k)
	if c == nil && l.run.ID > 1 && t.comesEarly(l, k) {
		t.share(l)
		k.ord = t.orderOf(l.ord)
		t.rekeyAll()
		c = t.record.find(k)
	}
	if k.ord == l.ord {
		return c, k
	}
	t.walks++
	if c != nil && t.follows(c, l.ord, t.walks) {
		return c, k
	}
	exact := k
	exact.ord = l.ord
	if o := t.record.find(exact); o != nil || c != nil {
		return o, exact // it was entered so, or is to be, beside the one that does not follow
	}
	return nil, k
}

// rekeyAll brings the record up to date with which lanes are shared.
func (t *Tree) rekeyAll() {
	if !t.rekey {
		return
	}
	t.rekey = false
	for _, c := range t.record.all {
		if c.spec.Ordered && !c.spec.Once {
			k := c.key
			k.ord = t.orderOf(k.ord)
			t.record.rekey(c, k)
		}
	}
}

// follows reports whether the call may have come after these ordered calls, of
// which its key does not tell those of shared lanes: each of these was answered
// before the call was sent, or its first maker made it too, so that they only
// swapped places.
func (t *Tree) follows(c *Call, n *chain, walk int) bool {
	first, last, all := n, int32(1), true // all: they are answered, the last of them then
	for ; n != nil; n = n.prev {
		if n.seen == walk {
			return true
		}
		n.seen = walk
		if n.answeredAt > 0 && c.comesAfter(n.answeredAt) {
			last = max(last, n.answeredAt)
			break
		}
		if n.join != nil {
			if !t.follows(c, n.join, walk) {
				return false
			}
			all, last = all && n.join.answeredAt > 0, max(last, n.join.answeredAt)
			continue
		}
		q := n.call
		all, last = all && q.answered, max(last, q.answeredAt)
		if q.answered && c.comesAfter(q.answeredAt) {
			continue
		}
		if _, ok := t.shared[q.key.lane]; ok && !c.use.Run.used(q) {
			return false
		}
	}
	if all && first != nil {
		first.answeredAt = last
	}
	return true
}

// comesAfter reports whether the call was sent after that, or is yet to be.
func (c *Call) comesAfter(answered int32) bool {
	return c.send == unsent && !c.answered || answered < c.sentAt
}

// inOrder reports whether a call without effects that is found by its place alone may come after
// all ordered calls that the lane made: each was answered before it was sent, or its first maker
// made it, too, or the run still waits for it, so that the two are in flight at the same time (see
// beside), or has given it up. Runs that gave up different calls may each make an ordered call in
// one place, and both be right; what follows one of them was not sent after the other one's answer.
// Once the task's context has ended, the order of goroutines that share a lane, or the one that it
// comes from, is left out.
func (t *Tree) inOrder(l *Lane, c *Call) bool {
	if !c.spec.Ordered || c.spec.Effect != None || c.send == unsent && !c.answered || c.key.ord == l.ord {
		return true
	}
	if t.unordered(l) {
		return true
	}
	t.walks++
	return !l.ord.any(t.walks, func(q *Call) bool {
		before := q.answered && q.answeredAt < c.sentAt
		return !before && !disjoint(q.spec.Conflict, c.spec.Conflict) && !sameDomain(q, c) &&
			!c.use.Run.used(q) && l.run.heard(q)
	})
}

// unordered reports whether the order counts no more in which goroutines that share the lane, or
// one that it comes from, did what they did: the task's context has ended, and what is made anew
// fails.
func (t *Tree) unordered(l *Lane) bool {
	for o := l; o != nil && t.late; o = o.parent {
		if _, shared := t.shared[o.id]; shared {
			return true
		}
	}
	return false
}

// heard reports whether the run has gone on with an answer to the call, anywhere.
func (r *Run) heard(c *Call) bool {
	return slices.ContainsFunc(r.uses, func(u *Use) bool { return u.Call == c && u.before && !u.gaveUp && !u.unneeded })
}

// used reports whether the run made the call, whatever became of the run.
func (r *Run) used(c *Call) bool {
	for _, u := range r.uses {
		if u.Call == c {
			return true
		}
	}
	return false
}

// comesEarly reports whether the lane is about to make a call that another run
// made in another place of the lane, although nothing tells the two runs apart:
// goroutines share the lane.
func (t *Tree) comesEarly(l *Lane, k key) bool {
	for _, c := range t.record.all {
		o := &c.use
		if c.spec.Ordered && c.key.place() == k.place() && c.key.eff == k.eff && o.Run != l.run &&
			!l.keepsStep(o) && l.toldAll(o) {
			return true
		}
	}
	return false
}
