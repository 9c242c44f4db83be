package spectree

import "testing"

// TestReadBesideAGuess checks that a read that is right by its own lane is found after effects that
// are from before it, but which its lane was not known to come after, unless its code may have come
// to it on a guess of the lane around that was wrong.
func TestReadBesideAGuess(t *testing.T) {
	for _, tt := range []struct {
		name  string
		right bool // the guess
		again bool // another run makes the read as before, beside no wrong guess
		found bool
	}{
		{"the guess is right", true, false, true},
		{"the guess is wrong", false, false, false},
		{"the guess is wrong, and a right run reads the same", false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, replayable)
			child := s.Fork(s.lane(1))
			s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
			guess := s.read(s.lane(1), "guess", 1)
			r := s.read(child, "r", 0) // the code may know of the guess
			s.Answered(r.Call, Actual)
			replays := s.answer(guess, tt.right, 1)
			if tt.again {
				child = s.Fork(s.lane(replays))
				s.write(s.lane(replays), "w", Immediate, 0)
				s.read(s.lane(replays), "guess", 0)
				if u := s.read(child, "r", 0); u.Call != r.Call {
					t.Errorf("after the same effects the reading is call %d", u.Call.ID)
				}
			}
			if tt.right || tt.again {
				replays = s.answer(s.read(s.lane(replays), "another guess", 1), false, replays)
			}
			s.write(s.lane(replays), "w", Immediate, 0)
			if u := s.read(s.Fork(s.lane(replays)), "r", 0); (u.Call == r.Call) != tt.found {
				t.Errorf("the reading after the writing is call %d", u.Call.ID)
			}
			s.skip()
		})
	}
}

// TestReadAfterOwnWrites checks that a read is not found after an effect of the lane's own that
// none who made it had, whatever they were told, unless something has happened that followed the
// read: goroutines share the lane, and it may be the one that wrote that reads.
func TestReadAfterOwnWrites(t *testing.T) {
	for _, followed := range []bool{false, true} {
		s := play(t, replayable)
		r := s.read(s.lane(1), "r", 0)
		s.Answered(r.Call, Actual)
		if followed {
			s.Answered(s.write(s.lane(1), "x", Immediate, 0).Call, Actual)
		}
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		w := s.write(s.lane(2), "w", Immediate, 0)
		u := s.read(s.lane(2), "r", 0)
		if (u.Call == r.Call) != followed {
			t.Errorf("followed by an effect %v: the reading after the writing is call %d", followed, u.Call.ID)
		}
		if s.skip(); followed {
			continue
		}
		s.Answered(w.Call, Actual)
		s.Answered(u.Call, Actual)
		s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
		s.write(s.lane(3), "w", Immediate, 0)
		if again := s.read(s.lane(3), "r", 0); again.Call != u.Call {
			t.Errorf("the next run reads by call %d, want %d", again.Call.ID, u.Call.ID)
		}
		s.skip()
	}
}

// TestReadBeforeAGuessCame checks that a read counts as right although another lane, which waited
// for an answer then, went on with a wrong guess after it: code that ends the read's context in a
// replay is late if something has taken effect that followed.
func TestReadBeforeAGuessCame(t *testing.T) {
	for _, before := range []bool{false, true} {
		s := play(t, replayable)
		guess, other := s.read(s.Fork(s.lane(1)), "guess", 0), s.Fork(s.lane(1))
		if before {
			s.Predicted(guess.Call)
		}
		s.Answered(s.read(s.lane(1), "r", 0).Call, Actual)
		s.Answered(s.write(other, "w", Immediate, 0).Call, Actual)
		if !before {
			s.Predicted(guess.Call)
		}
		s.Answered(guess.Call, Actual)
		if got := s.Late(s.lane(2), &CallSpec{Op: "r"}); got == before {
			t.Errorf("the guess came before the read: %v; the replay makes it: %v", before, got)
		}
		s.skip()
	}
}

// answer answers what the run guessed, and returns which run goes on.
func (s *scenario) answer(guess *Use, right bool, run int) int {
	if right {
		s.Answered(guess.Call, 0)
		return run
	}
	s.Answered(guess.Call, Actual)
	return run + 1
}

// TestReadBesideAnotherGuess checks that a run does not find what a run beside it read on another
// guess, as long as neither is known to be right.
func TestReadBesideAnotherGuess(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
	s.read(s.lane(1), "guess", 2)
	r := s.read(child, "r", 0)
	s.Answered(r.Call, Actual)
	s.write(s.lane(2), "w", Immediate, 0)
	s.read(s.lane(2), "guess", 2)
	if u := s.read(s.Fork(s.lane(2)), "r", 0); u.Call == r.Call {
		t.Errorf("the reading after the writing is call %d", u.Call.ID)
	}
	s.skip()
}

// TestSwappedAnswers checks that a run does not count as right that read anew, by another way than
// one that was right, before it had made what had happened there: goroutines that share its lane
// swapped equal calls, the answers of which count as equal and are not. A goroutine that comes to
// its reads late reads them, too.
func TestSwappedAnswers(t *testing.T) {
	for _, swapped := range []bool{false, true} {
		s := play(t, replayable)
		l := s.lane(1)
		for range 2 { // each goroutine makes one, and goes on with a guess that counts as equal
			s.Answered(s.read(l, "same", 1).Call, 0)
		}
		s.Answered(s.read(l, "one way", 0).Call, Actual)
		s.Answered(s.write(l, "w", Immediate, 0).Call, Actual)
		s.Answered(s.read(l, "guess", 1).Call, Actual)
		l = s.lane(2)
		s.read(l, "same", 1)
		s.read(l, "same", 1)
		s.Answered(s.read(l, "other way", 0).Call, Actual)
		if !swapped {
			s.read(l, "one way", 0)
		}
		s.write(l, "w", Immediate, 0)
		s.read(l, "guess", 1)
		s.skip()
		s.returned(s.run(2))
		acts := s.Take()
		if diverges := acts[0].Kind == Diverge; diverges != swapped {
			t.Errorf("swapped %v: %s", swapped, describe(&acts[0]))
		}
	}
}

// TestNewReadBeforeWhatHappened checks that a lane which makes a read anew waits with it until it
// has made what had happened there: it may be what the same goroutine is about to do, by another
// way, since it has swapped equal calls with another one. That a goroutine gave a call up changes
// nothing: it may have swapped that, too.
func TestNewReadBeforeWhatHappened(t *testing.T) {
	for i := range 4 {
		swapped, gaveUp := i&1 > 0, i&2 > 0
		s := play(t, replayable)
		leave := func(l *Lane) {
			if gaveUp {
				s.Skip(l, &CallSpec{Op: "left"})
			}
		}
		l := s.lane(1)
		leave(l)
		s.Answered(s.write(l, "w", Immediate, 0).Call, Actual)
		s.Answered(s.read(l, "guess", 1).Call, Actual)
		l = s.lane(2)
		leave(l)
		s.skip()
		if u := s.read(l, "anew", 1); u.Answer() != Waiting {
			t.Errorf("swapped %v, gave up %v: it goes on with answer %d", swapped, gaveUp, u.Answer())
		}
		s.want("hold call 3: another call that took effect has yet to be made")
		if swapped {
			s.Expire(true)
			s.want("diverge run 2 call 1", "discard run 2", "abandon call 3", "abandon call 2")
			continue
		}
		s.write(l, "w", Immediate, 0)
		s.want("adopt run 2 call 1", "send call 3")
	}
}

// TestLateAnswersLeadNowhere: a replay gets an answer that the right run had gone on without, and
// which comes from after what followed. That another goroutine of it had an effect before that does
// not show that its way is right, so the answer is too late for those after it as well.
func TestLateAnswersLeadNowhere(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	s.Skip(child, &CallSpec{Op: "left"})
	s.Answered(s.write(child, "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(child, "guess", 1).Call, Actual)
	child = s.Fork(s.lane(2))
	left := s.read(child, "left", 0) // its context has not ended in time
	x := s.write(s.lane(2), "x", Immediate, 0)
	s.Answered(x.Call, Actual)
	s.Answered(left.Call, Actual)
	s.write(child, "w", Immediate, 0)
	s.Answered(s.read(child, "another guess", 1).Call, Actual)
	s.skip()
	child = s.Fork(s.lane(3))
	if u := s.read(child, "left", 0); u.Call != left.Call {
		t.Errorf("the run makes call %d, want %d", u.Call.ID, left.Call.ID)
	}
	s.write(s.lane(3), "x", Immediate, 0)
	s.write(child, "w", Immediate, 0)
	if u := s.write(child, "next", Immediate, 0); u.Call.send != unsent {
		t.Error("a run on another path has an effect")
	}
	s.skip()
}

// TestReadBeforeWhatWasLeftOut: goroutines share a lane. One leaves a call out and writes, another
// one reads, in one order and then in the other. The read that led to an effect is found all the
// same.
func TestReadBeforeWhatWasLeftOut(t *testing.T) {
	s := play(t, replayable)
	s.Skip(s.lane(1), &CallSpec{Op: "left"})
	s.Answered(s.write(s.lane(1), "write", Immediate, 0).Call, Actual)
	r := s.read(s.lane(1), "r", 0)
	s.Answered(r.Call, Actual)
	s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	if u := s.read(s.lane(2), "r", 0); u.Call != r.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, r.Call.ID)
	}
	s.skip()
}

// TestReadBesideAnEffect: what a lane reads once it has started another one did not lead to the
// effect that this one has. Of two reads in its place a replay makes the one that it asks for.
func TestReadBesideAnEffect(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	s.Drop(s.ordered(s.lane(1), "x", 0), false)
	first := s.ordered(s.lane(1), "r", 0)
	s.Answered(first.Call, Actual)
	s.Answered(s.write(child, "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)

	s.Fork(s.lane(2))
	s.Answered(s.ordered(s.lane(2), "x", 0).Call, Actual)
	second := s.ordered(s.lane(2), "r", 1)
	if second.Call == first.Call {
		t.Fatal("what was sent before the answer to x counts as made after it")
	}
	s.Answered(second.Call, Actual)

	s.Fork(s.lane(3))
	s.ordered(s.lane(3), "x", 0)
	if u := s.ordered(s.lane(3), "r", 0); u.Call != second.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, second.Call.ID)
	}
	s.skip()
}

// TestReadBesideAnEffectAfterOwnWrites: what a lane read before the one that started it had an
// effect is not what it reads after it wrote, in a run in which that one has yet to have the
// effect.
func TestReadBesideAnEffectAfterOwnWrites(t *testing.T) {
	s := play(t, replayable)
	first := s.read(s.Fork(s.lane(1)), "r", 0)
	s.Answered(first.Call, Actual)
	s.Answered(s.write(s.lane(1), "x", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)

	child := s.Fork(s.lane(2))
	s.write(s.lane(2), "x", Immediate, 0)
	s.Answered(s.write(child, "w", Immediate, 0).Call, Actual)
	second := s.read(child, "r", 0)
	if second.Call == first.Call {
		t.Fatal("what was read before the writing counts as read after it")
	}
	s.Answered(second.Call, Actual)
	s.read(s.lane(2), "guess", 0)
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)

	child = s.Fork(s.lane(3))
	s.write(child, "w", Immediate, 0)
	if u := s.read(child, "r", 0); u.Call != second.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, second.Call.ID)
	}
	s.skip()
}

// TestCallWithEffectsIsNotAstray: whatever a wrong guess beside it may have told its code, what was
// asked before something took effect is what the run that turns out right asks, too. A replay whose
// context has ended does not leave it out.
func TestCallWithEffectsIsNotAstray(t *testing.T) {
	s := play(t, replayable)
	guess := s.read(s.Fork(s.lane(1)), "guess", 1)
	s.Answered(s.read(s.lane(1), "r", 0).Call, Actual)
	s.Answered(s.write(s.Fork(s.lane(1)), "w", Immediate, 0).Call, Actual)
	s.Answered(guess.Call, Actual)
	s.Fork(s.lane(2))
	if !s.Late(s.lane(2), &CallSpec{Op: "r"}) {
		t.Error("it leaves the call out")
	}
	s.skip()
}

// TestCallLeadsOnce: of two lanes one makes, under the other one's name, the read that led to an
// effect. The other one then reads for itself.
func TestCallLeadsOnce(t *testing.T) {
	s := play(t, replayable)
	s.Fork(s.lane(1))
	reader := s.Fork(s.lane(1))
	s.Answered(s.ordered(reader, "y", 0).Call, Actual)
	s.Answered(s.ordered(reader, "r", 0).Call, Actual) // in its place comes another one now
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)

	s.Fork(s.lane(2))
	reader = s.Fork(s.lane(2))
	s.Answered(s.ordered(reader, "x", 0).Call, Actual)
	r := s.ordered(reader, "r", 0)
	s.Answered(r.Call, Actual)
	s.Answered(s.write(reader, "w", Immediate, 0).Call, Actual)
	s.Shared(s.lane(2))
	s.read(s.lane(2), "guess", 0)
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)

	one, other := s.Fork(s.lane(3)), s.Fork(s.lane(3))
	s.ordered(other, "x", 0)
	s.ordered(one, "x", 0)
	if u := s.ordered(one, "r", 0); u.Call != r.Call {
		t.Fatalf("the first lane reads by call %d, want %d", u.Call.ID, r.Call.ID)
	}
	if u := s.ordered(other, "r", 0); u.Call == r.Call {
		t.Error("two lanes have one reading")
	}
	s.skip()
}

// TestEffectBeforeWhatFollowed: a lane of a run that was right went on without a read, and an
// effect of the lane around it followed: its code may have made that. A replay gets the read's
// answer, and comes to another call. That waits for the effect, which may be what its code makes
// next, and takes no prediction: else the two would be swapped.
func TestEffectBeforeWhatFollowed(t *testing.T) {
	for _, effect := range []Effect{None, Immediate} {
		s := play(t, replayable)
		s.Skip(s.Fork(s.lane(1)), &CallSpec{Op: "r"})
		s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		l := s.Fork(s.lane(2))
		s.Answered(s.read(l, "r", 0).Call, Actual)
		x := s.write(l, "x", effect, 1)
		s.answers(x, Waiting)
		if x.Call.send != unsent {
			t.Errorf("effect %d: a call is made that may come before an effect that has happened", effect)
		}
		s.write(s.lane(2), "w", Immediate, 0)
		s.skip()
		if x.Call.send != sentPlain {
			t.Errorf("effect %d: it waits although the run has made what had happened", effect)
		}
	}
}

// TestEffectOnTheWayWithARead checks the same of a run that has gone on with a prediction of such
// an effect before the other one happens: it gives way.
func TestEffectOnTheWayWithARead(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	s.Skip(s.Fork(s.lane(1)), &CallSpec{Op: "r"})
	w := s.write(s.lane(1), "w", Staged, 2)
	s.skip()
	second := s.run(2)
	l := s.Fork(second.Main())
	s.Answered(s.read(l, "r", 0).Call, Actual)
	x := s.write(l, "x", Staged, 1)
	s.answers(x, 0)
	s.write(second.Main(), "w", Staged, 0)
	s.skip()
	s.ConfirmCaller()
	s.skip()
	if !w.Call.irrevocable() || !second.Discarded() {
		t.Errorf("the effect happens %v, the run that has another one before it is discarded %v", w.Call.irrevocable(),
			second.Discarded())
	}
}

// TestAbandonedCallLeadsNowhere: a replay makes anew what an earlier run made on its way to what
// has happened, and a later one gave up; the next replay finds what that one made.
func TestAbandonedCallLeadsNowhere(t *testing.T) {
	s := play(t, replayable)
	a := s.ordered(s.Fork(s.lane(1)), "a", 0)
	w := s.write(s.lane(1), "w", Immediate, 0)
	s.Predicted(a.Call)
	s.Withdraw(a.Call, 0)
	child := s.Fork(s.lane(2))
	s.write(s.lane(2), "w", Immediate, 0)
	s.Drop(s.ordered(child, "a", 0), false)
	s.Answered(w.Call, Actual)
	s.Answered(s.read(s.lane(2), "guess", 1).Call, Actual)
	s.record.twins = true // as two variants of another call have it
	again := s.ordered(s.Fork(s.lane(3)), "a", 0)
	if again.Call == a.Call {
		t.Fatal("a replay makes a call that was abandoned")
	}
	s.Answered(again.Call, Actual)
	s.write(s.lane(3), "w", Immediate, 0)
	s.read(s.lane(3), "guess", 0)
	s.Answered(s.read(s.lane(3), "another guess", 1).Call, Actual)
	if u := s.ordered(s.Fork(s.lane(4)), "a", 0); u.Call != again.Call {
		t.Errorf("the next replay makes call %d, want %d", u.Call.ID, again.Call.ID)
	}
	s.skip()
}
