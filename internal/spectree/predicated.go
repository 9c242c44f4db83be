package spectree

import (
	"maps"
	"slices"
)

// Say run 1 adds 1 to a counter, goes on with the prediction 5 for its new value, and adds 5 to
// another counter of the same service. The second call is predicated: the service is told that it
// is meant for the case that the first one answers 5, and otherwise refuses it. So it need not wait
// for the first one's answer.
//
// The rule: a call may be sent on a guess if all that its caller stands on are conditions that its
// server can check: guesses at calls that were sent to the same Domain (plants
// sendOnForeignGuesses, sendForOpenCaller, sendOnLocalGuess). A guess at what a lane computes
// stands for what that lane stands on. From then on whether the call takes effect is the server's
// to say: it does if its conditions are true, whatever becomes of the run that it was sent for. So
// nobody forgets it before the server has spoken (plants forgetUndecided, finishUndecided), and it
// is irrevocable once its conditions are known to be true (plant takesEffectUnseen). A server that
// refuses it has said that nothing happened: see Refused.
//
// What a predicated call is sent on need not repeat what a call among its conditions was sent on
// itself, for the same run: that one answers what it is guessed to answer only if its own
// conditions are true. So the conditions of a long row of calls that each stand on the one before
// are one each, and all of them together are linear. It holds for the same run only: another one
// may have come to the same call by other guesses (plant skipForOthers).

// Condition is an answer that a call is guessed to have.
type Condition struct {
	Call   *Call
	Answer int
	// refusals is how often the call had been refused: its server is told of one attempt at it.
	refusals int32
}

// terms are what is noted of calls that servers refuse, and that other tasks answer.
type terms struct {
	conds    []Condition // on which a predicated call was sent last
	sentFor  *Use        // and for whom
	refusals int32       // how often the call was refused
	wrong    bool        // it was seen that one of conds is false
	unsure   bool        // see Unsure
	bases    []basis     // of its predictions
}

// noted returns the call's terms, to be read only.
func (c *Call) noted() *terms {
	if c.terms == nil {
		return new(terms)
	}
	return c.terms
}

// note returns the call's terms.
func (c *Call) note() *terms {
	if c.terms == nil {
		c.terms = new(terms)
	}
	return c.terms
}

// basis is what a prediction stands on, of a call that another task answers.
type basis struct {
	domain  *Domain // of all calls that it stands on; nil: it is not known, or there are several
	effects bool    // some of these have effects
}

// top returns the part of the list that begins with an assumption that is open.
func (d *dep) top() *dep {
	for ; d != nil; d = d.prev {
		switch {
		case d.join != nil:
			if d.join.blocker() != nil {
				return d
			}
			d.join = nil
		case d.call != nil && !d.call.answered && !d.call.dead:
			return d
		}
	}
	return nil
}

// gathering collects what code of a run stands on.
type gathering struct {
	run    *Run
	domain *Domain // of the server that is to check it; nil: nobody is
	out    []Condition
	stop   *dep          // what follows is known
	seen   map[*dep]bool // the same, and what was met; nil as long as nothing can be met twice
	todo   []*dep
}

// gather returns what a call of the run stands on that has these assumptions, newest first, or what
// keeps that from being told: code that has yet to compute what it is guessed to compute, or, if a
// server of the domain is to check it, a call that is none of its own or that it has not got yet.
func (r *Run) gather(domain *Domain, deps ...*dep) (out []Condition, missing *Call) {
	g := gathering{run: r, domain: domain, todo: deps}
	if len(deps) > 1 {
		g.seen = make(map[*dep]bool)
	}
	for len(g.todo) > 0 {
		d := g.todo[len(g.todo)-1]
		g.todo = g.todo[:len(g.todo)-1]
		for d = d.top(); d != nil && d != g.stop && !g.seen[d]; d = d.prev.top() {
			if missing := g.add(d); missing != nil {
				return nil, missing
			}
			if g.seen != nil {
				g.seen[d] = true
			}
		}
	}
	return g.out, nil
}

// add adds one assumption, and returns its call if it cannot be told.
func (g *gathering) add(d *dep) (missing *Call) {
	if d.join != nil {
		g.meet(d)
		g.todo = append(g.todo, d.join)
		return nil
	}
	c := d.call
	u := c.useOf(g.run)
	switch {
	case u == nil || u.answer < 0:
		return c
	case c.spec.Local:
		if c.pending == nil || c.pending.match != u.answer {
			return c
		}
		g.meet(d)
		g.todo = append(g.todo, c.pending.deps()...)
		return nil
	case g.domain != nil && !c.checkable(u.answer, g.domain):
		return c
	}
	g.out = append(g.out, Condition{c, u.answer, c.noted().refusals})
	if g.domain != nil && c.spec.Effect == Predicated && c.send == sentSpeculative && c.noted().sentFor == u {
		if g.stop == nil {
			g.stop = u.dep.top()
		} else {
			g.meet(u.dep.top())
		}
	}
	return nil
}

// meet notes that what begins here need not be looked at again.
func (g *gathering) meet(d *dep) {
	if g.seen == nil {
		g.seen = make(map[*dep]bool)
	}
	g.seen[d] = true
}

// checkable reports whether a server of the domain can check an answer that the call is guessed to
// have.
func (c *Call) checkable(answer int, d *Domain) bool {
	if c.spec.Followed {
		return c.basis(answer).domain == d
	}
	return c.spec.Domain == d && c.send != unsent && !c.postponed
}

// basis returns what the prediction of this index stands on, as far as it is known.
func (c *Call) basis(answer int) basis {
	if bases := c.noted().bases; answer >= 0 && answer < len(bases) {
		return bases[answer]
	}
	return basis{}
}

// PredictedOn is Predicted for a call that another task answers, whose prediction stands on
// calls of the domain only. Some of them may have effects: then what follows comes after these, by
// that domain's care, unless other predictions stand on those of another one.
func (t *Tree) PredictedOn(c *Call, domain *Domain, effects bool) {
	if c.answered || c.dead || t.over {
		return
	}
	if effects {
		others := slices.ContainsFunc(c.noted().bases, func(b basis) bool { return b.effects && b.domain != domain })
		if others {
			t.moveTo(c, nil)
		} else {
			t.moveTo(c, domain)
		}
	}
	if n := c.note(); domain != nil {
		for len(n.bases) < c.predictions {
			n.bases = append(n.bases, basis{})
		}
		n.bases = append(n.bases, basis{domain, effects})
	}
	t.Predicted(c)
}

// moveTo has the call be one of another domain, among those that are counted by domain as well.
func (t *Tree) moveTo(c *Call, d *Domain) {
	counted := c.counted
	t.unanswered.forget(c)
	c.spec.Domain = d
	if counted {
		t.unanswered.count(c)
	}
}

// Assumptions returns the answers that the use's call depends on, followed through what the run
// itself computes. ok is false if it depends on more: on a guess at what code has yet to compute,
// or on the task's caller.
func (u *Use) Assumptions() (all []Condition, ok bool) {
	if u.Run.discarded || u.Run.tree.caller != CallerConfirmed {
		return nil, false
	}
	all, missing := u.Run.gather(nil, u.dep)
	return all, missing == nil
}

// Conditions returns what a predicated call was sent on, without what calls among that were sent
// on themselves.
func (c *Call) Conditions() []Condition { return c.noted().conds }

// Stands returns what the run, which has returned, stands on, if a server of one domain can check
// all of that and the run's other calls with effects are answered.
func (r *Run) Stands() (domain *Domain, on []Condition, ok bool) {
	if r.discarded || r.tree.caller != CallerConfirmed {
		return nil, nil, false
	}
	for _, u := range r.uses {
		c := u.Call
		effects := c.spec.Effect != None || u.touched
		if c.answered || c.spec.Local || u.answer < 0 && !effects {
			continue
		}
		d := c.spec.Domain
		if c.spec.Followed {
			d = c.basis(u.answer).domain
		}
		if domain == nil {
			domain = d
		}
		if d == nil || d != domain || effects && c.spec.Effect != Predicated && !c.spec.Followed {
			return nil, nil, false
		}
	}
	if domain == nil {
		return nil, nil, false
	}
	deps := []*dep{r.main.dep}
	for _, id := range slices.Sorted(maps.Keys(r.forked)) {
		deps = append(deps, r.forked[id].dep)
	}
	on, missing := r.gather(domain, deps...)
	return domain, on, missing == nil
}

// predicate has a call be sent for one of those who make it, if its server can check all that this
// one stands on, and returns that use. first may make it as far as the order of calls is concerned.
func (t *Tree) predicate(c *Call, first *Use) *Use {
	if p := t.undecidedAt(c.key); p != nil && p != c { // what both stand on may be right
		wakeOn(p, c)
		t.held(c, "another call may yet take effect")
		return nil
	}
	if p := t.sent.find(c.key); p != nil && p != c { // who makes this one is about to be superseded
		t.held(c, "another call took effect in its place")
		return nil
	}
	if t.caller == CallerConfirmed {
		for _, u := range c.uses {
			if u != first {
				if b, _ := t.before(u, false); b != nil {
					wakeOn(b, c)
					continue
				}
			}
			conds, missing := u.Run.gather(c.spec.Domain, u.dep)
			if missing != nil {
				wakeOn(missing, c)
				continue
			}
			n := c.note()
			n.conds, n.sentFor, n.wrong = conds, u, false
			for _, d := range conds {
				wakeOn(d.Call, c)
			}
			u.Run.sentAhead = true
			t.isAhead(c)
			return u
		}
	}
	t.held(c, "its server cannot check all that its caller stands on")
	return nil
}

// undecided reports whether a predicated call may yet take effect or be refused.
func (c *Call) undecided() bool {
	return c.spec.Effect == Predicated && c.send == sentSpeculative && !c.confirmed && !c.answered
}

// isAhead notes that the call is found by its place.
func (t *Tree) isAhead(c *Call) {
	s := t.note()
	if s.sentAhead == nil {
		s.sentAhead = make(map[key]*Call)
	}
	s.sentAhead[c.key.place()] = c
}

// undecidedAt returns a call at this place of the program that may yet take effect, or nil. Whoever
// comes there makes that one, whatever preceded it: if it takes effect, it has been made here, and
// if it is refused it is made anew.
func (t *Tree) undecidedAt(k key) *Call {
	if c := t.seldom().sentAhead[k.place()]; c != nil && c.undecided() && !c.dead && !c.doomed() {
		return c
	}
	return nil
}

// holds reports whether the call's conditions are known to be true.
func (c *Call) holds() bool {
	return !slices.ContainsFunc(c.noted().conds, func(d Condition) bool {
		return !d.Call.answered || d.Call.result != d.Answer || d.Call.noted().refusals != d.refusals
	})
}

// doomed reports whether one of its conditions is known to be false, so that its server refuses it.
func (c *Call) doomed() bool {
	return slices.ContainsFunc(c.noted().conds, func(d Condition) bool {
		o := d.Call
		wrong := o.answered && o.result != d.Answer && !o.noted().unsure
		return wrong || o.noted().refusals != d.refusals || o.dead && !o.answered
	})
}

// Unsure tells that the call is about to have a result that does not say whether its predictions
// were wrong, nor, if it is predicated, whether it took effect: nobody could find out. It counts as
// having taken effect if its conditions are true, since nobody may make it again.
func (t *Tree) Unsure(c *Call) { c.note().unsure = true }

// decide sees whether it is known by now that a call takes effect. If it has an answer, it has, and
// so have those that it was sent on, although their answers may be on their way. An answer that
// says nothing does not say this either (plant sureOfNothing).
func (t *Tree) decide(c *Call) {
	if c.spec.Effect != Predicated || c.send != sentSpeculative || c.confirmed || c.dead {
		return
	}
	if c.answered && !c.noted().unsure || c.holds() {
		t.takesEffect(c)
		return
	}
	for _, d := range c.noted().conds {
		if !d.Call.answered {
			wakeOn(d.Call, c)
		}
	}
	if c.doomed() {
		if n := c.note(); !n.wrong { // once, as some of those may wake this one
			n.wrong = true
			t.freed = append(t.freed, c.wakes...) // it keeps nobody waiting any more
		}
		if len(c.uses) == 0 {
			t.unorphan(c)
			t.abandon(c)
		}
	}
}

// takesEffect notes that the call's conditions are true, and so are those that they rest on.
func (t *Tree) takesEffect(c *Call) {
	for _, d := range c.noted().conds {
		if o := d.Call; o.undecided() && !o.dead && o.noted().refusals == d.refusals {
			t.takesEffect(o)
		}
	}
	c.confirmed, c.right = true, c.terms.sentFor
	t.unorphan(c)
	t.sent.add(c)
	if slices.ContainsFunc(t.runs, func(r *Run) bool { return r != c.right.Run }) {
		t.released = append(t.released, c)
	}
	t.record.confirm(c)
	t.emitCall(Confirm, c).Use = c.right
	t.note().decided, t.doubtful = true, true // a run may have waited for this
	t.freed = append(t.freed, c.wakes...)     // and other calls, see parted
}

// unsettled returns a call that may yet take effect and that no run makes, or nil. The run that is
// right would have to make it. Which that is may not be known before: code that gave up waiting may
// have come by another way, see drop.go. So nobody passes a barrier or ends meanwhile.
func (t *Tree) unsettled() *Call {
	if i := slices.IndexFunc(t.orphans, (*Call).undecided); i >= 0 {
		return t.orphans[i]
	}
	return nil
}

// mayEnd reports whether no run can turn out to be wrong that stands on no guess.
func (t *Tree) mayEnd() bool { return !t.seldom().decided && t.unsettled() == nil }

// parted returns a call that has to be decided before one with effects is sent, as it tells which
// way is right; nil if there is none.
func (t *Tree) parted(c *Call) *Call {
	if c.spec.Effect == None {
		return nil
	}
	if p := t.undecidedAt(c.key); p != nil && p != c {
		return p
	}
	if t.gaveUp() {
		return t.unsettled()
	}
	return nil
}

// Unknown reports whether the task ended while it was not known of a predicated call whether it has
// taken effect, or would.
func (t *Tree) Unknown() bool { return t.seldom().unknown }

// noteUnknown is called when the task ends.
func (t *Tree) noteUnknown() {
	if slices.ContainsFunc(t.record.all, func(c *Call) bool {
		known := c.answered && !c.noted().unsure || c.dead || c.doomed()
		return c.spec.Effect == Predicated && c.send != unsent && !known
	}) {
		t.note().unknown = true
	}
}
