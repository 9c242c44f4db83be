package spectree

import (
	"slices"
	"testing"
)

// predicated makes a predicated call.
func (s *scenario) predicated(l *Lane, op string, d *Domain, predictions int) *Use {
	return s.Call(l, &CallSpec{Op: op, Effect: Predicated, Domain: d, Predictions: predictions})
}

// on checks on which calls another one was sent.
func (s *scenario) on(u *Use, want ...*Use) {
	s.Helper()
	var got, ids []int
	for _, d := range u.Call.Conditions() {
		got = append(got, d.Call.ID)
	}
	for _, w := range want {
		ids = append(ids, w.Call.ID)
	}
	if !slices.Equal(got, ids) {
		s.Errorf("call %d was sent on calls %v, want %v", u.Call.ID, got, ids)
	}
}

// TestPredicatedCalls: each is sent at once, on the guess at the one before it, which it was sent
// on itself; all are certain once the first one's answer is known to be what was guessed, and
// whoever waits at a barrier waits for their answers.
func TestPredicatedCalls(t *testing.T) {
	s, d := play(t, replayable), new(Domain)
	a := s.predicated(s.lane(1), "a", d, 1)
	b := s.predicated(s.lane(1), "b", d, 1)
	c := s.predicated(s.lane(1), "c", d, 1)
	s.want("start run 1", "send call 1", "send call 2 speculatively", "send call 3 speculatively")
	s.on(b, a)
	s.on(c, b)
	if s.Barrier(s.lane(1)) {
		t.Error("a barrier is passed before the answers are known")
	}
	s.Answered(c.Call, 0) // so it was carried out, and b was
	s.want("confirm call 2", "confirm call 3")
	s.Answered(a.Call, 0)
	s.want("settle call 1")
	s.Answered(b.Call, 0)
	s.want("settle call 2", "settle call 3", "release run 1 lane \"\"")
}

// TestPredicatedCallsAreHeld: a server cannot check guesses at other servers' calls, at the task's
// caller, or at what code has yet to compute.
func TestPredicatedCallsAreHeld(t *testing.T) {
	const held = "hold call 2: its server cannot check all that its caller stands on"
	for _, domain := range []*Domain{nil, new(Domain)} {
		s := play(t, replayable)
		a := s.Call(s.lane(1), &CallSpec{Op: "a", Domain: domain, Predictions: 1})
		s.predicated(s.lane(1), "b", new(Domain), 1)
		s.want("start run 1", "send call 1", held)
		s.Answered(a.Call, 0)
		s.want("settle call 1", "send call 2")
	}
	t.Run("caller", func(t *testing.T) {
		s, d := play(t, Config{Replayable: true, CallerOpen: true}), new(Domain)
		s.predicated(s.lane(1), "a", d, 1)
		s.predicated(s.lane(1), "b", d, 1)
		s.want("start run 1", "hold call 1: its server cannot check all that its caller stands on", held)
		s.ConfirmCaller()
		s.want("send call 1", "send call 2 speculatively")
	})
	t.Run("future", func(t *testing.T) {
		s, d := play(t, replayable), new(Domain)
		child := s.Fork(s.lane(1))
		r := s.Call(child, &CallSpec{Op: "r", Domain: d, Predictions: 1})
		u := s.Call(s.lane(1), &CallSpec{Op: "local", Local: true, Predictions: 1})
		w := s.predicated(s.lane(1), "w", d, 1)
		s.want("start run 1", "send call 1", "hold call 3: its server cannot check all that its caller stands on")
		s.Resolve(u.Call, []*Lane{child}, 0)
		s.want("send call 3 speculatively")
		s.on(w, r)
	})
	t.Run("before", func(t *testing.T) { // which is not sent, so that it cannot be named
		s, d := play(t, replayable), new(Domain)
		a := s.read(s.lane(1), "a", 1)
		s.predicated(s.lane(1), "b", d, 1)
		s.predicated(s.lane(1), "c", d, 1)
		s.skip()
		s.Answered(a.Call, 0)
		s.want("settle call 1", "send call 2", "send call 3 speculatively")
	})
}

// TestPredicatedCallOfAnotherRun: a call that two runs make was sent on the guesses of one of them.
// It does not stand for those of the other.
func TestPredicatedCallOfAnotherRun(t *testing.T) {
	s, d := play(t, replayable), new(Domain)
	var at [2]struct{ x, a, b *Use }
	for i := range at {
		at[i].x = s.predicated(s.lane(i+1), "x", d, 2)
		at[i].a = s.predicated(s.lane(i+1), "a", d, 1)
		at[i].b = s.predicated(s.lane(i+1), []string{"b", "c"}[i], d, 1)
	}
	s.skip()
	if at[0].a.Call != at[1].a.Call {
		t.Fatal("the runs make different calls")
	}
	s.on(at[0].b, at[0].a)
	s.on(at[1].b, at[1].a, at[1].x)
}

// TestPredicatedCallOutlivesItsRun: whatever becomes of the run that a call was sent for, it takes
// effect if its conditions are true. It is not made again then, and the task does not end before it
// is decided.
func TestPredicatedCallOutlivesItsRun(t *testing.T) {
	begin := func() (s *scenario, a, b *Use) {
		s, d := play(t, replayable), new(Domain)
		a = s.predicated(s.lane(1), "a", d, 1)
		b = s.predicated(s.lane(1), "b", d, 0)
		s.Doubt([]*Use{a})
		s.skip()
		s.prefer(s.run(2)) // nothing that is known refutes the guess
		s.want("discard run 1")
		s.predicated(s.lane(2), "a", d, 1)
		s.Expire(true)
		s.want("adopt run 2 call 1")
		return s, a, b
	}
	t.Run("carried out", func(t *testing.T) {
		s, a, b := begin()
		s.Answered(b.Call, Actual)
		s.want("confirm call 2")
		s.Answered(a.Call, 0)
		s.answers(s.predicated(s.lane(2), "b", b.Call.spec.Domain, 0), Actual)
		s.want("resume run 2 call 1 answer 0", "settle call 1", "adopt run 2 call 2", "settle call 2")
	})
	t.Run("not made", func(t *testing.T) { // by code that is not deterministic
		s, a, b := begin()
		s.Answered(a.Call, 0)
		s.returned(s.run(2))
		s.want("resume run 2 call 1 answer 0", "settle call 1", "confirm call 2", "diverge run 2 call 2", "discard run 2",
			"abandon call 2")
		if b.Call.Answered(); !s.Unknown() {
			t.Error("the outcome of a call counts as known that has no answer")
		}
	})
	t.Run("refused", func(t *testing.T) {
		s, a, b := begin()
		s.Answered(a.Call, Actual)
		s.want("resume run 2 call 1 answer -1", "settle call 1", "abandon call 2") // its server refuses it
		s.Refused(b.Call, "wrong")
		s.returned(s.run(2))
		s.want("final run 2", "commit run 2")
	})
}

// TestPredicatedCallBesideAnotherWay: a run that left a call out, as its code's context had ended,
// has come by another way than the one that had it sent. Whether that is right is not known as long
// as the call is undecided. If it takes effect the run neither passes a barrier nor ends, and gives
// way.
func TestPredicatedCallBesideAnotherWay(t *testing.T) {
	for name, comesTo := range map[string]func(s *scenario){
		"barrier": func(s *scenario) {
			if s.Barrier(s.lane(2)) {
				s.Error("a barrier is passed")
			}
		},
		"end": func(s *scenario) {
			s.prefer(s.run(2))
			s.returned(s.run(2))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := play(t, replayable), new(Domain)
			a := s.predicated(s.lane(1), "a", d, 1)
			s.predicated(s.lane(1), "b", d, 1)
			s.Doubt([]*Use{s.read(s.lane(1), "r", 1)})
			s.predicated(s.lane(2), "a", d, 1)
			s.Skip(s.lane(2), &CallSpec{Op: "b", Effect: Predicated, Domain: d})
			comesTo(s)
			s.skip()
			s.Answered(a.Call, 0)
			s.want("settle call 1", "confirm call 2", "discard run 2 call 2", "start run 3")
		})
	}
}

// TestWithdrawnGuessOfAPredicatedCall: only the actual result refutes a guess on which one was
// sent.
func TestWithdrawnGuessOfAPredicatedCall(t *testing.T) {
	s, d := play(t, replayable), new(Domain)
	a := s.predicated(s.lane(1), "a", d, 1)
	s.predicated(s.lane(1), "b", d, 1)
	s.skip()
	if s.Withdraw(a.Call, 0) {
		t.Error("the guess is withdrawn")
	}
	s.want()
	s.Answered(a.Call, 0)
	s.want("settle call 1", "confirm call 2")
}

// TestRefusedPredicatedCall: it is made again, plainly, when its caller is right. If what it was
// sent on is known to be wrong it is sent at once for those who stand on other guesses.
func TestRefusedPredicatedCall(t *testing.T) {
	s, d := play(t, replayable), new(Domain)
	a := s.predicated(s.lane(1), "a", d, 1)
	b := s.predicated(s.lane(1), "b", d, 1)
	c := s.predicated(s.lane(1), "c", d, 1)
	s.skip()
	s.Refused(b.Call, "retry")
	s.Refused(c.Call, "retry") // as b was not carried out
	s.want("hold call 2: retry", "hold call 3: its server cannot check all that its caller stands on")
	s.Answered(a.Call, 0)
	s.want("settle call 1", "send call 2", "send call 3 speculatively")
	s.on(c, b)
}

// TestFollowedPredictions: what another task is guessed to come to stands for the calls that this
// stands on, if they are of one domain, and what follows comes behind their effects.
func TestFollowedPredictions(t *testing.T) {
	for _, effects := range []bool{false, true} {
		s, d := play(t, replayable), new(Domain)
		f := s.Call(s.lane(1), &CallSpec{Op: "future", Followed: true})
		s.PredictedOn(f.Call, d, effects)
		w := s.predicated(s.lane(1), "w", d, 1)
		s.predicated(s.lane(1), "v", new(Domain), 1)
		r := s.read(s.lane(1), "r", 1)
		s.skip()
		s.on(w, f)
		if sent := s.record.all[2].send != unsent; sent {
			t.Error("a call is sent on guesses at another domain's")
		}
		if r.Call.send != unsent {
			t.Error("a read is sent before the effects that it follows")
		}
		s.Answered(f.Call, 0)
		if !w.Call.Confirmed() {
			t.Error("the call is not certain")
		}
	}
	s, d := play(t, replayable), new(Domain)
	f := s.Call(s.lane(1), &CallSpec{Op: "future", Followed: true})
	s.PredictedOn(f.Call, nil, false) // nobody knows on what
	w := s.predicated(s.lane(1), "w", d, 1)
	if w.Call.send != unsent {
		t.Error("a call is sent on a guess of which nobody knows what it stands on")
	}
}

// TestReadBehindAnotherTasksEffects: it waits for them, and a read in their place does not wait for
// none.
func TestReadBehindAnotherTasksEffects(t *testing.T) {
	for _, effects := range []bool{false, true} {
		s, d := play(t, replayable), new(Domain)
		f := s.Call(s.lane(1), &CallSpec{Op: "future", Followed: true})
		s.PredictedOn(f.Call, d, effects)
		r := s.read(s.lane(1), "r", 1)
		if sent := r.Call.send != unsent; sent == effects {
			t.Errorf("effects: %v, the read is sent: %v", effects, sent)
		}
		s.Answered(f.Call, 0)
		s.Touch(s.lane(1), "future")
		if r.Call.send == unsent {
			t.Error("the read is held although nothing is open")
		}
	}
}

// TestUnsurePredicatedCall: an answer that says nothing does not say that the call took effect, nor
// that what it was sent on is true.
func TestUnsurePredicatedCall(t *testing.T) {
	begin := func() (s *scenario, a, b *Use) {
		s, d := play(t, replayable), new(Domain)
		a = s.predicated(s.lane(1), "a", d, 1)
		b = s.predicated(s.lane(1), "b", d, 0)
		s.skip()
		s.Unsure(b.Call)
		s.Answered(b.Call, Actual)
		s.want("resume run 1 call 2 answer -1")
		return s, a, b
	}
	t.Run("conditions true", func(t *testing.T) {
		s, a, b := begin()
		s.Answered(a.Call, 0)
		s.want("settle call 1", "confirm call 2", "settle call 2")
		s.returned(s.run(1))
		s.want("final run 1", "commit run 1")
		if b.Call.Answered(); !s.Unknown() {
			t.Error("the outcome counts as known")
		}
	})
	t.Run("a condition false", func(t *testing.T) {
		s, a, b := begin()
		s.Answered(a.Call, Actual)
		s.want("discard run 1 call 1", "abandon call 2", "start run 2")
		d := b.Call.spec.Domain
		s.answers(s.predicated(s.lane(2), "a", d, 0), Actual)
		other := s.predicated(s.lane(2), "c", d, 0) // another way from there
		s.want("adopt run 2 call 1", "settle call 1", "send call 3")
		s.Answered(other.Call, Actual)
		s.returned(s.run(2))
		s.want("resume run 2 call 3 answer -1", "settle call 3", "final run 2", "commit run 2")
		if s.Unknown() {
			t.Error("the outcome of a call that was refused counts as unknown")
		}
	})
}

// TestFollowedPredictionsOfTwoDomains: if predictions of another task's result stand on effects of
// two domains, neither keeps what follows in order. What is counted by domain stays right.
func TestFollowedPredictionsOfTwoDomains(t *testing.T) {
	s, d := play(t, replayable), new(Domain)
	f := s.Call(s.lane(1), &CallSpec{Op: "future", Followed: true})
	s.PredictedOn(f.Call, new(Domain), true)
	s.PredictedOn(f.Call, d, true) // of which no run is made
	w := s.Call(s.lane(1), &CallSpec{Op: "w", Effect: Staged, Domain: d, Predictions: 1})
	if w.Call.send != unsent {
		t.Error("a call is sent before effects that may be another domain's")
	}
	s.Answered(f.Call, 0)
	if w.Call.send == unsent {
		t.Error("a call is held although nothing is open")
	}
	p := s.Call(s.lane(1), &CallSpec{Op: "p", Effect: Immediate, Predictions: 1})
	v := s.predicated(s.lane(1), "v", d, 1)
	if p.Call.answered || v.Call.send != unsent {
		t.Error("a call is sent before the answer of an effect of no domain")
	}
	if got := s.unanswered.counts; len(got) != 1 || got[counted{domain: d}] != 2 {
		t.Errorf("two calls of a domain have no answer, and counted are %v", got)
	}
}

// TestUnsureAnswerEnds: a run that came by another way waits for a call that may yet take effect,
// and for no more than its answer, though that says nothing.
func TestUnsureAnswerEnds(t *testing.T) {
	s, d := play(t, replayable), new(Domain)
	r := s.Call(s.lane(1), &CallSpec{Op: "r", Domain: d, Predictions: 1})
	b := s.predicated(s.lane(1), "b", d, 0)
	s.Doubt([]*Use{r})
	s.Skip(s.lane(2), &CallSpec{Op: "r", Domain: d})
	s.Skip(s.lane(2), &CallSpec{Op: "b", Effect: Predicated, Domain: d})
	s.prefer(s.run(2))
	s.returned(s.run(2))
	s.skip()
	s.Unsure(b.Call)
	s.Answered(b.Call, Actual)
	s.want("final run 2", "commit run 2", "abandon call 1", "abandon call 2")
	if !s.Unknown() {
		t.Error("the outcome counts as known")
	}
}
