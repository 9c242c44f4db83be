package spectree

import "testing"

// TestRelatives checks that a call with effects waits for what the lanes guess that its
// lane forked and has not waited for, and for what those guess that it comes from.
func TestRelatives(t *testing.T) {
	for name, guesses := range map[string]func(s *scenario, child *Lane) (guess, maker *Lane){
		"of a child":      func(s *scenario, child *Lane) (_, _ *Lane) { return child, s.lane(1) },
		"of a grandchild": func(s *scenario, child *Lane) (_, _ *Lane) { return s.Fork(child), s.lane(1) },
		"of the parent":   func(s *scenario, child *Lane) (_, _ *Lane) { return s.lane(1), child },
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, replayable)
			guess, maker := guesses(s, s.Fork(s.lane(1)))
			a := s.read(guess, "a", 1)
			w := s.write(maker, "w", Immediate, 0)
			s.want("start run 1", "send call 1", "hold call 2: it has side effects and its caller is speculative")
			if !w.Overtaken() || w.Answer() != Waiting {
				t.Error("it does not wait")
			}
			s.read(s.Fork(maker), "b", 0) // comes after an effect that may be wrong, or is made beside it
			s.skip()
			s.Answered(a.Call, 0)
			s.want("settle call 1", "send call 2", "send call 3")
			if w.Overtaken() {
				t.Error("it still waits")
			}
		})
	}
}

// TestStrangers checks that it does not wait for what other lanes guess.
func TestStrangers(t *testing.T) {
	s := play(t, replayable)
	s.read(s.Fork(s.lane(1)), "a", 1)
	w := s.write(s.Fork(s.lane(1)), "w", Immediate, 0)
	s.want("start run 1", "send call 1", "send call 2")
	if w.Overtaken() {
		t.Error("it waits")
	}
}

// TestHurry checks that a run without the guess makes the call if that does not depend on it,
// and that both runs go on.
func TestHurry(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.Fork(s.lane(1)), "a", 1)
	w := s.write(s.lane(1), "w", Immediate, 0)
	s.skip()
	s.Hurry(w)
	s.want("start run 2 call 1")
	s.Fork(s.lane(2))
	s.write(s.lane(2), "w", Immediate, 0)
	s.want("adopt run 2 call 2", "send call 2")
	s.Answered(w.Call, Actual)
	s.want("resume run 1 call 2 answer -1", "resume run 2 call 2 answer -1", "settle call 2")
	s.Answered(a.Call, 0)
	s.want("discard run 2", "settle call 1")
}

// TestHurryOnce checks that who was told once that a call waits helps it on when it waits for
// nothing any more but what the run computes itself.
func TestHurryOnce(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	child := s.Fork(s.lane(1))
	s.Call(s.lane(1), &CallSpec{Op: "all", Local: true, Predictions: 1}) // it is not known of which lanes
	w := s.write(child, "w", Immediate, 0)
	s.Hurry(w)
	s.skip()
	s.Answered(a.Call, 0)
	s.want("discard run 2", "settle call 1", "discard run 1 call 2", "abandon call 2", "abandon call 3", "start run 3")
}

// TestOfLanesThatAreKnown checks that nobody goes on with a guess at a combination of results
// once one of the lanes that compute it makes a call with effects.
func TestOfLanesThatAreKnown(t *testing.T) {
	s := play(t, replayable)
	s.read(s.lane(1), "a", 1)
	child := s.Fork(s.lane(1))
	s.Call(s.lane(1), &CallSpec{Op: "all", Local: true, Lanes: []string{s.Fork(s.lane(1)).ID(), child.ID()},
		Predictions: 1})
	s.skip()
	s.write(child, "w", Immediate, 0)
	s.want("discard run 1 call 2", "abandon call 2", "abandon call 3", "start run 2")
}

// TestHurryOfACircle checks that who waits for what it computes itself is helped on.
func TestHurryOfACircle(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	s.Call(s.lane(1), &CallSpec{Op: "all", Local: true, Predictions: 1}) // it is not known of which lanes
	w := s.write(child, "w", Immediate, 0)
	s.want("start run 1", "hold call 2: it has side effects and its caller is speculative")
	s.Hurry(w)
	s.want("discard run 1 call 1", "abandon call 1", "abandon call 2", "start run 2")
}

// TestHurryLane checks that a lane passes a barrier although a guess of another one is open, once
// it waited for a while: it comes there in a run without that guess. The guesses that the lane
// itself stands on it waits for.
func TestHurryLane(t *testing.T) {
	for _, effect := range []Effect{None, Immediate} {
		s := play(t, replayable)
		own := s.read(s.lane(1), "own", 1)
		at, other := s.Fork(s.lane(1)), s.Fork(s.lane(1))
		s.Answered(own.Call, 0)
		other.run.tree.Call(other, &CallSpec{Op: "lost", Effect: effect, Predictions: 1})
		s.skip()
		if s.Barrier(at) || !at.HeldUp() {
			t.Error("it is not held up")
		}
		s.HurryLane(at)
		s.want("start run 2 call 2")
		s.HurryLane(at)
		s.want()
		s.read(s.lane(2), "own", 1)
		at, other = s.Fork(s.lane(2)), s.Fork(s.lane(2))
		s.answers(s.Call(other, &CallSpec{Op: "lost", Effect: effect, Predictions: 1}), Waiting)
		if !s.Barrier(at) {
			t.Error("it waits")
		}
		s.want("adopt run 2 call 1", "adopt run 2 call 2", "discard run 1")
	}

	s := play(t, replayable)
	s.read(s.lane(1), "own", 1)
	at := s.Fork(s.lane(1))
	if s.Barrier(at) || at.WaitsForOthers() {
		t.Error("it does not wait for what it stands on")
	}

	s = play(t, replayable)
	own := s.read(s.lane(1), "own", 1)
	at = s.Fork(s.lane(1))
	s.read(s.Fork(s.lane(1)), "lost", 1)
	if s.Barrier(at) || at.HeldUp() || !at.WaitsForOthers() {
		t.Error("it does not wait for what it stands on, and for another lane")
	}
	if s.Answered(own.Call, 0); !at.HeldUp() {
		t.Error("it is not held up")
	}
}

// TestHurryLaneOfACaller checks that nobody is held up before its caller is known to be right.
func TestHurryLaneOfACaller(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	s.read(s.Fork(s.lane(1)), "lost", 1)
	at := s.Fork(s.lane(1))
	if s.Barrier(at) || at.HeldUp() {
		t.Error("it does not wait for the caller's word")
	}
	s.ConfirmCaller()
	if !at.HeldUp() {
		t.Error("it is not held up")
	}
}

// TestChildrenOfALaneThatWasWaitedFor: a goroutine that shares a lane may go on in it after others
// have waited for the lane and for one of its children.
func TestChildrenOfALaneThatWasWaitedFor(t *testing.T) {
	s := play(t, replayable)
	l := s.Fork(s.lane(1))
	child, other := s.Fork(l), s.Fork(l)
	s.read(other, "a", 1)
	s.Join(l, child)
	s.Join(s.lane(1), l)
	s.write(s.lane(1), "w", Staged, 0)
	s.skip()
	if u := s.write(l, "v", Staged, 0); u.dep.blocker() == nil {
		t.Error("it stands on no guess of the lane's other child")
	}
}

// TestUntangleWhatWorks: code of a goroutine gave a call up, perhaps on a guess at what it works
// for. The run does without that guess: the result stands on itself, though nobody has waited for
// the goroutine yet.
func TestUntangleWhatWorks(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	grandchild := s.Fork(child)
	s.answers(s.Call(s.lane(1), &CallSpec{Op: "result", Local: true, Lanes: []string{child.ID()}, Predictions: 1}), 0)
	left := s.read(grandchild, "left", 0)
	s.skip()
	s.Drop(left, false)
	s.want("discard run 1 call 1", "abandon call 1", "start run 2")
}

// TestReadBehindItsOwnResult: code that computes a guessed result gave a call up, and so stands on
// that guess, and hands that on by another result that was guessed right. A read that waits for
// this waits for itself, although none of its relatives shows it: it counts as overtaken, and the
// run goes on without the guesses.
func TestReadBehindItsOwnResult(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	worker := s.Fork(l)
	s.Call(l, &CallSpec{Op: "result", Local: true, Predictions: 1})
	inner := s.Fork(worker)
	deep := s.Fork(inner)
	s.Skip(deep, &CallSpec{Op: "left"})
	handed := s.Call(inner, &CallSpec{Op: "handed on", Local: true, Predictions: 1})
	s.Resolve(handed.Call, []*Lane{deep}, 0)
	s.Join(worker, inner)
	read := s.Call(s.Fork(worker), &CallSpec{Op: "read", NoSpeculation: true})
	s.skip()
	if !read.Overtaken() {
		t.Fatal("a read that waits for itself is not overtaken")
	}
	s.Hurry(read)
	s.want("discard run 1 call 1", "abandon call 1", "abandon call 2", "abandon call 3", "start run 2")
}

// TestAnsweredReadBesideAGuess: code that goes on since its context has ended stands on whatever is
// guessed in its run. What it reads then is soon answered, but may count only in a run that does
// without the guess, or is lost once the task's context ends: so it is not too late for that run.
func TestAnsweredReadBesideAGuess(t *testing.T) {
	s := play(t, replayable)
	guess := s.read(s.Fork(s.lane(1)), "guess", 1)
	s.Skip(s.lane(1), &CallSpec{Op: "left"})
	r := s.read(s.lane(1), "r", 0)
	s.Answered(r.Call, Actual)
	s.skip()
	if r.Call.Settled() || !r.Overtaken() {
		t.Fatalf("the answer counts: %v, and the read is overtaken: %v", r.Call.Settled(), r.Overtaken())
	}
	s.Hurry(r)
	if s.skip(); len(s.runs) != 2 {
		t.Fatalf("%d runs are alive", len(s.runs))
	}
	s.answers(s.read(s.Fork(s.lane(2)), "guess", 0), Waiting)
	s.Skip(s.lane(2), &CallSpec{Op: "left"})
	if u := s.read(s.lane(2), "r", 0); u.Call != r.Call || !r.Call.Settled() || r.Overtaken() {
		t.Errorf("run 2 reads by call %d, want %d, whose answer counts: %v", u.Call.ID, r.Call.ID, r.Call.Settled())
	}
	s.skip()
	if guess.Run.Discarded() {
		t.Error("the run that guesses is discarded")
	}
}

// TestResultOfALentContext: code that computes a guessed result goes on with a guess at a call that
// it made with the context of the code which waits for the result. Then the result stands on that,
// and an effect which stands on the result does not happen. What that code itself guesses after it
// went on is nothing to the result.
func TestResultOfALentContext(t *testing.T) {
	for _, lent := range []bool{true, false} {
		s := play(t, replayable)
		child := s.Fork(s.lane(1))
		result := s.Call(s.lane(1), &CallSpec{Op: "result", Local: true, Predictions: 1})
		var w, guess *Use
		if lent {
			w = s.write(s.lane(1), "w", Immediate, 0) // is waited for, so it is other code that reads on
		}
		guess = s.read(s.lane(1), "guess", 1)
		s.Resolve(result.Call, []*Lane{child}, 0)
		s.skip()
		if match, known := result.Call.Answered(); (known && match == 0) == lent {
			t.Errorf("lent: %v; the guess counts as right: %v", lent, known)
		}
		if lent && (w.Call.Confirmed() || !w.Run.Discarded()) {
			t.Error("the effect happens, or waits for what waits for it")
		}
		s.Answered(guess.Call, Actual)
		s.skip()
	}
}

// TestEffectBehindAnOuterGap: code whose context has ended may go on so because of anything that is
// guessed in its run. If the context is that of the lane around, what the lane itself does then
// waits for that as well.
func TestEffectBehindAnOuterGap(t *testing.T) {
	s := play(t, replayable)
	guess := s.read(s.Fork(s.lane(1)), "guess", 1)
	l := s.Fork(s.lane(1))
	s.Drop(s.write(s.lane(1), "left", Immediate, 0), false)
	w := s.write(l, "w", Immediate, 0)
	if w.Call.Confirmed() {
		t.Error("it takes effect on a guess")
	}
	s.Answered(guess.Call, 0)
	if s.skip(); !w.Call.Confirmed() {
		t.Error("it waits for more than the guess")
	}
}

// TestEndedIsGivenUp: a run that was right gave a call up. In a replay the call ends with the
// code's context, and that is its result: the code goes on as the first run's did, and may have
// effects.
func TestEndedIsGivenUp(t *testing.T) {
	s := play(t, replayable)
	way := func(run int, ends func(u *Use)) {
		child := s.Fork(s.lane(run))
		ends(s.read(child, "r", 0))
		s.Join(s.lane(run), child)
	}
	way(1, func(u *Use) { s.Drop(u, false) })
	s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	s.skip()
	way(2, func(u *Use) {
		s.Ended(u.Call)
		s.Answered(u.Call, Actual)
	})
	s.write(s.lane(2), "w", Immediate, 0)
	if u := s.write(s.lane(2), "next", Immediate, 0); u.Call.send == unsent {
		t.Errorf("it is held: %s", u.Call.hold)
	}
	s.skip()
}

// TestGuessedReadBesideAGuess: code went on since its context had ended, perhaps because of what
// another lane guesses, and then with a guess at a read that cannot be sent ahead. Plain code makes
// that read now. So does a run without the other lane's guess.
func TestGuessedReadBesideAGuess(t *testing.T) {
	s := play(t, replayable)
	never := s.read(s.Fork(s.lane(1)), "never", 1)
	l := s.Fork(s.lane(1))
	s.Skip(l, &CallSpec{Op: "left"})
	read := &CallSpec{Op: "read", Predictions: 1, NoSpeculation: true}
	u := s.Call(l, read)
	s.answers(u, 0)
	if s.skip(); !u.Overtaken() {
		t.Error("it does not wait")
	}
	s.Hurry(u)
	s.want("start run 2 call 1")
	s.answers(s.read(s.Fork(s.lane(2)), "never", 1), Waiting)
	l = s.Fork(s.lane(2))
	s.Skip(l, &CallSpec{Op: "left"})
	s.answers(s.Call(l, read), Waiting)
	s.want("adopt run 2 call 1", "adopt run 2 call 2", "send call 2")
	s.Answered(u.Call, 0)
	if s.skip(); u.Overtaken() {
		t.Error("it still waits")
	}
	s.Answered(never.Call, Actual)
	s.skip()
	s.run(2)
}

// TestReadInASharedLane: where goroutines share a lane, a read at which one of them guesses waits
// for another one's guess only while it is held.
func TestReadInASharedLane(t *testing.T) {
	for _, held := range []bool{false, true} {
		s := play(t, replayable)
		some := s.read(s.lane(1), "some", 0)
		s.read(s.lane(1), "never", 1)
		s.Answered(some.Call, Actual)
		u := s.Call(s.lane(1), &CallSpec{Op: "read", Predictions: 1, NoSpeculation: held})
		s.answers(u, 0)
		if s.skip(); u.Overtaken() != held {
			t.Errorf("held %v: overtaken %v", held, u.Overtaken())
		}
	}
}

// TestOwnGuesses: what a lane's code went on with are its guesses, and those of lanes that it
// waited for, or that these waited for. What these started besides goes on by itself.
func TestOwnGuesses(t *testing.T) {
	for _, joined := range []bool{false, true} {
		s := play(t, replayable)
		child := s.Fork(s.lane(1))
		grandchild := s.Fork(child)
		want := 2
		s.read(s.lane(1), "a", 1)
		s.read(child, "b", 1)
		s.read(grandchild, "c", 1)
		if joined {
			s.Join(child, grandchild)
			want = 3
		}
		s.Join(s.lane(1), child)
		if own := s.write(s.lane(1), "w", Immediate, 0).Own(); len(own) != want {
			t.Errorf("joined: %v: it has %d guesses of its own, want %d", joined, len(own), want)
		}
	}
}
