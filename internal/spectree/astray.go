package spectree

import "slices"

// A call without side effects counts as right once its own lane stands on no guess. Its code may
// know more than that: what it was told in the lane around it, whose context it used for a call,
// say. If that was a wrong guess, the code that turns out right may come to an equal call by
// another way. So such a call is found only where it was made after the same effects, unless a run
// that made it stood on nothing wrong in lanes related to its own, or something took effect after
// it. Calls with side effects wait for these guesses: see standOnRelatives.

// rightAt returns the call that counts as right at this place, and is no other for run r, or nil.
func (t *Tree) rightAt(r *Run, k key) *Call {
	return t.confirmedWhere(k, func(c *Call) bool { return !t.astray(c, r) })
}

// confirmedWhere returns a confirmed call at this place for which the function returns true, or
// nil.
func (t *Tree) confirmedWhere(k key, is func(*Call) bool) *Call {
	c := t.record.confirmedAt(k)
	if c == nil || is(c) {
		return c
	}
	i := slices.IndexFunc(t.record.all, func(c *Call) bool {
		return c.Confirmed() && c.key.place() == k.place() && is(c)
	})
	if i < 0 {
		return nil
	}
	return t.record.all[i]
}

// astray reports whether all who made a call that counts as right may have come to it by another
// way than run r does, if that turns out right.
func (t *Tree) astray(c *Call, r *Run) bool {
	if c.spec.Effect != None || c.spec.Once {
		return false
	}
	return c.right.guessedOther(r) && !slices.ContainsFunc(c.uses, func(u *Use) bool {
		return u.dep.blocker() == nil && !u.guessedOther(r)
	}) && !t.hadEffects(c)
}

// hadEffects reports whether something took effect after the call in its own lane, or in one that
// comes from that. Whatever its code knew, the run that turns out right comes to that effect.
func (t *Tree) hadEffects(c *Call) bool {
	return slices.ContainsFunc(t.sent.all, func(o *Call) bool {
		if o.right == nil || !covers(c.key.lane, o.right.lane.id) {
			return false
		}
		u := o.right.Run.useAt(c.key)
		return u != nil && u.Call == c && !u.gaveUp && !u.unneeded && o.right.follows(u)
	})
}

// guessedOther reports whether the use's run went on before, in lanes related to the use's, with a
// guess that is not known to be right and that r does not go on with.
func (u *Use) guessedOther(r *Run) bool {
	return u.Run != r && slices.ContainsFunc(u.Run.unsure(), func(g *Use) bool {
		if int(g.since) > u.index || !covers(g.lane.id, u.lane.id) && !covers(u.lane.id, g.lane.id) {
			return false
		}
		if g.Call.answered {
			return g.wrong()
		}
		idx, ok := r.assumes(g.Call)
		return !ok || idx != g.answer
	})
}

// Goroutines that share a lane may swap equal calls in a replay. If what they were told counts as
// equal and is not, they go on by other ways, and nothing tells at once: what one of them reads
// anew may be what another one has yet to read, or come from after effects that follow on the way
// that was right.

// ahead reports whether a lane that makes a call anew has yet to make what has happened there, or
// around it.
func (t *Tree) ahead(l *Lane) bool {
	return l.run.ID > 1 && !t.madeAll(l.run) && slices.ContainsFunc(t.sent.all, func(o *Call) bool {
		return (covers(l.id, o.Lane()) || covers(o.Lane(), l.id)) && !l.run.made(o)
	})
}

// hasty reports whether a call without effects is new in a lane that has yet to make what has
// happened there, in all runs that make it. It waits for that, as a call with effects does: the
// goroutine that makes the one may be the one that then makes the other, by another way than that
// which was right, and would read what it is about to do. A run that is on another path anyway does
// not wait: nothing that it does counts, and what it is told next may end it.
func (t *Tree) hasty(c *Call) bool {
	return c.hasty && c.send == unsent && !c.answered && !slices.ContainsFunc(c.uses, func(u *Use) bool {
		return u.late || u.Run.stray != nil || t.sent.missing(u.lane) == nil && u.passed() == nil
	})
}

// unread returns a read that a run which was right made and this one has not, in a lane where this
// one, or one before it, read anew before it had made what had happened, or nil. There are two ways
// then.
func (t *Tree) unread(r *Run) *Call {
	if t.gaveUp() || len(t.seldom().forkers) > 0 {
		return nil
	}
	for _, u := range r.uses {
		if !u.Call.hasty {
			continue
		}
		i := slices.IndexFunc(t.record.all, func(c *Call) bool {
			return c.key.lane == u.lane.id && c.spec.Effect == None && c.Confirmed() && r.useAt(c.key) == nil && !r.excused(c) &&
				!t.astray(c, r)
		})
		if i >= 0 {
			return t.record.all[i]
		}
	}
	return nil
}

// ledHere returns the call at this place that led to what has happened and the lane's run has yet
// to make, or nil if there is none other than c, which is found under its key. Runs that were told
// the same may each make another one and be right: goroutines that share a lane make ordered calls
// in any order, and of two runs one may give up what the other one waits for, or comes to in
// another order. Only by this one does the code come to that effect again. A run that has made it,
// under another lane's name, has done so.
func (t *Tree) ledHere(l *Lane, k key, c *Call) *Call {
	if t.madeAll(l.run) {
		return nil
	}
	sure := t.record.confirmedAt(k)
	if sure == nil || c == sure && !t.record.twins {
		return nil
	}
	if led, _ := t.followed(l, k.place(), None); led != nil && led.key.variant == k.variant && !l.run.made(led) {
		return led
	}
	return nil
}

// byAnotherWay returns the first read that the run, which has yet to make c, made where the one
// that was right to make c, which takes effect now, made another one on its way there; or nil.
// Goroutines that share a lane come to their calls in another order in each run, and calls that
// cannot be compared are other calls then. Both may be right; but what the run is going to be told
// may be from after c, to which only the other one led. Its replay makes that: see ledHere.
func (t *Tree) byAnotherWay(r *Run, c *Call) *Use {
	if !t.ambiguous && t.record.variants == 0 || c.right.Run == r || r.made(c) || r.excused(c) {
		return nil
	}
	for _, u := range r.uses {
		o := u.Call
		if o.spec.Effect != None || o.spec.Local || o.spec.Once || u.gaveUp || u.unneeded || u.dep.blocker() != nil {
			continue
		}
		if led := t.ledTo(c, u.lane, o.key.place()); led != nil && led != o && !r.made(led) {
			return u
		}
	}
	return nil
}

// sureAt returns a call that counts as right at this place and may come after what the lane has
// done, or nil. Where a run gave up waiting, another one may take another path and be right, so a
// place is not enough to tell what the run that turns out right makes there. Nor is it where the
// lane has written what nobody had who made the call: of goroutines that share a lane, the one that
// wrote may be the one that reads. Once the task's context has ended that makes no difference, as
// what is made anew fails. If an effect has happened that the run has yet to make, what it
// makes anew comes from after that: then any call that is in order will do if none is as it should
// be. One out of order will not: what led to the effect is found before, see ledHere, so what is
// made anew may come from after it.
func (t *Tree) sureAt(l *Lane, k key) *Call {
	find := func(behind bool) *Call {
		return t.confirmedWhere(k, func(c *Call) bool {
			return !t.astray(c, l.run) && !t.endedElsewhere(l, c) && (!t.gaveUp() || t.onPathOf(l, c, behind)) &&
				(behind || t.late || !t.readBefore(l, c)) && t.inOrder(l, c)
		})
	}
	c := find(false)
	if c == nil && t.record.confirmedAt(k) != nil && t.Behind(l.run) {
		return find(true)
	}
	return c
}

// unsure returns the uses that the run goes on with guesses for of which it is not known whether
// they are right, or, once it is discarded, of which that was not known then.
func (r *Run) unsure() []*Use {
	if r.discarded {
		return *r.left
	}
	return slices.Collect(r.guessed())
}

// leave notes what the run, which is about to be discarded because of a call, was not sure of.
func (r *Run) leave(because *Call) {
	left := slices.Collect(r.guessed())
	if because != nil {
		if u := because.useOf(r); u != nil && u.wrong() {
			left = append(left, u)
		}
	}
	r.left = &left
}

// handOn has the use, whose run is discarded, be the one by which it was right to make its call, if
// it is known to have been and the other one is not.
func (u *Use) handOn() {
	c := u.Call
	if c.spec.Effect != None || c.right == nil || c.right.Run == u.Run || u.dep.blocker() != nil {
		return
	}
	doubtful := func(g *Use) bool { return !g.Call.answered || g.wrong() }
	before := func(o *Use) bool {
		return slices.ContainsFunc(o.Run.unsure(), func(g *Use) bool { return int(g.since) <= o.index && doubtful(g) })
	}
	if before(c.right) && !before(u) {
		c.right = u
	}
}
