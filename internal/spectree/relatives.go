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
//
// The same helps goroutines that share a lane: what one of them guesses may be nothing to
// a call of another one that is held until the guess is known. And it helps a read of a lane that
// stands on others' guesses since its context had ended, see standOnAll.

// standOnRelatives has the lane, which is about to make a call with effects, stand on the
// guesses of its relatives, and on those on which one that it comes from has given a call up
// since, see standOnAll. What follows the call comes after effects that may be wrong, so it stands
// on that as well.
func (l *Lane) standOnRelatives() {
	r := l.run
	if r.forked == nil || !r.guesses() {
		return
	}
	d := l.children.guesses(l.dep)
	for c := l; c.parent != nil; c = c.parent {
		if p := c.parent; p.gaps != c.forkGaps && p.dep.blocker() != nil {
			d = &dep{prev: d, join: p.dep} // that is this lane's code, if it has the context of that one
		}
		for u := c.parent.guess; u != nil && u.index >= int(c.forkedAt); u = u.earlier {
			if !u.Call.answered && !u.Call.dead {
				d = &dep{prev: d, call: u.Call}
			}
		}
	}
	more := d != l.dep
	l.dep = d
	l.entangled = l.entangled || more
	r.entangled = r.entangled || more
}

// lentTo returns d and the guesses, but that at c, which the lane computes, with which code went on
// since the lane was forked in shared lanes that it comes from. The code that used their contexts
// may be the lane's, or that of lanes that it waited for, so what it computes stands on that. The
// effects of the lanes that it comes from may have been made before, and wait for c only.
func (l *Lane) lentTo(c *Call, d *dep) *dep {
	if !l.run.mixed {
		return d
	}
	for ; l.parent != nil; l = l.parent {
		for u := l.parent.guess; l.parent.mixed && u != nil && u.index >= int(l.forkedAt); u = u.earlier {
			if u.Call != c && !u.Call.answered && !u.Call.dead {
				d = &dep{prev: d, call: u.Call}
				l.run.entangled = true
			}
		}
	}
	return d
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
	switch {
	case !of.spec.Local:
		deps = append(deps, of.useOf(r).dep)
	case of.pending != nil:
		deps = of.pending.deps()
	default:
		for _, id := range of.spec.Lanes {
			if l := r.forked[id]; l != nil {
				deps = l.standing(deps)
			}
		}
	}
	return slices.ContainsFunc(deps, func(d *dep) bool {
		return slices.ContainsFunc(d.guesses(r), func(g choice) bool {
			return g.call == c || !seen[g.call] && r.leadsTo(g.call, c, seen)
		})
	})
}

// standing appends what the lane stands on, and those that work for it.
func (l *Lane) standing(deps []*dep) []*dep {
	deps = append(deps, l.dep)
	l.children = l.children.compact()
	for _, c := range l.children {
		deps = c.standing(deps)
	}
	return deps
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
func (l *Lane) computes(c *Call) bool {
	return slices.ContainsFunc(c.spec.Lanes, func(id string) bool { return covers(id, l.id) })
}

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
			l.children = l.children.compact() // its own goroutines may go on
			more = append(more, l.children...)
		} else {
			kept = append(kept, l)
		}
	}
	clear((*c)[len(kept):])
	return append(kept, more...)
}

// Overtaken reports whether the use's call has effects, or is a read that is not settled, and waits
// for guesses of relatives of its lane, or waits for a guess in a lane that goroutines share, or
// waits for something that code of the run computes: that may be what makes the call. A read that
// waits for such a thing counts only if some lane of the run stands on others' guesses: else what
// computes it stands on nothing that could be waited for in a circle.
//
// A read counts although its code went on with a guess at it, or has the answer: plain code makes
// it now, and has the answer even if the task's context ends before the others' guesses are known,
// when calls are forgotten of which nobody knows that plain code makes them. In a lane that
// goroutines share it counts only while it is held, as all of them may guess all the time.
func (u *Use) Overtaken() bool {
	c, r := u.Call, u.Run
	if r.discarded || r.tree.over || c.dead || u.dep.blocker() == nil || c.undecided() {
		return false
	}
	if c.spec.Effect == None {
		switch {
		case c.spec.Local, c.settled, u.gaveUp, u.unneeded:
			return false
		case u.answer != Waiting:
			return u.relatives || u.mixed && c.send == unsent
		case !r.entangled:
			return u.relatives || u.mixed
		}
	}
	local := func(g choice) bool { return g.call.spec.Local }
	return u.relatives || u.mixed || slices.ContainsFunc(u.dep.guesses(r), local)
}

// Own returns the guesses that the use's call waits for and that its code went on with before it:
// plain code comes to the call only once it has these answers.
func (u *Use) Own() (own []*Use) {
	for _, g := range u.dep.guesses(u.Run) {
		if o := g.call.useOf(u.Run); o.Doubtful() && u.lane.cameTo(o, u.index, len(u.lane.joined)) {
			own = append(own, o)
		}
	}
	return own
}

// cameTo reports whether the lane's code, before the run's use of this index and having waited for
// so many lanes, went on with the guess of that use, as far as that is known: in a lane that
// goroutines share it may be another one's.
func (l *Lane) cameTo(o *Use, before, joined int) bool {
	for ; l != nil; before, joined, l = int(l.forkedAt), int(l.parentJoined), l.parent {
		if o.lane == l && o.index < before && !l.mixed ||
			o.lane.isBehind(l.joined[:joined], make(map[*Lane]bool)) {
			return true
		}
	}
	return false
}

// Hurry tells that an overtaken call has waited for a while: a doubter is started, which
// does without the guesses of its lane's relatives. When there is none, the run goes on
// without guesses at what it computes itself.
func (t *Tree) Hurry(u *Use) {
	if !u.Overtaken() {
		return
	}
	if !u.hurried {
		u.hurried = true
		t.hurried = append(t.hurried, u)
	}
	var uses []*Use
	for _, g := range u.dep.guesses(u.Run) {
		if o := g.call.useOf(u.Run); (o.lane != u.lane || u.mixed) && o.Doubtful() {
			uses = append(uses, o)
		}
	}
	if len(uses) > 0 {
		t.Doubt(uses)
	}
	t.helpHurried()
}

// WaitsForOthers reports whether the lane waits at a barrier for guesses of other goroutines, on
// which nothing stands that it has done.
func (l *Lane) WaitsForOthers() bool {
	uses, _ := l.guessesOfOthers()
	return len(uses) > 0
}

// HeldUp reports whether the lane waits at a barrier for nothing but such guesses. Plain code would
// pass.
func (l *Lane) HeldUp() bool {
	uses, own := l.guessesOfOthers()
	return len(uses) > 0 && !own && l.run.tree.caller == CallerConfirmed
}

// guessesOfOthers returns the guesses that the lane waits for at a barrier and does not stand on,
// and whether there are others. In a lane that goroutines share each guess may be another one's,
// and a lane that stands on guesses of its relatives does so by its effects only.
func (l *Lane) guessesOfOthers() (uses []*Use, own bool) {
	r := l.run
	if r.discarded || r.tree.over || !slices.Contains(r.parked, l) {
		return nil, false
	}
	var past []choice
	if !l.entangled {
		past = l.dep.guesses(r)
	}
	for u := range r.guessed() {
		mine := u.lane == l || slices.ContainsFunc(past, func(g choice) bool { return g.call == u.Call })
		switch {
		case mine && !l.mixed:
			own = true
		case u.Doubtful():
			uses = append(uses, u)
		}
	}
	return uses, own
}

// HurryLane tells that a lane that is held up at a barrier has waited for a while: a doubter is
// started, which does without the guesses that the lane does not stand on. If it comes to the
// barrier first it takes the place of the runs that went on with them.
func (t *Tree) HurryLane(l *Lane) {
	if uses, _ := l.guessesOfOthers(); l.HeldUp() {
		before := t.started
		if t.Doubt(uses); t.started > before {
			t.runs[len(t.runs)-1].heldUp = true
		}
	}
}

// HeldUp returns the run beside which this one was started, or in whose place, since that was held
// up at a barrier; nil if it was started for another reason.
func (r *Run) HeldUp() *Run {
	if r.heldUp {
		return r.from
	}
	return nil
}

// helpHurried has runs do without guesses at what they compute themselves, if calls of
// theirs have waited for a while and there is no doubter, or no more. What is left to be
// waited for was done before the call then, and comes by itself, while the code that computes
// a result may wait for the call in a way that cannot be seen.
func (t *Tree) helpHurried() {
	if len(t.hurried) == 0 || t.over {
		return
	}
	t.hurried = slices.DeleteFunc(t.hurried, func(u *Use) bool { return !u.Overtaken() })
	for _, u := range t.hurried {
		if r := u.Run; r.local && u.Overtaken() && !t.doubted(r) {
			t.forgoLocal(r, func(*Call) bool { return true })
		}
	}
}
