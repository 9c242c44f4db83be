package spectree

import "slices"

// Drop tells that the run gave up waiting for the call: its own context ended,
// or the result was unneeded, so that nothing can follow from its absence.
// A replay may be luckier, and take another path; if that path does not lead to
// what was done on the strength of the first one, the function counts as not
// deterministic.
func (t *Tree) Drop(u *Use, unneeded bool) {
	if u.answer != Waiting || u.Run.discarded {
		return
	}
	c := u.Call
	if t.dropped == nil {
		t.dropped = make(map[key][]drop)
	}
	if !unneeded && !c.spec.Local {
		k := c.key.place()
		t.dropped[k] = append(t.dropped[k], drop{u.dep.guesses(u.Run)})
		u.lane.gaps = &gap{prev: u.lane.gaps, at: k}
	}
	u.lane.done(u)
	u.answer = Actual
	u.gaveUp, u.unneeded = !unneeded, unneeded
	if c.irrevocable() {
		u.consume(-1)
	}
	t.detach(u)
	t.reconcile()
}

// givenUp reports whether a live run gave the call up, which is to end then once nobody
// else waits for it: calls in order stand behind it, and its server works for nobody.
func (c *Call) givenUp() bool {
	t := c.use.Run.tree
	if t.dropped == nil || c.irrevocable() || c.settled || t.breaks(keepGivenUp) {
		return false
	}
	return slices.ContainsFunc(t.runs, func(r *Run) bool { return r.made(c) })
}

// GivesWay reports whether an earlier run that was right went on without this call of
// the lane, since the code's context had ended, and what followed took effect, which
// this run has not made. Then this run goes on without the call as well once the
// context has ended here: see Skip.
func (t *Tree) GivesWay(l *Lane, s *CallSpec) bool {
	if t.dropped == nil && t.skipped == nil || s.Local || s.Once || t.breaks(neverGiveWay) {
		return false
	}
	occ, _ := l.occurrence(s.Op)
	at := key{lane: l.id, op: s.Op, occ: occ}
	if !slices.ContainsFunc(t.dropped[at], drop.right) && !t.wasSkipped(at) {
		return false
	}
	return slices.ContainsFunc(t.sent.all, func(o *Call) bool { return o.gaps.has(at) && o.key.place() != at && !l.run.made(o) })
}

// Skip tells that the lane did not make a call, since the context of its code had ended.
func (t *Tree) Skip(l *Lane, s *CallSpec) {
	occ, _ := l.occurrence(s.Op)
	at := key{lane: l.id, op: s.Op, occ: occ}
	t.skip(at, drop{l.dep.guesses(l.run)})
	if g := l.gaps; g != nil && g.next() == at { // the list stays short; others may hold it as it was
		l.gaps = &gap{prev: g.prev, at: g.at, more: g.more + 1}
	} else {
		l.gaps = &gap{prev: g, at: at}
	}
	if l.skipped == nil {
		l.skipped = make(map[string]int)
	}
	l.skipped[s.Op]++
}

// skips are calls of one operation that a lane did not make, one after the other.
type skips struct {
	from, to int // occurrences; to is beyond the last
	drop
}

// skip notes that a call was not made.
func (t *Tree) skip(at key, d drop) {
	of := at
	of.occ = 0
	list := t.skipped[of]
	for i := range list {
		if list[i].to == at.occ && slices.Equal(list[i].guesses, d.guesses) {
			list[i].to++
			return
		}
	}
	if t.skipped == nil {
		t.skipped = make(map[key][]skips)
	}
	t.skipped[of] = append(list, skips{at.occ, at.occ + 1, d})
}

// wasSkipped reports whether a run that was right, or may have been, did not make the call.
func (t *Tree) wasSkipped(at key) bool {
	of := at
	of.occ = 0
	return slices.ContainsFunc(t.skipped[of], func(s skips) bool { return s.from <= at.occ && at.occ < s.to && s.right() })
}

// tooLate reports whether the lane, on its way to make c at this place, is on
// another path than that of an earlier run that was right: that one gave up
// waiting here, or made another call, and calls that followed took effect, which
// this run has not made. An answer would come from after them. What other
// goroutines did that never waited for the lane did not follow.
func (t *Tree) tooLate(l *Lane, k key, c *Call) bool {
	at := k.place()
	gaveUp := slices.ContainsFunc(t.dropped[at], drop.right)
	right := t.rightAt(l.run, k)
	other := right != nil && right != c
	if !gaveUp && !other {
		return false
	}
	return slices.ContainsFunc(t.sent.all, func(o *Call) bool {
		follows := gaveUp && o.gaps.has(at) || other && (covers(l.id, o.Lane()) || covers(o.Lane(), l.id))
		return follows && o.key.place() != at && !l.run.made(o)
	})
}

// gap is what a lane gave up waiting for, the newest first.
type gap struct {
	prev *gap
	join *gap // of a lane that it waited for, in place of at
	at   key  // its place
	more int  // of the same operation, one after the other
}

// next returns the place after the last one of the gap.
func (g *gap) next() key {
	at := g.at
	at.occ += g.more + 1
	return at
}

// Ended tells that the call's result is going to be the end of the context of the code
// that made it: who is told that goes on as one who gave up waiting.
func (t *Tree) Ended(c *Call) { c.ended = true }

// wentWithout reports whether the lane went on without the answers that another one
// gave up waiting for.
func (l *Lane) wentWithout(g *gap) bool {
	for ; g != nil; g = g.prev {
		if g.join != nil {
			if !l.wentWithout(g.join) {
				return false
			}
			continue
		}
		for at := g.at; at != g.next(); at.occ++ {
			if !l.gaps.has(at) && !l.ends.has(at) {
				return false
			}
		}
	}
	return true
}

// has reports whether a lane gave up waiting at this place.
func (g *gap) has(at key) bool {
	for ; g != nil; g = g.prev {
		if g.join != nil {
			if g.join.has(at) {
				return true
			}
		} else if n := at.occ - g.at.occ; n >= 0 && n <= g.more && g.at.lane == at.lane && g.at.op == at.op {
			return true
		}
	}
	return false
}

// drop is that a run gave up waiting, on these guesses.
type drop struct{ guesses []choice }

// right reports whether the run was right when it gave up, or may have been: a
// call that is abandoned without an answer kept all that followed from happening.
func (d drop) right() bool {
	for _, g := range d.guesses {
		if g.call.answered && g.call.result != g.answer || !g.call.answered && g.call.dead {
			return false
		}
	}
	return true
}

// guesses returns what the run stands on in a lane's past. What other goroutines
// guessed does not count: the lane's calls take effect all the same.
func (d *dep) guesses(r *Run) []choice {
	var out []choice
	seen := make(map[*dep]bool)
	for todo := []*dep{d}; len(todo) > 0; {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for ; d != nil && !seen[d]; d = d.prev {
			seen[d] = true
			if d.join != nil {
				todo = append(todo, d.join)
			}
			if d.call == nil || d.call.answered {
				continue
			}
			if g := d.call.useOf(r); g != nil {
				out = append(out, choice{d.call, g.answer})
			}
		}
	}
	return out
}
