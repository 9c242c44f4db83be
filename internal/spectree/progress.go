package spectree

// Say run 1 goes on with 5 for a balance and reserves a seat, and a sibling goes on with 7 and
// reserves another one. Both reservations are staged, so both may be sent at once. The answer is 7:
// run 1 is discarded, and only the sibling's reservation is confirmed.
//
// The rule: what can be undone may be sent on a guess. What cannot, which is to confirm a call, to
// send one that takes effect at once, and to let others learn a result, waits for a use whose lane
// stands on no guess (rightUse). Otherwise the seat of run 1 would be taken for good (plant
// confirmEarly), or caches would keep the answer to a question that plain code never asks (plant
// settleEarly). A call that waits is entered with an unanswered call that it waits for, and is
// evaluated again when that one is answered. Nobody polls: a call that is entered nowhere is stuck
// (plant forgetWake).

// Predicted tells that one more prediction for the call arrived: the one with index Predictions-1
// from now on. A run that still waits takes it. A run that went on with another prediction is left
// alone, and a sibling tries this one beside it, if the limits allow.
func (t *Tree) Predicted(c *Call) {
	if c.answered || c.dead || t.over {
		return
	}
	idx := c.predictions
	c.predictions++
	uses := append([]*Use(nil), c.uses...) // a fork or untangle may change the list
	for _, u := range uses {
		if u.Run.discarded {
			continue
		}
		if u.answer == Waiting {
			if t.maySpeculate(u) {
				t.assume(u, idx)
				t.resume(u)
			}
		} else if !c.spec.Local {
			t.fork(u.Run, c, idx)
		}
		t.untangle(u.Run)
	}
}

// Answered tells that the call's actual result is in. match is the index of the first prediction
// that it is equivalent to, or Actual.
//
// The order of what follows matters. Wrong runs are discarded before anything is evaluated, since a
// call must not be sent or confirmed on account of one. Replays start after that, since what is
// sure by then tells them what to use again, and only where no live run has taken the place
// already. Runs that are right move on last: barriers and results may end the task.
func (t *Tree) Answered(c *Call, match int) {
	if c.answered || c.dead || t.over {
		return
	}
	undecided := c.undecided() // a run that returned may have waited for it
	c.answered, c.result = true, match
	t.now++
	c.answeredAt = t.now
	t.unanswered.forget(c)
	if c.Confirmed() {
		t.unorphan(c) // it keeps nobody waiting any more
	}
	var right []*Run
	var wrong []loss
	for _, u := range c.uses {
		switch {
		case u.answer == Waiting:
			u.answer = c.result
			t.resume(u)
		case u.answer == c.result:
			u.Run.open--
			right = append(right, u.Run)
		default:
			wrong = append(wrong, loss{u.Run, u.index})
		}
	}
	// Runs that have yet to make the call, and were to assume an answer of it, are right or wrong
	// too.
	for _, r := range t.runs {
		if idx, ok := r.chosen(c); ok {
			// A doubter assumed no answer: it is right whatever the answer is, and may turn out the
			// same as the run whose prediction it doubted.
			if idx == noGuess {
				idx, t.doubtful = c.result, true
			}
			if idx == c.result {
				r.take(c)
				r.open--
				right = append(right, r)
			} else {
				wrong = append(wrong, loss{r, len(r.uses)})
			}
		}
	}
	if c.spec.Local && len(wrong) > 0 {
		t.refuteLocal(c) // the replay computes the result anew, and would guess the same again
	}
	for _, d := range wrong {
		t.discard(d.run, c)
	}
	merged := t.merge()
	t.evaluate(c)
	t.wake(c)
	t.doubtful = t.doubtful || merged || undecided // a run may end the task only now that its calls are settled
	t.reconcile()
	for _, d := range wrong {
		t.replay(d, c)
	}
	for _, r := range right {
		t.releaseBarriers(r)
		t.finish(r)
	}
}

// Refused tells that the peer ran nothing for the call's attempt, or that the
// attempt was lost without a result: it is held until its caller is confirmed.
func (t *Tree) Refused(c *Call, reason string) {
	if c.answered || c.dead || t.over {
		return
	}
	// It had no effect after all.
	if c.irrevocable() {
		t.sent.remove(c)
	}
	// If one of its conditions is known to be false, it may be sent anew on those that others make it
	// with.
	c.refused = c.spec.Effect != Predicated || !c.doomed()
	c.confirmed, c.postponed = false, false
	c.send = unsent
	if c.spec.Domain != nil {
		n := c.note()
		n.conds, n.sentFor = nil, nil
		n.refusals++ // what was sent on it is refused as well
		t.freed = append(t.freed, c.wakes...)
		t.doubtful = true // a run that returned may have waited for this
	}
	c.hold = ""
	if len(c.uses) == 0 {
		// Nothing of it is worth keeping for a replay.
		t.unorphan(c)
		t.abandon(c)
		t.reconcile()
	} else {
		t.evaluateHeld(c, reason)
		t.reconcile()
	}
	t.recheck()
}

// resolution is the answer that a run has computed for a local call. It is not the call's answer
// while the lanes that computed it depend on guesses.
type resolution struct {
	lanes []*Lane
	lent  *dep // what was guessed in shared lanes that they come from, see lentTo
	match int
}

// deps returns what the answer stands on.
func (p *resolution) deps() []*dep {
	deps := []*dep{p.lent}
	for _, l := range p.lanes {
		deps = append(deps, l.dep)
	}
	return deps
}

func (p *resolution) blocker() *Call {
	for _, d := range p.deps() {
		if b := d.blocker(); b != nil {
			return b
		}
	}
	return nil
}

// Resolve tells a local call's answer, as the given lanes of its run computed
// it. It counts once these lanes depend on no guess. A run that went on with a
// prediction went on without waiting for what the lanes did, so the prediction
// counts as wrong if they made calls whose order matters, or gave calls up, which
// what follows effects must know.
func (t *Tree) Resolve(c *Call, lanes []*Lane, match int) {
	if c.answered || c.dead || t.over {
		return
	}
	for _, l := range lanes {
		if l.eff != l.forkEff || l.ord != l.forkOrd || l.left {
			match = Actual
		}
	}
	c.pending = &resolution{lanes: lanes, match: match}
	for _, l := range lanes {
		c.pending.lent = l.lentTo(c, c.pending.lent)
	}
	t.freed = append(t.freed, c.wakes...) // what it stands on is known now
	t.resolveLocal(c)
	t.reconcile()
	for _, l := range lanes {
		t.untangle(l.run)
	}
}

// resolveLocal answers a local call if what computed the answer depends on no guess; otherwise it
// is tried again when one of the guesses is settled.
func (t *Tree) resolveLocal(c *Call) {
	if c.pending == nil || c.answered || c.dead {
		return
	}
	if b := c.pending.blocker(); b != nil {
		wakeOn(b, c)
		return
	}
	t.Answered(c, c.pending.match)
}

func (t *Tree) resume(u *Use) {
	u.lane.done(u)
	u.received()
	a := t.emit(Resume)
	a.Use, a.Call, a.Run = u, u.Call, u.Run
}

// await counts a call that the lane's code waits for, and done one that it does not wait for any
// more.
func (l *Lane) await(s *CallSpec) {
	l.waiting++
	l.run.waiting++
	if s.Effect != None || s.Ordered {
		l.awaited++
	}
}

func (l *Lane) done(u *Use) {
	if !u.before {
		u.before = true
		l.waiting--
		l.run.waiting--
		if s := &u.Call.spec; s.Effect != None || s.Ordered {
			l.awaited--
		}
	}
}

// received tells that the run goes on with an answer. If that answer came too late for the path
// that was right, the run is astray from here on. But code that is told the result of a call that
// ended with its context goes on as if it had given the call up, so that counts as a gap of its
// lane, and is on the path of a run that did give it up.
func (u *Use) received() {
	u.before = true
	ended := u.Call.ended && u.answer == Actual && !u.gaveUp
	if u.late && !(ended && u.without) {
		u.Run.stray = u.Call
	}
	if ended {
		u.lane.ends = &gap{prev: u.lane.ends, at: u.Call.key.place()}
	}
}

// wake evaluates what waited for c.
func (t *Tree) wake(c *Call) {
	wakes := c.wakes
	c.wakes = nil
	t.evaluateAll(wakes)
}

// evaluateAll evaluates remote calls first: the answer of a local one may
// discard the run that made them, and they would not be known to be right.
func (t *Tree) evaluateAll(calls []*Call) {
	for _, local := range []bool{false, true} {
		for _, c := range calls {
			if c.spec.Local == local {
				t.evaluate(c)
			}
		}
	}
}

// wakeOn has w evaluated when c is answered.
func wakeOn(c, w *Call) {
	if n := len(c.wakes); n == 0 || c.wakes[n-1] != w {
		c.wakes = append(c.wakes, w)
	}
}

// rightUse returns a use of c by a run that is known to be right in all that led to c, or nil. If
// there is none, c is evaluated again when that may have changed. The run may yet be wrong about
// what comes later or what its other goroutines do. The run that turns out right makes the call all
// the same, as it is told the same up to here; astray.go has the exceptions.
func (t *Tree) rightUse(c *Call) *Use {
	if t.caller != CallerConfirmed {
		if n := len(t.waitCaller); t.caller == CallerOpen && (n == 0 || t.waitCaller[n-1] != c) {
			t.waitCaller = append(t.waitCaller, c)
		}
		return nil
	}
	for _, u := range c.uses {
		if u.dep.blocker() == nil {
			return u
		}
	}
	for _, u := range c.uses {
		wakeOn(u.dep.blocker(), c)
	}
	return nil
}

// evaluate does for a call what may be done for it by now: send it, confirm it to its callee, and
// settle it. It may be called at any time and as often as one likes: if something is missing it
// does nothing, and has arranged to be called when that has come.
func (t *Tree) evaluate(c *Call) { t.evaluateHeld(c, "") }

// evaluateHeld is evaluate for a call that was refused, if refusal says why.
func (t *Tree) evaluateHeld(c *Call, refusal string) {
	if c.spec.Local {
		t.resolveLocal(c)
		return
	}
	t.decide(c)
	if c.dead || c.settled || len(c.uses) == 0 {
		return
	}
	right := t.rightUse(c)
	if c.send == unsent && !c.answered {
		t.dispatch(c, right, refusal)
	}
	if right == nil || t.over {
		return
	}
	if c.send == sentSpeculative && !c.confirmed && c.spec.Effect != Predicated { // see decide for these
		// To confirm is to have the effects happen, so all earlier ones of the lane's past have to
		// be answered. Calls that commute may be sent at once, but are confirmed one after the
		// other.
		if c.spec.Effect != None {
			if b := t.blocker(right.eff, c, ""); b != nil {
				wakeOn(b, c)
				return
			}
			if !t.release(c, right) {
				return
			}
		}
		c.confirmed, c.postponed, c.right = true, false, right
		t.record.confirm(c)
		t.emitCall(Confirm, c).Use = right
	}
	if c.answered && !c.settled {
		c.settled = true
		t.emitCall(Settle, c)
	}
}

// dispatch sends the call or says why it is held. right is a use of a run that is right so far, if
// there is one. On its account any call may go, as plain code would make it now. On the account of
// a run that stands on guesses a call may go only if it can be undone: it has no effects or stages
// them, and its callee can be told later whether its caller was right.
func (t *Tree) dispatch(c *Call, right *Use, refusal string) {
	u, before, reason := t.sender(c, right)
	if before != nil {
		wakeOn(before, c)
		t.held(c, reason)
		return
	}
	if t.hasty(c) {
		// A read that is sent now would be from after an effect that its run has yet to make.
		t.tooEarly(c)
		return
	}
	switch {
	case right != nil:
		if p := t.parted(c); p != nil {
			wakeOn(p, c)
			t.held(c, "another call may yet take effect")
			return
		}
		if c.spec.Effect != None && !t.release(c, u) {
			return
		}
		t.sending(c, sentPlain)
		c.right = u
		t.record.confirm(c)
		t.emitCall(Send, c).Use = u
	case c.refused:
		t.held(c, refusal)
	case c.spec.Effect == Immediate:
		t.held(c, "it has side effects and its caller is speculative")
	case c.spec.NoSpeculation:
		t.held(c, "it cannot be sent for a speculative caller")
	case c.spec.Effect == Predicated && t.predicate(c, u) == nil:
	default:
		if at := c.noted().sentFor; at != nil {
			u = at
		}
		t.sending(c, sentSpeculative)
		a := t.emitCall(Send, c)
		a.Use, a.Speculative = u, true
	}
}

// Postpone tells that the attempt of a call that is to be sent for a speculative
// caller waits for a while, as that caller may soon be known to be right: until
// Launched, or until the call is confirmed. Nobody has heard of the call, so it
// goes with its last user. It must have one.
func (t *Tree) Postpone(c *Call) { c.postponed = c.send == sentSpeculative && !c.confirmed }

// Launched tells that a postponed attempt is under way.
func (t *Tree) Launched(c *Call) { c.postponed = false }

func (t *Tree) sending(c *Call, s sendState) {
	t.now++
	c.send, c.sentAt = s, t.now
	if c.spec.Domain != nil {
		t.freed = append(t.freed, c.wakes...) // from now on they can be sent on guesses at it
	}
}

func (t *Tree) held(c *Call, reason string) {
	if reason == "" || c.hold == reason {
		return
	}
	c.hold = reason
	t.emitCall(Hold, c)
}
