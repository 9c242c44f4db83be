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
	}
	u.lane.done(u)
	u.answer = Actual
	u.gaveUp, u.unneeded = !unneeded, unneeded
	if c.irrevocable() {
		u.consume(-1)
	}
	t.detach(u)
	if len(c.uses) == 0 && !c.dead && !c.irrevocable() && !c.settled {
		t.unorphan(c)
		t.abandon(c)
	}
	t.reconcile()
}

// tooLate reports whether the run, on its way to make c at this place, is on
// another path than an earlier run that was right: that one gave up waiting
// here, or made another call, and calls took effect since that this run has not
// made. An answer would come from after them.
func (t *Tree) tooLate(r *Run, k key, c *Call) bool {
	if !slices.ContainsFunc(t.dropped[k.place()], drop.right) {
		if o := t.record.confirmedAt(k); o == nil || o == c {
			return false
		}
	}
	for _, o := range t.sent.all {
		if o.key.place() != k.place() && !r.made(o) {
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
