package spectree

import "testing"

// TestBarrier checks that a barrier is passed when the run stands on no guess
// and the caller is right, and that no prediction is taken from then on.
func TestBarrier(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	a := s.read(s.lane(1), "a", 1)
	if s.Barrier(s.lane(1)) {
		t.Error("a speculative run passes")
	}
	b := s.read(s.Fork(s.lane(1)), "b", 1)
	s.answers(b, Waiting)
	s.Predicted(b.Call)
	s.answers(b, Waiting)
	s.Answered(a.Call, 0)
	s.want("start run 1", "send call 1 speculatively", "send call 2 speculatively")
	s.ConfirmCaller()
	s.want("confirm call 1", "settle call 1", "confirm call 2", "release run 1 lane \"\"")
	s.Answered(b.Call, 0)
	s.answers(b, 0)
	if !s.Barrier(s.lane(1)) {
		t.Error("a confirmed run does not pass")
	}
	s.want("resume run 1 call 2 answer 0", "settle call 2")
}

// TestBarrierOfADiscardedRun checks that who waits at a barrier is discarded
// like all of its run.
func TestBarrierOfADiscardedRun(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	s.Barrier(s.lane(1))
	s.Answered(a.Call, Actual)
	s.want("start run 1", "send call 1", "discard run 1 call 1", "start run 2")
}

// TestBarrierWithinAGuess checks that a computation that waits until the run is
// confirmed does not wait for itself: the run stood on a guess at its result.
func TestBarrierWithinAGuess(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	local := &CallSpec{Op: "local", Local: true, Predictions: 1}
	s.answers(s.Call(s.lane(1), local), 0)
	s.want("start run 1")
	if s.Barrier(child) {
		t.Error("a speculative run passes")
	}
	s.want("discard run 1 call 1", "abandon call 1", "start run 2")
	child = s.Fork(s.lane(2))
	u := s.Call(s.lane(2), local)
	s.answers(u, Waiting) // not again
	if !s.Barrier(child) {
		t.Error("a confirmed run does not pass")
	}
	s.Answered(u.Call, Actual)
	s.want("resume run 2 call 2 answer -1")
}

// TestLocal checks that a guess at a result that the run itself computes is
// right once all that the computation depends on is.
func TestLocal(t *testing.T) {
	for _, match := range []int{0, Actual} {
		s := play(t, replayable)
		child := s.Fork(s.lane(1))
		u := s.Call(s.lane(1), &CallSpec{Op: "local", Local: true})
		s.answers(u, Waiting)
		s.Predicted(u.Call)
		s.answers(u, 0)
		a := s.read(child, "a", 1)
		w := s.write(s.lane(1), "w", Immediate, 0)
		s.Resolve(u.Call, []*Lane{child}, match)
		s.want("start run 1", "resume run 1 call 1 answer 0", "send call 2",
			"hold call 3: it has side effects and its caller is speculative")
		s.Answered(a.Call, 0)
		if match == 0 {
			s.want("settle call 2", "send call 3")
			s.Resolve(u.Call, []*Lane{child}, match)
			s.Predicted(u.Call)
			s.Answered(w.Call, Actual)
			s.returned(s.run(1))
			s.want("resume run 1 call 3 answer -1", "settle call 3", "final run 1", "commit run 1")
			continue
		}
		s.want("settle call 2", "discard run 1 call 1", "abandon call 1", "abandon call 3", "start run 2")
	}
}

// TestRightBeforeWrong checks that what is right is known to be before the run
// that made it is discarded for another reason: its answers stay those of the task.
func TestRightBeforeWrong(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	local := s.Call(s.lane(1), &CallSpec{Op: "local", Local: true, Predictions: 1})
	a := s.read(child, "a", 1)
	grandchild := s.Fork(child)
	b := s.read(grandchild, "b", 1)
	c := s.read(grandchild, "c", 1)
	s.Answered(c.Call, 0)
	s.Resolve(local.Call, []*Lane{child}, Actual)
	s.Answered(b.Call, 0)
	s.want("start run 1", "send call 2", "send call 3 speculatively", "send call 4 speculatively")
	s.Answered(a.Call, 0)
	s.want("settle call 2", "confirm call 3", "settle call 3", "confirm call 4", "settle call 4",
		"discard run 1 call 1", "abandon call 1", "start run 2")
}

// TestLocalWithEffects checks that nobody runs ahead of side effects, or of
// ordered calls, on a guess at what comes after them.
func TestLocalWithEffects(t *testing.T) {
	for _, spec := range []CallSpec{{Op: "w", Effect: Immediate}, {Op: "o", Ordered: true}} {
		s := play(t, replayable)
		child := s.Fork(s.lane(1))
		u := s.Call(s.lane(1), &CallSpec{Op: "local", Local: true, Lanes: []string{child.ID()}, Predictions: 1})
		w := s.Call(child, &spec)
		if spec.Ordered {
			s.Answered(w.Call, Actual)
			s.want("start run 1", "send call 2", "resume run 1 call 2 answer -1", "settle call 2")
			s.Resolve(u.Call, []*Lane{child}, 0)
			s.want("discard run 1 call 1", "abandon call 1", "start run 2")
		} else { // at once
			s.want("start run 1", "discard run 1 call 1", "abandon call 1", "abandon call 2", "start run 2")
		}
	}
}

// TestJoin checks that who waits for a goroutine stands on its guesses and
// comes after its effects and its ordered calls.
func TestJoin(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	a := s.read(child, "a", 1)
	s.Join(s.lane(1), child)
	w := s.write(s.lane(1), "w", Immediate, 0)
	s.want("start run 1", "send call 1", "hold call 2: it has side effects and its caller is speculative")
	if !s.lane(1).Speculative() || !s.run(1).Speculative() || s.lane(1).Run() != s.run(1) || child.ID() != "/1" {
		t.Error("the lane is not what it is")
	}
	s.Answered(a.Call, 0)
	s.want("settle call 1", "send call 2")
	s.Answered(w.Call, Actual)

	child = s.Fork(s.lane(1))
	v := s.write(child, "v", Immediate, 1)
	o := s.Call(child, &CallSpec{Op: "o", Ordered: true, Predictions: 1})
	s.Join(s.lane(1), child)
	s.Call(s.lane(1), &CallSpec{Op: "p", Ordered: true})
	s.want("resume run 1 call 2 answer -1", "settle call 2", "send call 3",
		"hold call 4: an earlier call with side effects is not answered",
		"hold call 5: an earlier call with side effects is not answered")
	s.Answered(v.Call, 0)
	s.want("settle call 3", "send call 4", "hold call 5: an earlier ordered call is not answered")
	s.Answered(o.Call, 0)
	s.want("settle call 4", "send call 5")
}

// TestOrdered checks that a replay does not adopt an ordered call that was
// executed without waiting for one that precedes it now.
func TestOrdered(t *testing.T) {
	s := play(t, replayable)
	ordered := func(l *Lane, op string) *Use { return s.Call(l, &CallSpec{Op: op, Ordered: true}) }
	a := s.read(s.lane(1), "a", 1)
	s.Answered(ordered(s.lane(1), "second").Call, Actual)
	s.Answered(a.Call, Actual)
	s.skip()
	s.read(s.lane(2), "a", 0)
	first := ordered(s.lane(2), "first")
	s.Answered(first.Call, Actual)
	s.answers(ordered(s.lane(2), "second"), Waiting)
	s.want("adopt run 2 call 1", "settle call 1", "send call 3", "resume run 2 call 3 answer -1", "settle call 3",
		"send call 4")
}

// TestOnce checks a call that is one in the whole task, made at several places.
func TestOnce(t *testing.T) {
	once := &CallSpec{Op: "act", Effect: Immediate, NoPrediction: true, NoSpeculation: true, Once: true}
	t.Run("after itself", func(t *testing.T) {
		s := play(t, replayable)
		a := s.read(s.lane(1), "a", 1)
		first := s.Call(s.lane(1), once)
		second := s.Call(s.lane(1), once) // of a goroutine that shares the lane
		s.Drop(first, false)
		s.Answered(a.Call, 0)
		s.want("start run 1", "send call 1", "hold call 2: it has side effects and its caller is speculative",
			"adopt run 1 call 2",
			"settle call 1", "send call 2")
		s.Answered(second.Call, Actual)
		s.want("resume run 1 call 2 answer -1", "settle call 2")
	})
	t.Run("after what only a wrong run did", func(t *testing.T) {
		s := play(t, replayable)
		other := s.Fork(s.lane(1))
		b := s.read(s.lane(1), "b", 2)
		s.write(s.lane(1), "w", Staged, 0)
		s.Call(s.lane(1), once)
		s.want("start run 1", "start run 2", "send call 1", "send call 2 speculatively",
			"hold call 3: an earlier call with side effects is not answered")
		s.read(s.lane(2), "b", 2)
		s.Call(s.lane(2), once)
		s.want("adopt run 2 call 1", "adopt run 2 call 3")
		s.Answered(b.Call, 1)
		s.want("discard run 1 call 1", "settle call 1", "send call 3")
		_ = other
	})
	t.Run("by whom it is missed", func(t *testing.T) {
		s := play(t, replayable)
		s.Answered(s.Call(s.Fork(s.lane(1)), once).Call, Actual)
		a := s.read(s.lane(1), "a", 1)
		s.Answered(a.Call, Actual)
		s.skip()
		s.Fork(s.lane(2)) // the goroutine that made the call has not come there yet
		s.Answered(s.write(s.Fork(s.lane(2)), "w", Immediate, 0).Call, Actual)
		s.want("send call 3", "resume run 2 call 3 answer -1", "settle call 3")
		s.Call(s.Fork(s.lane(2)), once)
		s.Call(s.Fork(s.lane(2)), once)
		s.read(s.lane(2), "a", 0)
		s.returned(s.run(2))
		s.want("adopt run 2 call 1", "adopt run 2 call 1", "adopt run 2 call 2", "settle call 2", "final run 2",
			"commit run 2")
	})
}

// TestMustPin checks that goroutines that share a lane and whose calls overlap
// make calls with side effects only behind a barrier.
func TestMustPin(t *testing.T) {
	w := &CallSpec{Op: "w", Effect: Immediate}
	s := play(t, replayable)
	l := s.lane(1)
	if s.MustPin(l, w) {
		t.Error("pinned for nothing")
	}
	a := s.read(l, "a", 1)
	b := s.read(l, "a", 1)
	if !s.MustPin(l, w) || s.MustPin(l, &CallSpec{Op: "a"}) ||
		s.MustPin(l, &CallSpec{Op: "act", Effect: Immediate, Once: true}) {
		t.Error("equal calls overlap: pin before effects, save those that have one place")
	}
	if s.Barrier(l) {
		t.Error("a speculative run passes")
	}
	s.Answered(a.Call, 0)
	s.Answered(b.Call, 0)
	if s.MustPin(l, w) {
		t.Error("a confirmed run is to be pinned again")
	}
}

// TestWhatHappenedNeedsNoPin checks that a goroutine that shares a lane repeats a call that took
// effect without waiting for what the others guess: a call of theirs may wait for that.
func TestWhatHappenedNeedsNoPin(t *testing.T) {
	s := play(t, replayable)
	first := s.write(s.lane(1), "b1", Staged, 1)
	guess := s.write(s.lane(1), "b2", Staged, 2) // run 2 takes the other prediction
	a := s.write(s.lane(2), "a", Staged, 0)      // another goroutine is the first there
	s.write(s.lane(2), "b1", Staged, 1)
	s.Answered(first.Call, 0)
	s.skip()
	if !a.Call.Confirmed() || guess.Call.Confirmed() {
		t.Fatal("nothing waits")
	}
	pins := s.MustPin(s.lane(1), &CallSpec{Op: "a", Effect: Staged})
	if pins || !s.MustPin(s.lane(1), &CallSpec{Op: "c", Effect: Staged}) {
		t.Errorf("pins %v", pins)
	}
	if s.write(s.lane(1), "a", Staged, 0); !guess.Call.Confirmed() {
		t.Error("what came early goes on waiting")
	}
}

// TestDropped checks what becomes of a call that the code gave up.
func TestDropped(t *testing.T) {
	t.Run("held", func(t *testing.T) { // what comes after it does not wait for it
		s := play(t, replayable)
		a := s.read(s.lane(1), "a", 1)
		w := s.write(s.lane(1), "w", Immediate, 0)
		b := s.read(s.lane(1), "b", 0)
		s.want("start run 1", "send call 1", "hold call 2: it has side effects and its caller is speculative",
			"hold call 3: an earlier call with side effects is not answered")
		s.Drop(w, false)
		s.Drop(w, false)
		s.want("abandon call 2", "send call 3 speculatively")
		s.Answered(b.Call, Actual)
		s.Answered(a.Call, 0)
		s.returned(s.run(1))
		s.want("resume run 1 call 3 answer -1", "settle call 1", "confirm call 3", "settle call 3", "final run 1",
			"commit run 1")
	})
	t.Run("in flight", func(t *testing.T) { // it happened, and the run made it
		s := play(t, replayable)
		s.read(s.Fork(s.lane(1)), "a", 2)
		w := s.write(s.lane(1), "w", Immediate, 0)
		s.write(s.lane(2), "w", Immediate, 0)
		s.Drop(w, false)
		v := s.write(s.lane(1), "v", Immediate, 0)
		s.want("start run 1", "start run 2", "send call 1", "hold call 2: it has side effects and its caller is speculative",
			"adopt run 2 call 2", "send call 2", "hold call 3: an earlier call with side effects is not answered")
		s.Answered(w.Call, Actual)
		s.want("resume run 2 call 2 answer -1", "settle call 2",
			"hold call 3: it has side effects and its caller is speculative")
		s.Answered(s.run(1).uses[0].Call, 0)
		s.want("discard run 2 call 1", "settle call 1", "send call 3")
		s.Answered(v.Call, Actual)
		s.returned(s.run(1))
		s.want("resume run 1 call 3 answer -1", "settle call 3", "final run 1", "commit run 1")
	})
	t.Run("beside a wrong guess", func(t *testing.T) { // of another goroutine
		s := play(t, replayable)
		other := s.Fork(s.lane(1))
		a := s.read(other, "a", 1)
		s.Drop(s.read(s.lane(1), "c", 0), false)
		s.Answered(s.write(s.Fork(s.lane(1)), "w", Immediate, 0).Call, Actual)
		s.Answered(a.Call, Actual)
		s.skip()
		other = s.Fork(s.lane(2))
		s.Answered(s.read(s.lane(2), "c", 0).Call, Actual)
		s.write(s.Fork(s.lane(2)), "w", Immediate, 0)
		s.read(other, "a", 0)
		s.returned(s.run(2))
		s.want("adopt run 2 call 2", "resume run 2 call 2 answer -1", "settle call 2", "adopt run 2 call 3",
			"settle call 3", "adopt run 2 call 1", "settle call 1", "final run 2", "commit run 2")
	})
	t.Run("beside what took effect", func(t *testing.T) { // by a goroutine that did not wait, or did
		for _, joins := range []bool{false, true} {
			s := play(t, replayable)
			child := s.Fork(s.lane(1))
			s.Drop(s.read(child, "c", 0), false)
			if joins {
				s.Join(s.lane(1), child)
			}
			s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
			a := s.read(s.Fork(s.lane(1)), "a", 1)
			s.Answered(a.Call, Actual)
			s.skip()
			s.Answered(s.read(s.Fork(s.lane(2)), "c", 0).Call, Actual)
			s.write(s.lane(2), "w", Immediate, 0)
			s.skip()
			s.returned(s.run(2))
			if acts := s.Take(); (acts[0].Kind == Diverge) != joins {
				t.Errorf("joined %v: %s", joins, describe(&acts[0]))
			}
		}
	})
	t.Run("and made after all", func(t *testing.T) { // too late: what followed has happened
		s := play(t, replayable)
		other := s.Fork(s.lane(1))
		c := s.read(s.lane(1), "c", 0)
		s.Drop(c, false)
		s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
		a := s.read(other, "a", 1)
		s.Answered(a.Call, Actual)
		s.want("start run 1", "send call 1", "abandon call 1", "send call 2", "resume run 1 call 2 answer -1",
			"settle call 2",
			"send call 3", "discard run 1 call 3", "start run 2")
		other = s.Fork(s.lane(2))
		s.Answered(s.read(s.lane(2), "c", 0).Call, Actual)
		s.write(s.lane(2), "w", Immediate, 0)
		s.read(other, "a", 0)
		s.returned(s.run(2))
		s.want("send call 4", "resume run 2 call 4 answer -1", "settle call 4", "adopt run 2 call 2", "adopt run 2 call 3",
			"settle call 3",
			"diverge run 2 call 4", "discard run 2")
	})
}

// TestEnds checks that nothing is pending after the end, whatever it is.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(s *scenario){
		"refuted": func(s *scenario) { s.RefuteCaller(); s.RefuteCaller() },
		"ended":   func(s *scenario) { s.End(); s.End() },
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, Config{Replayable: true, CallerOpen: true})
			a := s.read(s.lane(1), "a", 2)
			b := s.read(s.lane(1), "b", 0)
			first := s.run(1)
			s.skip()
			end(s)
			s.want("discard run 2", "discard run 1", "abandon call 1", "abandon call 2")
			if !s.Over() || !first.Discarded() || first.State() != Incorrect {
				t.Error("the task goes on")
			}
			s.Answered(a.Call, 0)
			s.Predicted(b.Call)
			s.Refused(b.Call, "late")
			s.Drop(b, false)
			s.Resolve(a.Call, nil, 0)
			s.ConfirmCaller()
			s.returned(first)
			s.Expire(true)
			s.want()
		})
	}
}

// TestFreeze checks that a frozen task takes no predictions, and reports whether
// it can end by itself.
func TestFreeze(t *testing.T) {
	s := play(t, replayable)
	if !s.Freeze() {
		t.Error("run 1 stands on no guess")
	}
	u := s.read(s.lane(1), "a", 1)
	s.Predicted(u.Call)
	s.answers(u, Waiting)

	s = play(t, replayable)
	u = s.read(s.lane(1), "a", 1)
	if s.Freeze() {
		t.Error("run 1 stands on a guess")
	}
	s.Predicted(u.Call)
	s.want("start run 1", "send call 1")
}

// TestGrant checks that a caller's budget bounds the replays.
func TestGrant(t *testing.T) {
	for granted, want := range map[int]int{0: 64, 3: 3, 100: 64, -1: 0} {
		tree := New(Config{Replayable: true, Limits: ample})
		tree.Grant(granted)
		if tree.cfg.Limits.Replays != want {
			t.Errorf("granted %d: %d replays", granted, tree.cfg.Limits.Replays)
		}
		l := tree.Start().Main()
		if u := tree.Call(l, &CallSpec{Op: "a", Predictions: 1}); (u.Answer() == 0) != (want > 0) ||
			tree.Budget() != max(0, want-1) || !tree.Replayable() {
			t.Errorf("granted %d: answer %d, budget %d", granted, u.Answer(), tree.Budget())
		}
	}
}

// TestGuessBeforeWhatHappensElsewhere: goroutines share a lane. One goes on with a guess at its
// write, another one waits at a barrier before its own, which then happens in a run beside this
// one. The first write cannot happen before that one, for which the run would have to pass the
// barrier, which waits for the guess. So the run gives way to one that makes what has happened at
// once.
func TestGuessBeforeWhatHappensElsewhere(t *testing.T) {
	s := play(t, replayable)
	x := s.read(s.lane(1), "x", 2)
	guessed := s.write(s.lane(1), "guessed", Immediate, 1)
	s.answers(guessed, 0)
	if s.Barrier(s.lane(1)) {
		t.Fatal("the run passes a barrier")
	}
	w := s.write(s.lane(2), "w", Immediate, 0) // before the read, in another order
	s.skip()
	if !w.Call.Confirmed() || !x.Run.Discarded() {
		t.Fatalf("the write happens: %v; the run that waits for itself gives way: %v", w.Call.Confirmed(), x.Run.Discarded())
	}
	s.Answered(w.Call, Actual)
	s.Answered(x.Call, 0)
	s.skip()
	l := s.runs[len(s.runs)-1].Main()
	s.read(l, "x", 0)
	u := s.write(l, "guessed", Immediate, 1)
	s.answers(u, Waiting) // until the other one is made
	if s.MustPin(l, &CallSpec{Op: "w", Effect: Immediate}) {
		t.Error("what has happened needs a barrier")
	}
	if again := s.write(l, "w", Immediate, 0); again.Call != w.Call || !u.Call.Confirmed() {
		t.Errorf("it is made anew, as call %d, or the other write still waits", again.Call.ID)
	}
	s.skip()
}
