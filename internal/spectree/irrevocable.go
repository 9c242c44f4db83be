package spectree

import "slices"

// Say run 1 appends to an audit log while it stands on no guess, so the call is sent plainly. Then
// it reads a balance, goes on with the prediction 5, and the answer is 7. Run 2 starts from the top
// and comes to the append again. The effect has happened, and nothing can undo it.
//
// The rule: run 2 must find that very call at this place of the program, or the log would get the
// line twice (plant forgetSent). And it must make the call before its lane has any new effect,
// since the effects have to happen in the order of one execution. A run that has not made the call
// is given time, as another goroutine may be about to. If it never makes it, the function is not
// deterministic, and the task ends rather than have effects that no execution would have had (plant
// forgetDivergence).

// irrevocable reports whether the call's effects happen whatever comes.
func (c *Call) irrevocable() bool {
	return c.spec.Effect != None && (c.send == sentPlain || c.confirmed)
}

// irrevocables holds the calls whose effects cannot be taken back. Every run
// that turns out right makes them.
type irrevocables struct {
	all   []*Call            // in the order in which they became so
	index map[key]*Call      // by lane, operation, occurrence; built once all grows past a handful
	ops   map[string][]*Call // by operation; built with index
	lanes map[string]int     // how many are of a lane, without those with Once
	once  int                // those that are one call in the whole task
}

// find returns the call at this place of the program, whatever effects preceded it.
func (s *irrevocables) find(k key) *Call {
	k = k.place()
	if s.index != nil {
		return s.index[k]
	}
	for _, c := range s.all {
		if c.key.place() == k {
			return c
		}
	}
	return nil
}

// add tells that the call is about to become irrevocable.
func (s *irrevocables) add(c *Call) {
	s.all = append(s.all, c)
	switch {
	case s.index != nil:
		s.enter(c)
	case len(s.all) > recordScan:
		s.index, s.ops, s.lanes = make(map[key]*Call), make(map[string][]*Call), make(map[string]int)
		for _, c := range s.all {
			s.enter(c)
		}
	}
	if c.spec.Once {
		s.once++
	}
	for _, u := range c.uses {
		u.consume(1)
	}
}

func (s *irrevocables) enter(c *Call) {
	if _, ok := s.index[c.key.place()]; !ok {
		s.index[c.key.place()] = c
	}
	s.ops[c.spec.Op] = append(s.ops[c.spec.Op], c)
	if !c.spec.Once {
		s.lanes[c.Lane()]++
	}
}

// equal returns the calls among which are all those of an operation.
func (s *irrevocables) equal(op string) []*Call {
	if s.index == nil {
		return s.all
	}
	return s.ops[op]
}

// remove tells that the call did not happen after all.
func (s *irrevocables) remove(c *Call) {
	i := slices.Index(s.all, c)
	if i < 0 {
		return
	}
	s.all = slices.Delete(s.all, i, i+1)
	if place := c.key.place(); s.index != nil && s.index[place] == c {
		delete(s.index, place)
		for _, other := range s.all { // what find would come upon without an index
			if other.key.place() == place {
				s.index[place] = other
				break
			}
		}
	}
	if s.index != nil {
		s.ops[c.spec.Op] = slices.DeleteFunc(s.ops[c.spec.Op], func(o *Call) bool { return o == c })
	}
	switch {
	case c.spec.Once:
		s.once--
	case s.lanes != nil:
		s.lanes[c.Lane()]--
	}
	for _, u := range c.uses {
		u.consume(-1)
	}
}

// consume counts the use among those of irrevocable calls.
func (u *Use) consume(n int) {
	switch {
	case !u.Call.spec.Once:
		u.lane.consumed += n
		u.Run.consumed += int32(n)
	case u.Call.useOf(u.Run) == u:
		u.Run.consumedOnce += int32(n)
	}
}

// missing returns a call of the lane that is irrevocable and that the lane's
// run has neither made nor given up as the one did that was right, or nil.
func (s *irrevocables) missing(l *Lane) *Call {
	if s.index != nil && s.lanes[l.id] == l.consumed && s.once == int(l.run.consumedOnce) {
		return nil
	}
	for _, c := range s.all {
		if c.Lane() == l.id && !l.run.made(c) && !(c.wasGivenUp() && l.gaps.has(c.key.place())) {
			return c
		}
	}
	return nil
}

// overdue returns a call that keeps this one, which has effects, from being right, or nil: another
// one that took effect and is yet to be made, of its lane or by its path, see passes, or what shows
// that the run is not on the right path.
func (u *Use) overdue() *Call {
	t := u.Run.tree
	if c := t.sent.missing(u.lane); c != nil {
		return c
	}
	if c := u.passed(); c != nil {
		return c
	}
	if u.late {
		return u.Call
	}
	return u.Run.stray
}

// heldBack returns the first guess of the run at a call with effects that would wait for itself: it
// is to take effect after c, which has taken effect and which the lane has yet to make, while the
// lane waits at a barrier for what is guessed. Goroutines that share the lane came there in that
// order before c had happened. A replay makes c without a barrier, and does not guess before.
func (r *Run) heldBack(c *Call) (first *Use) {
	if r.made(c) || r.excused(c) || !slices.ContainsFunc(r.parked, func(l *Lane) bool { return l.id == c.Lane() }) {
		return nil
	}
	for u := range r.guessed() {
		if u.lane.id == c.Lane() && u.Call.spec.Effect != None && !u.Call.irrevocable() {
			first = u
		}
	}
	return first
}

// release makes the call irrevocable, unless another one has to be made before it, or its run is on
// another path than one that was right. A goroutine that shares the lane may be on its way to make
// that, and gets the grace to do so, and code that gave the call up before may do so again. Else
// the function is not deterministic, and the task ends before this call takes effect too.
func (t *Tree) release(c *Call, right *Use) bool {
	taken := t.taken(right)
	if taken != nil {
		t.released = append(t.released, taken) // the run gives way: it is the same call
	}
	if taken == nil && right.overdue() == nil && !t.strays(right.Run) || c.answered {
		t.sent.add(c)
		if len(t.runs) > 1 {
			t.released = append(t.released, c)
		}
		return true
	}
	t.tooEarly(c)
	return false
}

// tooEarly has a call wait until what took effect before has been made.
func (t *Tree) tooEarly(c *Call) {
	if !slices.Contains(t.early, c) {
		t.early = append(t.early, c)
	}
	t.held(c, "another call that took effect has yet to be made")
}

// recheck looks again at the calls that came early, since a run has made a call
// that took effect, or one turned out not to have.
func (t *Tree) recheck() {
	if len(t.early) > 0 {
		t.freed = append(t.freed, t.early...)
		t.early = nil
		t.reconcile()
	}
}

// Early returns a call that took effect and that a run has yet to make, if others wait for
// that, or nil. The goroutine that makes it may first do all that it did when it made
// it before, sleep for example: the grace of these calls is not that of orphans.
func (t *Tree) Early() *Call {
	for _, c := range t.early {
		for _, u := range c.uses {
			if missing := u.overdue(); missing != nil && u.dep.blocker() == nil {
				return missing
			}
		}
	}
	return nil
}

// expireEarly ends the task if calls are still early after the grace.
func (t *Tree) expireEarly() {
	for _, c := range t.early {
		u := t.rightUse(c)
		if u == nil || c.Confirmed() {
			continue
		}
		if missed := u.overdue(); missed != nil {
			t.diverge(u.Run, missed)
			return
		}
	}
	t.recheck()
}

// madeAll reports whether the run is known to have made all that took effect. It may have
// although it is not.
func (t *Tree) madeAll(r *Run) bool { return int(r.consumed+r.consumedOnce) == len(t.sent.all) }

// made reports whether the run made the call, even if it gave up waiting.
func (r *Run) made(c *Call) bool {
	return c.useOf(r) != nil ||
		r.tree.dropped != nil && slices.ContainsFunc(r.uses, func(u *Use) bool { return u.Call == c })
}
