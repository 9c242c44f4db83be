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
			if _, chosen := u.Run.choices[c]; !chosen && t.maySpeculate(u.Run, c) {
				t.assume(u, idx)
				t.resume(u)
			}
		} else if !c.spec.Local {
			t.fork(u.Run, c, idx)
		}
	}
}

// Answered tells that the call's actual result is in. match is the index of
// the first prediction that it is equivalent to, or Actual.
func (t *Tree) Answered(c *Call, match int) {
	if c.answered || c.dead || t.over {
		return
	}
	c.answered, c.result = true, match
	var wrong, right []*Run
	for _, u := range c.uses {
		switch {
		case u.answer == Waiting:
			u.answer = c.result
			t.resume(u)
		case u.answer == c.result:
			u.Run.open--
			right = append(right, u.Run)
		default:
			wrong = append(wrong, u.Run)
		}
	}
	if c.spec.Local && len(wrong) > 0 {
		if t.refuted == nil {
			t.refuted = make(map[key]struct{})
		}
		t.refuted[c.localKey()] = struct{}{}
	}
	for _, r := range wrong {
		t.discard(r, c)
	}
	for _, r := range wrong {
		t.replay(r, c)
	}
	t.wake(c)
	t.evaluate(c)
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
	c.refused = true
	c.send = unsent
	c.hold = ""
	if len(c.uses) == 0 {
		t.unorphan(c)
		t.abandon(c)
		return
	}
	t.evaluateHeld(c, reason)
}

// Drop tells that the run gave up waiting for the call: its own context ended.
func (t *Tree) Drop(u *Use) {
	if u.answer != Waiting || u.Run.discarded {
		return
	}
	u.lane.done(u)
	u.answer = Actual
	t.detach(u)
	if c := u.Call; len(c.uses) == 0 && !c.dead && !c.irrevocable() && !c.settled {
		t.unorphan(c)
		t.abandon(c)
	}
}

// resolution is the answer of a local call that still depends on guesses.
type resolution struct {
	lanes []*Lane
	match int
}

// Resolve tells a local call's answer, as the given lanes of its run computed
// it. It counts once these lanes depend on no guess.
func (t *Tree) Resolve(c *Call, lanes []*Lane, match int) {
	if c.answered || c.dead || t.over {
		return
	}
	c.pending = &resolution{lanes, match}
	t.resolveLocal(c)
}

func (t *Tree) resolveLocal(c *Call) {
	if c.pending == nil || c.answered || c.dead {
		return
	}
	for _, l := range c.pending.lanes {
		if b := l.dep.blocker(); b != nil {
			wakeOn(b, c)
			return
		}
	}
	t.Answered(c, c.pending.match)
}

func (t *Tree) resume(u *Use) {
	u.lane.done(u)
	a := t.emit(Resume)
	a.Use, a.Call, a.Run = u, u.Call, u.Run
}

func (l *Lane) done(u *Use) {
	if !u.before {
		u.before = true
		l.waiting--
	}
}

// wake evaluates what waited for c.
func (t *Tree) wake(c *Call) {
	wakes := c.wakes
	c.wakes = nil
	for _, w := range wakes {
		t.evaluate(w)
	}
}

// wakeOn has w evaluated when c is answered.
func wakeOn(c, w *Call) {
	if n := len(c.wakes); n == 0 || c.wakes[n-1] != w {
		c.wakes = append(c.wakes, w)
	}
}

// callerRight reports whether some run that uses c is known to be right in all
// that it did before. If not, c is evaluated again when that may have changed.
func (t *Tree) callerRight(c *Call) bool {
	if t.caller != CallerConfirmed {
		if t.caller == CallerOpen {
			if n := len(t.waitCaller); n == 0 || t.waitCaller[n-1] != c {
				t.waitCaller = append(t.waitCaller, c)
			}
		}
		return false
	}
	for _, u := range c.uses {
		if u.dep.blocker() == nil {
			return true
		}
	}
	for _, u := range c.uses {
		wakeOn(u.dep.blocker(), c)
	}
	return false
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
	right := t.callerRight(c)
	u := c.uses[0]
	if c.send == unsent && !c.answered {
		t.dispatch(c, u, right, refusal)
	}
	if right && c.send == sentSpeculative && !c.confirmed {
		if c.spec.Effect != None {
			if b := u.eff.blocker(""); b != nil {
				wakeOn(b, c)
				return
			}
			t.sent = append(t.sent, c)
		}
		c.confirmed = true
		t.emitCall(Confirm, c)
	}
	if right && c.answered && !c.settled {
		c.settled = true
		t.emitCall(Settle, c)
	}
}

// dispatch sends the call or says why it is held.
func (t *Tree) dispatch(c *Call, u *Use, right bool, refusal string) {
	if b := u.eff.blocker(c.spec.Conflict); b != nil {
		wakeOn(b, c)
		t.held(c, "an earlier call with side effects is not answered")
		return
	}
	if c.spec.Ordered {
		if b := u.ord.blocker(c.spec.Conflict); b != nil {
			wakeOn(b, c)
			t.held(c, "an earlier ordered call is not answered")
			return
		}
	}
	switch {
	case right:
		c.send = sentPlain
		if c.spec.Effect != None {
			t.sent = append(t.sent, c)
		}
		t.emitCall(Send, c)
	case c.refused:
		t.held(c, refusal)
	case c.spec.Effect == Immediate:
		t.held(c, "it has side effects and its caller is speculative")
	case c.spec.NoSpeculation:
		t.held(c, "it cannot be sent for a speculative caller")
	default:
		c.send = sentSpeculative
		t.emitCall(Send, c).Speculative = true
	}
}

func (t *Tree) held(c *Call, reason string) {
	if reason == "" || c.hold == reason {
		return
	}
	c.hold = reason
	t.emitCall(Hold, c).Reason = reason
}
