package spectree

// Predicted tells that one more prediction for the call arrived: the one with
// index Predictions-1 from now on.
func (t *Tree) Predicted(c *Call) {
	if c.answered || c.dead || t.over {
		return
	}
	idx := c.predictions
	c.predictions++
	uses := append([]*Use(nil), c.uses...)
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

// Answered tells that the call's actual result is in. match is the index of
// the first prediction that it is equivalent to, or Actual.
func (t *Tree) Answered(c *Call, match int) {
	if c.answered || c.dead || t.over {
		return
	}
	c.answered, c.result = true, match
	t.now++
	c.answeredAt = t.now
	t.unanswered.forget(c)
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
	for _, r := range t.runs {
		if idx, ok := r.chosen(c); ok {
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
		t.refuteLocal(c)
	}
	for _, d := range wrong {
		t.discard(d.run, c)
	}
	merged := t.merge()
	t.evaluate(c)
	t.wake(c)
	t.doubtful = t.doubtful || merged // a run may end the task only now that its calls are settled
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
	if c.irrevocable() {
		t.sent.remove(c)
	}
	c.refused, c.confirmed, c.postponed = true, false, false
	c.send = unsent
	c.hold = ""
	if len(c.uses) == 0 {
		t.unorphan(c)
		t.abandon(c)
		t.reconcile()
	} else {
		t.evaluateHeld(c, reason)
	}
	t.recheck()
}

// resolution is the answer of a local call that still depends on guesses.
type resolution struct {
	lanes []*Lane
	match int
}

func (p *resolution) blocker() *Call {
	for _, l := range p.lanes {
		if b := l.dep.blocker(); b != nil {
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
	c.pending = &resolution{lanes, match}
	t.resolveLocal(c)
	for _, l := range lanes {
		t.untangle(l.run)
	}
}

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

// received tells that the run goes on with an answer.
func (u *Use) received() {
	u.before = true
	if u.late {
		u.Run.stray = u.Call
	}
	if u.Call.ended && u.answer == Actual && !u.gaveUp {
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

// rightUse returns a use of c by a run that is known to be right in all that it
// did before, or nil. If there is none, c is evaluated again when that may have
// changed.
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

// evaluate does for a call what may be done for it by now: send, confirm, settle.
func (t *Tree) evaluate(c *Call) { t.evaluateHeld(c, "") }

func (t *Tree) evaluateHeld(c *Call, refusal string) {
	if c.spec.Local {
		t.resolveLocal(c)
		return
	}
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
	if c.send == sentSpeculative && !c.confirmed {
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

// dispatch sends the call or says why it is held. right is a use of a run that is
// right so far, if there is one.
func (t *Tree) dispatch(c *Call, right *Use, refusal string) {
	u, before, reason := t.sender(c, right)
	if before != nil {
		wakeOn(before, c)
		t.held(c, reason)
		return
	}
	if t.hasty(c) {
		t.tooEarly(c)
		return
	}
	switch {
	case right != nil:
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
	default:
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
}

func (t *Tree) held(c *Call, reason string) {
	if reason == "" || c.hold == reason {
		return
	}
	c.hold = reason
	t.emitCall(Hold, c)
}
