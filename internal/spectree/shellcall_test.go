package spectree

import "slices"

// The calls of a shell, and what the network and the servers do about them.

func (s *shell) canMove(c *shellCall) bool {
	switch c.state {
	case inFlight:
		return !slices.ContainsFunc(c.conds, shellCondition.open)
	case applied:
		return true
	case postponed:
		return !s.busy
	case executed:
		return !c.staged() || c.confirmed || !c.hinted || !c.out.changes
	default:
		return false
	}
}

// wanted fails if a call that was not sent yet is to be sent for nobody.
func (s *shell) wanted() {
	for _, c := range s.calls {
		if c.state == postponed && !slices.ContainsFunc(c.users, func(w *shellUse) bool { return !w.thread.run.discarded }) {
			s.fail("call %d is postponed although nobody makes it any more", c.c.ID)
		}
	}
}

// staged reports whether the attempt's effects wait for a word.
func (c *shellCall) staged() bool { return c.site.effect == Staged && c.speculative }

func (s *shell) send(c *shellCall, speculative bool) {
	if c.state != idle || c.abandoned {
		s.fail("call %d is sent again", c.c.ID)
		return
	}
	if speculative && c.site.effect == Immediate {
		s.fail("call %d has immediate effects and is sent for a speculative caller", c.c.ID)
	}
	if !speculative {
		s.mustBeRight(c)
	}
	c.state, c.speculative = inFlight, speculative
	c.conds = nil
	if speculative && c.site.effect == Predicated {
		s.stats.ahead++
		for _, d := range c.c.Conditions() {
			o := d.Call.Data.(*shellCall)
			if o.site == nil || o.site.effect != Predicated || o.site.session != c.site.session || o.state == idle {
				s.fail("call %d is sent on a guess at call %d, which its server cannot check", c.c.ID, o.c.ID)
				return
			}
			c.conds = append(c.conds, shellCondition{o, o.predictions[d.Answer], o.tries})
		}
		return
	}
	if speculative && s.patient && c.c.Uses() > 0 && (s.rng == nil || s.one(2)) {
		s.log("call %d is postponed", c.c.ID)
		c.state = postponed
		s.t.Postpone(c.c)
	}
}

// mustBeRight fails unless some run that made the call stands on nothing that
// is not known, in what came before.
func (s *shell) mustBeRight(c *shellCall) {
	if s.caller {
		s.fail("call %d counts as right although the caller may be wrong", c.c.ID)
	}
	for _, w := range c.users {
		if right(w.thread.deps[:w.deps]) {
			return
		}
	}
	if s.p.lends && c.site.effect == None {
		return // it stands on what its lane guessed; a wrong guess shows in its request only
	}
	s.fail("call %d counts as right although all who made it guessed before", c.c.ID)
}

// right reports whether all guesses were right.
func right(deps []guess) bool {
	for _, d := range deps {
		c := d.call
		switch {
		case c.state != answered || c.matched != d.answer:
			return false
		case c.local != nil && !right(c.local.deps):
			return false
		}
	}
	return true
}

func (s *shell) confirm(c *shellCall) {
	if c.confirmed || c.abandoned || !c.speculative {
		s.fail("call %d is confirmed twice, or after it was abandoned, or was never speculative", c.c.ID)
	}
	if c.site.effect == Predicated {
		c.confirmed = true
		if slices.ContainsFunc(c.conds, func(d shellCondition) bool { return d.open() || !d.holds() }) {
			s.fail("call %d counts as certain and its conditions are not true", c.c.ID)
		}
		return
	}
	s.mustBeRight(c)
	c.confirmed = true
	if c.state == postponed {
		c.state, c.speculative = inFlight, false
	}
	if c.site.effect == None {
		return
	}
	var late *shellCall
	for _, w := range c.users {
		if !right(w.thread.deps[:w.deps]) {
			continue
		}
		if late = w.undone(); late == nil {
			return
		}
	}
	if late != nil {
		s.fail("call %d is confirmed before call %d is done", c.c.ID, late.c.ID)
	}
}

// undone returns a call with side effects that the same goroutines made before,
// and that is not answered.
func (w *shellUse) undone() *shellCall {
	for _, th := range w.thread.run.threads {
		for _, st := range th.steps {
			if st.use == nil || st.use.lane != w.use.lane || st.use.index >= w.use.index {
				continue
			}
			if c := st.use.Call.Data.(*shellCall); c.local == nil && c.site.effect != None && c.state != answered &&
				c.state != aborted {
				return c
			}
		}
	}
	return nil
}

func (s *shell) abandon(c *shellCall) {
	if c.abandoned {
		s.fail("call %d is abandoned twice", c.c.ID)
	}
	// Of what runs read in one place that come to it in several ways, all but one read may go.
	replaceable := c.local == nil && c.site.effect == None && (s.p.shares || s.p.lends || s.p.nondet || c.site.opaque)
	if c.confirmed && c.state != answered && !c.c.refused && !replaceable && !s.dropped && s.winner == nil &&
		!s.t.Over() {
		s.fail("call %d is abandoned after it was confirmed", c.c.ID)
	}
	c.abandoned = true
	if c.speculative && c.site.effect == Predicated && (c.state == inFlight || c.state == executed) && !s.ended &&
		!s.frozen && !s.diverged && (c.state == executed || !c.refusedInTheEnd()) {
		s.fail("call %d is forgotten and may take effect", c.c.ID)
	}
	if c.state != answered {
		c.state = aborted
	}
}

// shellCondition is what a server is told that a call stands on.
type shellCondition struct {
	call  *shellCall
	value int
	tries int
}

// open reports whether the server has yet to see whether it is true.
func (d shellCondition) open() bool {
	return d.call.tries == d.tries && (d.call.state == inFlight || d.call.state == idle)
}

// holds reports whether it is true.
func (d shellCondition) holds() bool {
	return d.call.tries == d.tries && d.call.state != aborted && d.call.out.answer == d.value
}

// refusedInTheEnd reports whether a condition of the call is false, or will be.
func (c *shellCall) refusedInTheEnd() bool {
	return slices.ContainsFunc(c.conds, func(d shellCondition) bool {
		return !d.open() && !d.holds() || d.open() && d.call.refusedInTheEnd()
	})
}

// stepCall lets the network or a server go on.
func (s *shell) stepCall(c *shellCall) {
	if c.state != applied && c.state != postponed && c.late < 2 && s.one(8) {
		c.late++
		s.predict(c, s.guess(c))
		return
	}
	if n := len(c.predictions); n > 0 && s.one(32) {
		idx := s.rng.IntN(n)
		s.log("call %d: prediction %d withdrawn", c.c.ID, idx)
		s.stats.withdrawn++
		s.t.Withdraw(c.c, idx)
		return
	}
	switch c.state {
	case postponed:
		s.log("call %d is launched", c.c.ID)
		c.state = inFlight
		s.t.Launched(c.c)
	case inFlight:
		if slices.ContainsFunc(c.conds, func(d shellCondition) bool { return !d.holds() }) {
			s.stats.falsified++
			s.refuse(c)
			return
		}
		if s.one(16) && !c.site.quick { // nothing of it arrived
			s.refuse(c)
			return
		}
		s.execute(c)
	case executed:
		switch {
		case c.site.effect == None && s.one(24) && !c.site.quick: // lost
			s.log("call %d lost", c.c.ID)
			c.tries++
			c.state, c.speculative = idle, c.speculative && c.confirmed
			s.t.Refused(c.c, "lost")
		case !c.staged() || !c.out.changes:
			s.answer(c)
		case c.confirmed:
			s.change(c)
			c.state = applied
		default:
			c.hinted = true
			s.predict(c, c.out.answer)
		}
	case applied:
		s.answer(c)
	}
}

func (s *shell) refuse(c *shellCall) {
	s.log("call %d refused", c.c.ID)
	s.stats.refused++
	c.tries++
	c.state, c.speculative = idle, c.speculative && c.confirmed
	s.t.Refused(c.c, "refused")
}

func (s *shell) execute(c *shellCall) {
	s.world.clock++
	c.executedAt = s.time
	c.out = s.world.peek(s.p, c.q)
	if !c.staged() {
		s.change(c)
	}
	c.state = executed
	s.log("call %d executed: %d", c.c.ID, c.out.answer)
}

func (s *shell) change(c *shellCall) {
	if !c.out.changes {
		return
	}
	if c.changed {
		s.fail("call %d takes effect twice", c.c.ID)
	}
	c.changed = true
	s.world.apply(c.q, c.out)
	s.applied = append(s.applied, c)
	s.stats.effects++
	s.log("call %d takes effect", c.c.ID)
}

func (s *shell) answer(c *shellCall) {
	c.value = c.out.answer
	c.state = answered
	c.answeredAt = s.time
	match := c.match(c.value)
	c.matched = match
	s.log("call %d answered %d, match %d of %v", c.c.ID, c.value, match, c.predictions)
	s.t.Answered(c.c, match)
}

func (c *shellCall) match(v int) int {
	for i, p := range c.predictions {
		if c.site == nil && p == v || c.site != nil && c.site.equal(p, v) {
			return i
		}
	}
	return Actual
}

// guess makes a prediction up.
func (s *shell) guess(c *shellCall) int {
	v := s.world.peek(s.p, c.q).answer
	if s.rng.IntN(8) < c.site.wrong {
		v += s.rng.IntN(5) - 2
	}
	return v
}

func (s *shell) predict(c *shellCall, v int) {
	for _, p := range c.predictions {
		if p == v {
			return
		}
	}
	c.predictions = append(c.predictions, v)
	s.log("call %d predicted %d", c.c.ID, v)
	s.t.Predicted(c.c)
}
