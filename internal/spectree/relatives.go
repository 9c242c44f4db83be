package spectree

import "slices"

// A goroutine that the code started in a lane of its own may do things that cannot be
// seen: make some of its calls with the context of the code around it, so that they count
// as those of another lane, and hand on what it knows otherwise than by being waited for,
// over a channel say. If the guesses of the goroutine's own lane were all that its effects
// wait for, a wrong guess would show. So a call with effects stands on what its lane's
// relatives guess as well: the lanes that it forked and has not waited for, and those that
// it comes from.
//
// Code that keeps to the lanes must not be slower for that than without guesses. So if
// such a call waits for a while, a run is started that does without the relatives'
// guesses, see Hurry. If the code comes to the same call there, the call does not depend on
// them, and is sent on account of that run, beside which the other one goes on.

// standOnRelatives has the lane, which is about to make a call with effects, stand on the
// guesses of its relatives, and reports whether that is more than it stood on before. What
// follows the call comes after effects that may be wrong, so it stands on that as well.
func (l *Lane) standOnRelatives() bool {
	r := l.run
	if r.forked == nil || r.tree.breaks(trustRelatives) || !r.guesses() {
		return false
	}
	d := l.children.guesses(l.dep)
	for c := l; c.parent != nil; c = c.parent {
		for u := c.parent.guess; u != nil && u.index >= c.forkedAt; u = u.earlier {
			if !u.Call.answered && !u.Call.dead {
				d = &dep{prev: d, call: u.Call}
			}
		}
	}
	more := d != l.dep
	l.dep = d
	r.entangled = r.entangled || more
	return more
}

// untangle has the run do without guesses at what it computes itself that stand on
// themselves: what computes such a result may stand on guesses of its relatives.
func (t *Tree) untangle(r *Run) {
	if r.entangled && r.local && !r.discarded {
		t.forgoLocal(r, func(c *Call) bool { return r.leadsTo(c, c, make(map[*Call]bool)) })
	}
}

// leadsTo reports whether the answer of a call of the run stands on a guess at c.
func (r *Run) leadsTo(of, c *Call, seen map[*Call]bool) bool {
	seen[of] = true
	var deps []*dep
	switch l := r.forked[of.spec.Lane]; {
	case !of.spec.Local:
		deps = append(deps, of.useOf(r).dep)
	case of.pending != nil:
		for _, l := range of.pending.lanes {
			deps = append(deps, l.dep)
		}
	case l != nil:
		deps = append(deps, l.dep)
	}
	return slices.ContainsFunc(deps, func(d *dep) bool {
		return slices.ContainsFunc(d.guesses(r), func(g choice) bool {
			return g.call == c || !seen[g.call] && r.leadsTo(g.call, c, seen)
		})
	})
}

// guesses reports whether the run stands on a guess that it went on with.
func (r *Run) guesses() bool {
	for range r.guessed() {
		return true
	}
	return false
}

// computes reports whether the lane, which makes a call with effects, works for the one that
// computes the call's answer. Nobody may run ahead of effects: see Resolve.
func (l *Lane) computes(c *Call) bool { return c.spec.Lane != "" && covers(c.spec.Lane, l.id) }

// children are the lanes that one forked, some of which may have been waited for.
type children []*Lane

// guesses returns d, and what the lanes that were not waited for stand on, with their own
// children.
func (c *children) guesses(d *dep) *dep {
	*c = c.compact()
	for _, l := range *c {
		if l.dep != nil && l.dep.blocker() != nil {
			d = &dep{prev: d, join: l.dep}
		}
		d = l.children.guesses(d)
	}
	return d
}

// compact leaves out lanes that have been waited for: what they stood on is known to
// those that waited. The children that they had not waited for take their places.
func (c *children) compact() children {
	kept, more := (*c)[:0], children(nil)
	for _, l := range *c {
		if l.waitedFor {
			more = append(more, l.children.compact()...)
		} else {
			kept = append(kept, l)
		}
	}
	clear((*c)[len(kept):])
	return append(kept, more...)
}

// Overtaken reports whether the use's call has effects and waits for guesses of relatives
// of its lane, or for something that code of the run computes: that may be what makes the
// call.
func (u *Use) Overtaken() bool {
	c := u.Call
	if c.spec.Effect == None || u.Run.discarded || u.Run.tree.over || c.dead || u.dep.blocker() == nil {
		return false
	}
	return u.relatives || slices.ContainsFunc(u.dep.guesses(u.Run), func(g choice) bool { return g.call.spec.Local })
}

// Hurry tells that an overtaken call has waited for a while: a run is started that does
// without the guesses of its lane's relatives. If they are none that can be doubted, the
// run goes on without guesses at what it computes itself.
func (t *Tree) Hurry(u *Use) {
	if !u.Overtaken() {
		return
	}
	var uses []*Use
	for _, g := range u.dep.guesses(u.Run) {
		if o := g.call.useOf(u.Run); o.lane != u.lane && o.Doubtful() {
			uses = append(uses, o)
		}
	}
	if len(uses) > 0 {
		t.Doubt(uses)
	} else {
		t.forgoLocal(u.Run, func(*Call) bool { return true })
	}
}
