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
		u.lane.standOnAll()
		t.dropped[k] = append(t.dropped[k], drop{u.lane.dep.guesses(u.Run)})
		u.lane.gaps, u.lane.left = &gap{prev: u.lane.gaps, at: k, uses: int32(u.index)}, true
	}
	u.lane.done(u)
	u.answer = Actual
	u.gaveUp, u.unneeded = !unneeded, unneeded
	if c.irrevocable() {
		u.consume(-1)
	}
	t.untangle(u.Run)
	t.detach(u)
	t.reconcile()
}

// givenUp reports whether a live run gave the call up, which is to end then once nobody
// else waits for it: calls in order stand behind it, and its server works for nobody. A read
// goes on as long as all who gave it up stand on guesses: their replays may wait for it.
func (c *Call) givenUp() bool {
	t := c.use.Run.tree
	if t.dropped == nil || c.irrevocable() || c.settled {
		return false
	}
	if c.undecided() { // its server may carry it out all the same
		return false
	}
	ends := c.spec.Effect != None || c.spec.Ordered
	return slices.ContainsFunc(t.runs, func(r *Run) bool { return (ends || r.open == 0) && r.made(c) })
}

// endGivenUp abandons what only runs gave up that stand on no guess any more.
func (t *Tree) endGivenUp() {
	if t.dropped == nil || len(t.orphans) == 0 || t.over {
		return
	}
	for _, c := range slices.Clone(t.orphans) {
		if c.givenUp() && !t.expects(c) {
			t.unorphan(c)
			t.abandon(c)
		}
	}
	t.reconcile()
}

// Outrun has the lane's run do without guesses at what the lane still computes, and reports
// whether there were any. The lane is about to give up a call, or not to make it, since code ended
// its context, most likely code that went on with such a guess: plain code would be waiting. The
// prediction would count as wrong in the end, see Resolve. Now all that the lane asked for is still
// under way, and the replay finds it.
func (t *Tree) Outrun(l *Lane) bool {
	t.forgoLocal(l.run, func(c *Call) bool { return c.pending == nil && l.computes(c) })
	return l.run.discarded
}

// GivesWay reports whether an earlier run that was right went on without this call of
// the lane, since the code's context had ended, and what followed took effect, which
// this run has not made. Then this run goes on without the call as well once the
// context has ended here: see Skip.
func (t *Tree) GivesWay(l *Lane, s *CallSpec) bool {
	if !t.gaveUp() || s.Local || s.Once {
		return false
	}
	occ, _ := l.occurrence(s.Op)
	at := key{lane: l.id, op: s.Op, occ: occ}
	_, without := t.followed(l, at, s.Effect)
	return without
}

// gaveUp reports whether code of any run gave up waiting for a call, or did not make one.
func (t *Tree) gaveUp() bool { return t.dropped != nil || t.skipped != nil }

// wentOnWithout reports whether a run that was right, or may have been, gave up waiting at this
// place, or did not make the call.
func (t *Tree) wentOnWithout(at key) bool {
	return slices.ContainsFunc(t.dropped[at], drop.right) || t.wasSkipped(at)
}

// Skip tells that the lane did not make a call, since the context of its code had ended.
func (t *Tree) Skip(l *Lane, s *CallSpec) {
	if l.run.discarded {
		return
	}
	occ, _ := l.occurrence(s.Op)
	at := key{lane: l.id, op: s.Op, occ: occ}
	l.standOnAll()
	t.skip(at, drop{l.dep.guesses(l.run)})
	if g := l.gaps; g != nil && g.next() == at { // the list stays short; others may hold it as it was
		l.gaps = &gap{prev: g.prev, at: g.at, more: g.more + 1, uses: g.uses}
	} else {
		l.gaps = &gap{prev: g, at: at, uses: int32(len(l.run.uses))}
	}
	if l.skipped == nil {
		l.skipped = make(map[string]int)
	}
	l.skipped[s.Op]++
	l.left = true
	t.untangle(l.run)
	if l.run.missedPath(nil, at) {
		t.reconcile()
	}
}

// standOnAll has the lane, whose code goes on since its context has ended, stand on all that is
// guessed in its run: any code may have ended the context, on the strength of any guess.
func (l *Lane) standOnAll() {
	known := l.dep.guesses(l.run)
	for u := range l.run.guessed() {
		if !slices.Contains(known, choice{u.Call, u.answer}) {
			l.dep = &dep{prev: l.dep, call: u.Call}
			l.entangled, l.run.entangled = true, true
		}
	}
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
// this run has not made. An answer would come from after them, and an effect would
// happen after them. What other goroutines did that never waited for the lane did not follow. It
// also reports whether that one gave up there.
func (t *Tree) tooLate(l *Lane, k key, c *Call) (late, without bool) {
	if c.spec.Local {
		return false, false
	}
	made, without := t.followed(l, k.place(), c.spec.Effect)
	return without || made != nil && made != c, without
}

// followed returns what a run made at this place of the lane, or that it went on without making
// anything there, before a call that took effect and that the lane's run has yet to make. Several
// ways may be right as far as that: runs that were told the same make other calls in one place, and
// of two one may have given up there what the other one made, and both then came to one effect. The
// way that the latest effect followed is the only one that leads to all of them.
func (t *Tree) followed(l *Lane, at key, effect Effect) (made *Call, without bool) {
	for _, o := range slices.Backward(t.sent.all) {
		if o.right == nil || o.key.place() == at || l.run.made(o) {
			continue
		}
		if c := t.ledTo(o, l, at); c != nil {
			return c, false
		}
		if o.follows(at, effect) && t.wentOnWithout(at) {
			return nil, true
		}
	}
	return nil, false
}

// ledTo returns what the run that was right to make o, which took effect, made before at this place
// of the lane, or nil. It tells nothing of lanes that come neither from that of o nor before it,
// nor of what a lane did once it had started the one that made o, which goes on by itself. What
// came too late led nowhere: its code had the answer only after that effect, or never.
func (t *Tree) ledTo(o *Call, l *Lane, at key) *Call {
	if !covers(l.id, o.Lane()) && !covers(o.Lane(), l.id) {
		return nil
	}
	w := o.right.Run.useAt(at)
	if w == nil || w.Call.dead || w.index >= o.right.index || w.gaveUp || w.unneeded || w.late || !w.Call.Confirmed() ||
		t.astray(w.Call, l.run) || covers(w.lane.id, o.right.lane.id) && !o.right.follows(w) ||
		w.lane.isBeside(o.right) && (!t.inOrder(l, w.Call) || t.readBefore(l, w.Call)) {
		return nil
	}
	return w.Call
}

// isBeside reports whether the lane was started by that of the use, or by one that comes from it,
// and the use's code had not waited for it, nor for one that had.
func (l *Lane) isBeside(o *Use) bool {
	return l != o.lane && covers(o.lane.id, l.id) && !l.isBehind(o.lane.joined[:o.joined], make(map[*Lane]bool))
}

// isBehind reports whether the lane is one of these, or one of them had waited for it, or for one
// that had.
func (l *Lane) isBehind(joined []*Lane, seen map[*Lane]bool) bool {
	return slices.ContainsFunc(joined, func(j *Lane) bool {
		if seen[j] {
			return false
		}
		seen[j] = true
		return j == l || l.isBehind(j.joined, seen)
	})
}

// overtakenBy returns what the run made where the one that was right to make c, which takes effect
// now, had given up waiting or made nothing, if that shows that the run is on another path: it has
// yet to make c, or what it made has effects, which would follow those of c, or passes c by. Its
// replay finds out in time, see GivesWay and passed.
func (r *Run) overtakenBy(c *Call) *Use {
	if c.right.around == nil {
		return nil
	}
	made := r.made(c)
	for _, u := range r.uses {
		o := u.Call
		if o.spec.Local || u.gaveUp || u.unneeded || made && (o.spec.Effect == None || o.irrevocable()) {
			continue
		}
		if c.follows(o.key.place(), o.spec.Effect) || o.spec.Effect != None && !o.irrevocable() && u.passes(c) {
			return u
		}
	}
	return nil
}

// passed returns a call that took effect, that the use's run has yet to make, and that the use
// passes by; or nil. A read asks for one of the lanes around its own only, whose context its code
// is likely to have.
func (u *Use) passed() *Call {
	t, read := u.Run.tree, u.Call.spec.Effect == None
	if !t.gaveUp() || t.madeAll(u.Run) {
		return nil
	}
	i := slices.IndexFunc(t.sent.all, func(o *Call) bool {
		return !u.Run.excused(o) && u.passes(o) && (!read || covers(o.Lane(), u.lane.id))
	})
	if i < 0 {
		return nil
	}
	return t.sent.all[i]
}

// passes reports whether the use comes before that of a call that took effect, on a path on which
// its run, in a lane related to the use's, was told what the run that was right to make that call
// went on without, itself or in a relative of its lane. The code there may make calls of other
// lanes, see standOnRelatives, so it may come to the call only now, and what follows it plainly
// would have happened before it.
func (u *Use) passes(c *Call) bool {
	if c.right == nil || c.right.around == nil || c.right.Run == u.Run {
		return false
	}
	if own := c.useOf(u.Run); own != nil && own.index < u.index {
		return false
	}
	return slices.ContainsFunc(u.Run.uses[:u.index], func(w *Use) bool {
		return !w.Call.spec.Local && !w.gaveUp && !w.unneeded && w.answer != Waiting &&
			(covers(w.lane.id, u.lane.id) || covers(u.lane.id, w.lane.id)) && c.right.around.has(w.Call.key.place())
	})
}

// strays reports whether the run is on another path than one that was right to make what takes
// effect now.
func (t *Tree) strays(r *Run) bool {
	return slices.ContainsFunc(t.released, func(c *Call) bool { return r.overtakenBy(c) != nil || r.leftOut(c) != nil })
}

// leftOut returns what the run gave up waiting for, or did not make, although the one that was
// right to make c, which takes effect now, made that before, or c itself; nil if there is no such
// thing, or the run has made c. The run is on another path then: what it goes on to may be from
// after c, where it was from before. Its replay makes the call, see Late.
func (r *Run) leftOut(c *Call) (first *gap) {
	if !r.tree.gaveUp() || c.right.Run == r || r.made(c) || r.excused(c) {
		return nil
	}
	for _, u := range c.right.Run.uses[:c.right.index+1] {
		if u.gaveUp || u.unneeded || u.Call.spec.Local || !u.Call.Confirmed() {
			continue
		}
		if g := r.gapAt(u.Call); g != nil && (first == nil || g.uses < first.uses) {
			first = g
		}
	}
	return first
}

// wasGivenUp reports whether the one that was right to make the call, which went on by itself, did
// not wait for its answer.
func (c *Call) wasGivenUp() bool { return c.right != nil && c.right.gaveUp }

// gapAt returns where the run gave up waiting for the call, or did not make it; nil if it did not.
func (r *Run) gapAt(c *Call) *gap {
	l := r.forked[c.Lane()]
	if c.Lane() == r.main.id {
		l = &r.main
	}
	if l == nil {
		return nil
	}
	return l.gaps.find(c.key.place())
}

// follows reports whether the call took effect after its code had given up waiting at this place
// for a call with effects, or none. What has effects its relatives may have made after they had
// given it up.
func (c *Call) follows(at key, effect Effect) bool {
	if effect != None {
		return c.right.around.has(at)
	}
	return c.right.gaps.has(at)
}

// gap is what a lane gave up waiting for, the newest first.
type gap struct {
	prev *gap
	join *gap  // of a lane that it waited for, in place of at
	at   key   // its place
	more int   // of the same operation, one after the other
	uses int32 // that the run made before
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

// gapsAround returns what the lane, which makes a call with effects, gave up before, and what its
// relatives did: the code of one of these may make the call. See standOnRelatives.
func (l *Lane) gapsAround() *gap {
	g := l.children.gaps(l.gaps)
	for p := l.parent; p != nil; p = p.parent {
		g = g.with(p.gaps)
	}
	return g
}

func (c *children) gaps(g *gap) *gap {
	*c = c.compact()
	for _, l := range *c {
		g = l.children.gaps(g.with(l.gaps))
	}
	return g
}

// with returns g and what another lane gave up.
func (g *gap) with(o *gap) *gap {
	if o == nil || o == g {
		return g
	}
	return &gap{prev: g, join: o}
}

// all yields what a lane gave up, each once: lanes that were waited for may have begun with the
// same.
func (g *gap) all(yield func(*gap) bool) {
	var seen map[*gap]bool
	for todo := []*gap{g}; len(todo) > 0; {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for ; g != nil && !seen[g]; g = g.prev {
			if g.join == nil {
				if !yield(g) {
					return
				}
			} else {
				todo = append(todo, g.join)
			}
			if len(todo) > 0 || seen != nil {
				if seen == nil {
					seen = make(map[*gap]bool)
				}
				seen[g] = true
			}
		}
	}
}

// onPathOf reports whether the lane comes to a call that counts as right by the path of those who
// made it: it went on without the answers that they gave up waiting for, and without no others,
// unless it is behind: something has happened that they did later, so that nothing can be made
// anew. Where order counts no more, goroutines may have given up before what came after it in the
// other run, and the other way round.
func (t *Tree) onPathOf(l *Lane, c *Call, behind bool) bool {
	u := c.right
	if u == nil {
		u = &c.use
	}
	if t.unordered(l) {
		return true
	}
	return u.gaps.within(l.gaps, l.ends) && (behind || l.gaps.within(u.gaps, u.lane.ends))
}

// readBefore reports whether the lane, or one that it comes from, had an effect that the run which
// read by c had not, and which is not from before the read.
func (t *Tree) readBefore(l *Lane, c *Call) bool {
	t.walks++
	return c.spec.Effect == None && l.eff.any(t.walks, func(q *Call) bool {
		before := q.answered && q.answeredAt < c.sentAt
		return !before && !disjoint(q.spec.Conflict, c.spec.Conflict) && !sameDomain(q, c) && !c.use.Run.used(q)
	})
}

// within reports whether each of these gaps is one of those that a lane has, or it got the result
// of a call that had ended there.
func (g *gap) within(gaps, ends *gap) bool {
	if g == gaps {
		return true
	}
	for g := range g.all {
		for at := g.at; at != g.next(); at.occ++ {
			if !gaps.has(at) && !ends.has(at) {
				return false
			}
		}
	}
	return true
}

// has reports whether a lane gave up waiting at this place.
func (g *gap) has(at key) bool { return g.find(at) != nil }

// find returns what of that is at this place, or nil.
func (g *gap) find(at key) *gap {
	for g := range g.all {
		if n := at.occ - g.at.occ; n >= 0 && n <= g.more && g.at.lane == at.lane && g.at.op == at.op {
			return g
		}
	}
	return nil
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
