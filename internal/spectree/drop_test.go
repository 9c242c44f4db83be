package spectree

import "testing"

// TestGivesWay: a right run went on without calls, which it gave up or did not make at
// all, and what followed took effect. A replay goes on without them, too, as long as it
// has yet to make that.
func TestGivesWay(t *testing.T) {
	for _, test := range []struct {
		name  string
		leave func(s *scenario, l *Lane)
	}{
		{"a call that was given up", func(s *scenario, l *Lane) { s.Drop(s.read(l, "left", 0), false) }},
		{"a call that was not made", func(s *scenario, l *Lane) { s.Skip(l, &CallSpec{Op: "left"}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, replayable)
			left := &CallSpec{Op: "left"}
			l := s.lane(1)
			if s.GivesWay(l, left) {
				t.Error("a call gives way in the first run")
			}
			test.leave(s, l)
			w := s.write(l, "w", Immediate, 0)
			s.Answered(w.Call, Actual)
			guess := s.read(l, "guess", 1)
			s.Answered(guess.Call, Actual)
			s.Take()
			l = s.lane(2)
			if !s.GivesWay(l, left) {
				t.Error("the replay waits for what the first run went on without")
			}
			if s.GivesWay(l, &CallSpec{Op: "other"}) {
				t.Error("another call gives way")
			}
			test.leave(s, l)
			s.write(l, "w", Immediate, 0)
			if s.GivesWay(l, left) {
				t.Error("a call gives way although nothing that happened is yet to be made")
			}
		})
	}
}

// TestGivenUpBeforeAWrongRunEnds: a call that the right run gave up ends with the last wrong
// run that waits for it, though it was sent on no guess: what stands behind it goes on.
func TestGivenUpBeforeAWrongRunEnds(t *testing.T) {
	s := play(t, replayable)
	ordered := func(l *Lane, op string) *Use { return s.Call(l, &CallSpec{Op: op, Ordered: true}) }
	first := s.lane(1)
	left := ordered(s.Fork(first), "left")
	guess := s.read(first, "guess", 2)
	second := s.lane(2)
	lane := s.Fork(second)
	adopted := ordered(lane, "left")
	if adopted.Call != left.Call {
		t.Fatal("run 2 makes the call anew")
	}
	s.read(second, "guess", 2)
	s.Drop(adopted, false)
	s.skip()
	s.Answered(guess.Call, 1)
	s.want("discard run 1 call 2", "abandon call 1", "settle call 2")
	if next := ordered(lane, "next"); next.Call.send == unsent {
		t.Errorf("it is held: %s", next.Call.hold)
	}
}

// TestGivenUpOnAGuess: what code gives up in a run that stands on a guess goes on for as long,
// since a replay may wait for it. That does not hold for what others stand behind.
func TestGivenUpOnAGuess(t *testing.T) {
	for _, right := range []bool{false, true} {
		s := play(t, replayable)
		guess := s.read(s.lane(1), "guess", 1)
		a := s.read(s.lane(1), "a", 0)
		s.Drop(a, false)
		s.Drop(s.Call(s.lane(1), &CallSpec{Op: "ordered", Ordered: true}), false)
		s.want("start run 1", "send call 1", "send call 2 speculatively", "send call 3 speculatively", "abandon call 3")
		if right {
			s.Answered(guess.Call, 0)
			s.want("settle call 1", "abandon call 2")
			continue
		}
		s.Answered(guess.Call, Actual)
		s.read(s.lane(2), "guess", 0)
		if again := s.read(s.lane(2), "a", 0); again.Call != a.Call {
			t.Error("the replay makes the call anew")
		}
	}
}

// TestEffectOfCodeThatGaveUp: code whose context has ended may go on so because of anything that
// is guessed in its run: what it does then waits for that.
func TestEffectOfCodeThatGaveUp(t *testing.T) {
	for _, leave := range []func(s *scenario, l *Lane){
		func(s *scenario, l *Lane) { s.Drop(s.read(l, "left", 0), false) },
		func(s *scenario, l *Lane) { s.Skip(l, &CallSpec{Op: "left"}) },
	} {
		s := play(t, replayable)
		other, l := s.Fork(s.lane(1)), s.Fork(s.lane(1))
		guess := s.read(other, "guess", 1)
		leave(s, l)
		if w := s.write(l, "w", Immediate, 0); w.Call.Confirmed() {
			t.Error("it takes effect on a guess")
		}
		s.Answered(guess.Call, Actual)
		s.skip()
		if s.GivesWay(s.Fork(s.lane(2)), &CallSpec{Op: "left"}) {
			t.Error("the replay does as a run on a wrong guess did")
		}
	}
}

// TestOutrun: a lane that is about to give up what it waits for, since code ended its context, has
// the run do without a guess at what the lane computes. Its replay waits for the same call.
func TestOutrun(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	local := &CallSpec{Op: "local", Local: true, Lanes: []string{child.ID()}, Predictions: 1}
	a := s.read(child, "a", 0)
	if s.Outrun(child) {
		t.Error("nobody is ahead of the lane")
	}
	s.answers(s.Call(s.lane(1), local), 0)
	if s.Outrun(s.Fork(s.lane(1))) || s.Outrun(s.lane(1)) {
		t.Error("other lanes count as outrun")
	}
	if !s.Outrun(s.Fork(child)) {
		t.Error("a lane does not count as outrun that works for the one that is")
	}
	s.want("start run 1", "send call 1", "discard run 1 call 2", "abandon call 2", "start run 2")
	child = s.Fork(s.lane(2))
	if again := s.read(child, "a", 0); again.Call != a.Call {
		t.Error("the replay makes the call anew")
	}
	s.answers(s.Call(s.lane(2), local), Waiting)
	if s.Outrun(child) {
		t.Error("the replay is outrun as well")
	}
}

// TestManySkips: calls that are not made, one after the other, take no memory of their own,
// and each of them counts.
func TestManySkips(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	s.read(l, "guess", 1)
	other := s.Fork(l)
	const calls = 1000
	for range calls {
		s.Skip(l, &CallSpec{Op: "a"})
		s.Skip(other, &CallSpec{Op: "a"})
	}
	s.Skip(l, &CallSpec{Op: "b"})
	kept := 0
	for _, list := range s.skipped {
		kept += len(list)
	}
	if kept != 3 {
		t.Errorf("%d entries for three lists of calls", kept)
	}
	if g := l.gaps; g.at.op != "b" || g.prev.at.op != "a" || g.prev.prev != nil {
		t.Error("each call has a gap of its own")
	}
	for _, occ := range []int{0, 1, calls - 1} {
		at := key{lane: l.id, op: "a", occ: occ}
		if !s.wasSkipped(at) || !l.gaps.has(at) {
			t.Errorf("call %d was made", occ)
		}
	}
	if at := (key{lane: l.id, op: "a", occ: calls}); s.wasSkipped(at) || l.gaps.has(at) {
		t.Error("the next one was not")
	}
	if !l.gaps.within(l.gaps, nil) || l.gaps.within(other.gaps, nil) {
		t.Error("a lane went without its own gaps, and no other lane did")
	}
}

// leftBeforeEffect plays a run that gave a call with effects up in a lane, and went on to another
// effect: in the same lane, or in the one around it, whose context the code may use.
func leftBeforeEffect(t *testing.T, s *scenario, outer bool) {
	l := s.Fork(s.lane(1))
	guess := s.read(s.lane(1), "guess", 1)
	s.Drop(s.write(l, "left", Immediate, 0), false)
	if outer {
		l = s.lane(1)
	}
	w := s.write(l, "w", Immediate, 0)
	s.Answered(guess.Call, 0)
	s.Answered(w.Call, Actual)
	if !w.Call.irrevocable() {
		t.Fatal("what follows has not taken effect")
	}
	s.Answered(s.read(s.lane(1), "another guess", 1).Call, Actual)
	s.skip()
}

// TestEffectsGiveWay checks that a call with effects that a right run gave up is not made in a
// replay once another effect has followed it, also when that counts as one of the lane around: else
// they happen in the wrong order.
func TestEffectsGiveWay(t *testing.T) {
	for _, outer := range []bool{false, true} {
		s := play(t, replayable)
		leftBeforeEffect(t, s, outer)
		l := s.Fork(s.lane(2))
		if !s.GivesWay(l, &CallSpec{Op: "left", Effect: Immediate}) {
			t.Errorf("outer %v: the replay does not go on without what was given up", outer)
		}
		s.read(s.lane(2), "guess", 1)
		left := s.write(l, "left", Immediate, 1) // its context has not ended in time
		if left.Answer() != Waiting || left.Call.send != unsent {
			t.Errorf("outer %v: what was given up happens after what followed it", outer)
		}
		if outer {
			l = s.lane(2)
		}
		s.write(l, "w", Immediate, 0)
		if left.Call.send != unsent {
			t.Errorf("outer %v: it happens once the run has made what followed it", outer)
		}
		s.Expire(true)
		if !s.Over() {
			t.Errorf("outer %v: the run waits for ever", outer)
		}
	}
}

// TestOvertakenRuns checks that a run which made a call that a right one gave up is replaced when
// what followed there takes effect: it is on another path. Otherwise it would make that happen in
// the end.
func TestOvertakenRuns(t *testing.T) {
	s := play(t, replayable)
	first := s.lane(1)
	w0 := s.write(first, "w0", Immediate, 1)
	s.Drop(s.write(first, "left", Immediate, 0), false)
	w := s.write(first, "w", Immediate, 2) // held, as w0 is not answered
	second := s.lane(2)
	s.write(second, "w0", Immediate, 1)
	left := s.write(second, "left", Immediate, 1)
	s.skip()
	s.Answered(w0.Call, 0)
	s.Take()
	if !w.Call.irrevocable() || left.Call.send != unsent {
		t.Fatal("the run that gave up is not the one that is right")
	}
	if !left.Run.Discarded() || first.run.Discarded() {
		t.Errorf("the run that made what the right one had given up is discarded: %v", left.Run.Discarded())
	}
}

// TestRunsThatLeftOut checks the same the other way round: a run that did not make a call, or gave
// it up, which the right one made before an effect, is replaced when that takes effect before the
// run has made it. What it would read next comes from after the effect.
func TestRunsThatLeftOut(t *testing.T) {
	for _, made := range []bool{false, true} { // the run has made what takes effect
		s := play(t, replayable)
		l := s.lane(1)
		s.Answered(s.read(l, "r", 0).Call, Actual)
		guess := s.read(l, "guess", 1)
		w := s.write(l, "w", Staged, 2)
		second := s.run(2)
		if s.Late(second.Main(), &CallSpec{Op: "r"}) {
			t.Fatal("a call is made too late, and nothing has happened")
		}
		s.read(second.Main(), "guess", 0)
		if made {
			s.write(second.Main(), "w", Staged, 2)
		}
		s.Answered(guess.Call, 0)
		s.skip()
		if want := w.Call.useOf(second) == nil; !w.Call.irrevocable() || second.Discarded() != want {
			t.Errorf("made %v: the run that left a call out is discarded: %v", made, second.Discarded())
		}
		s.Answered(w.Call, 1)
		if r := s.runs[0]; !made && !s.Late(r.Main(), &CallSpec{Op: "r"}) {
			t.Error("its replay leaves the call out, too")
		}
	}
}

// TestTwoPathsAtOnce checks that of two runs that gave up different calls, and whose caller is
// found right now, only one has effects: neither need have made the call about which they disagree.
func TestTwoPathsAtOnce(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	s.Late(s.lane(1), &CallSpec{Op: "r"})
	w := s.write(s.Fork(s.lane(1)), "w", Staged, 2)
	second := s.lane(2)
	s.Answered(s.read(second, "r", 0).Call, Actual)
	other := s.write(second, "other", Staged, 0)
	s.skip()
	s.ConfirmCaller()
	if !w.Call.irrevocable() || other.Call.irrevocable() {
		t.Errorf("the effects of both happen: %v, %v", w.Call.irrevocable(), other.Call.irrevocable())
	}
	s.skip()
	if !second.run.Discarded() {
		t.Error("the other run goes on")
	}
}

// TestReadBeforeANewEffect checks that a run does not find a read after an effect that only it has
// made, unless what followed from the read has happened.
func TestReadBeforeANewEffect(t *testing.T) {
	for _, behind := range []bool{false, true} {
		s := play(t, replayable)
		l := s.lane(1)
		r := s.read(l, "r", 0)
		s.Answered(r.Call, Actual)
		s.Drop(s.read(l, "left", 0), false) // by a goroutine that shares the lane
		if behind {
			s.Answered(s.write(l, "followed", Immediate, 0).Call, Actual)
		}
		s.Answered(s.read(l, "guess", 1).Call, Actual)
		l = s.lane(2)
		s.write(l, "w", Staged, 1)
		if u := s.read(l, "r", 0); (u.Call == r.Call) != behind {
			t.Errorf("behind %v: the reading after the writing is call %d", behind, u.Call.ID)
		}
	}
}

// TestGuessOfWhatGaveUp checks that a guess at what a goroutine computes does not hold if that gave
// a call up: effects that follow would not know of it.
func TestGuessOfWhatGaveUp(t *testing.T) {
	for _, gaveUp := range []bool{false, true} {
		s := play(t, replayable)
		l := s.Fork(s.lane(1))
		r := s.run(1)
		result := s.Call(s.lane(1), &CallSpec{Op: "result", Local: true, Lanes: []string{l.ID()}})
		s.Predicted(result.Call)
		u := s.read(l, "r", 0)
		if gaveUp {
			s.Drop(u, false)
		} else {
			s.Answered(u.Call, Actual)
		}
		s.Resolve(result.Call, []*Lane{l}, 0)
		if r.Discarded() != gaveUp {
			t.Errorf("gave up %v: discarded %v", gaveUp, r.Discarded())
		}
	}
}

// TestStrayRunsHaveNoEffects checks that a run that got an answer too late, after what a right run
// went on to without it, has no effect of its own.
func TestStrayRunsHaveNoEffects(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	s.Drop(s.read(l, "left", 0), false)
	s.Answered(s.write(l, "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(l, "guess", 1).Call, Actual)
	l = s.lane(2)
	s.Answered(s.read(l, "left", 0).Call, Actual)
	s.write(l, "w", Immediate, 0)
	if u := s.write(l, "another", Immediate, 0); u.Call.send != unsent {
		t.Error("a run on another path has an effect")
	}
	s.skip()
	s.Expire(true)
	if !s.Over() {
		t.Error("the run waits for ever")
	}
}

// TestOnPathOfRead checks that a read is found again only by a run that went on without the same
// answers as those who made it, or it might be from before that run's own effects.
func TestOnPathOfRead(t *testing.T) {
	for _, test := range []struct {
		name      string
		first     bool // the first run makes the write
		second    bool // the replay does
		wantFound bool
	}{
		{"both write", true, true, true},
		{"neither", false, false, true},
		{"only the replay", false, true, false},
		{"only the first, which has happened", true, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, replayable)
			write := func(l *Lane, does bool) {
				if does {
					s.Answered(s.write(l, "w", Staged, 0).Call, Actual)
				} else {
					s.Skip(l, &CallSpec{Op: "w", Effect: Staged})
				}
			}
			l := s.lane(1)
			write(l, test.first)
			r := s.read(l, "r", 0)
			s.Answered(r.Call, Actual)
			s.Answered(s.read(l, "another guess", 1).Call, Actual)
			l = s.lane(2)
			write(l, test.second)
			if u := s.read(l, "r", 0); (u.Call == r.Call) != test.wantFound {
				t.Errorf("the read is call %d", u.Call.ID)
			}
		})
	}
}

// TestManyGaps: lanes that are joined one after the other began with what was given up before,
// which counts once.
func TestManyGaps(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	for range 64 {
		child := s.Fork(l)
		s.Drop(s.read(child, "left", 0), false)
		s.Join(l, child)
	}
	if l.gaps.has(key{op: "other"}) || !l.gaps.has(key{lane: "/1", op: "left"}) {
		t.Error("a lane does not know what was given up")
	}
}

// TestSkippedPath checks that a run that was to assume an answer of a call, and did not make it, is
// not kept beside the one that did.
func TestSkippedPath(t *testing.T) {
	s := play(t, replayable)
	s.read(s.lane(1), "a", 2)
	second := s.run(2)
	s.Skip(second.Main(), &CallSpec{Op: "a"})
	s.skip()
	if !second.Discarded() {
		t.Error("both runs may turn out right")
	}
}

// TestLateBesideAnotherLane checks that a lane whose context has ended makes a call that a right
// run made, if what followed that took effect in a lane that waited for it.
func TestLateBesideAnotherLane(t *testing.T) {
	for _, made := range []bool{false, true} { // the run has made what followed
		s := play(t, replayable)
		l := s.Fork(s.lane(1))
		s.Answered(s.read(l, "r", 0).Call, Actual)
		s.Join(s.lane(1), l)
		s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		l = s.Fork(s.lane(2))
		if made {
			s.write(s.lane(2), "w", Immediate, 0)
		}
		if s.Late(l, &CallSpec{Op: "r"}) == made {
			t.Errorf("made what followed %v: the call is made %v", made, !made)
		}
	}
}

// TestTwoReadsOfOnePlace checks that of two ordered reads in one place, which right runs made that
// went on without other calls, a replay finds the one that came after the same calls as its own.
func TestTwoReadsOfOnePlace(t *testing.T) {
	s := play(t, replayable)
	read := func(l *Lane, without bool) *Use {
		if without {
			s.Skip(l, &CallSpec{Op: "before", Ordered: true})
		} else if u := s.ordered(l, "before", 0); u.Answer() == Waiting {
			s.Answered(u.Call, Actual)
		}
		u := s.ordered(l, "r", 0)
		if u.Answer() == Waiting {
			s.Answered(u.Call, Actual)
		}
		return u
	}
	first := read(s.lane(1), false)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	second := read(s.lane(2), true)
	if second.Call == first.Call {
		t.Fatal("a read is found by a run that made no call before it")
	}
	s.read(s.lane(2), "guess", 0)
	s.Answered(s.write(s.lane(2), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
	if u := read(s.lane(3), true); u.Call != second.Call {
		t.Errorf("the replay finds call %d, want %d", u.Call.ID, second.Call.ID)
	}
}

// TestLateGivesWay: a run that was right gave up an effect that had begun, and went on. A replay
// whose code comes to it with a context that has ended goes on as well: an answer would be from
// after what followed.
func TestLateGivesWay(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	left := s.write(child, "left", Immediate, 0)
	s.Drop(left, false)
	s.Answered(left.Call, Actual)
	s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
	guess := s.read(s.lane(1), "guess", 1)
	s.Answered(guess.Call, Actual)
	s.skip()
	child = s.Fork(s.lane(2))
	if s.Late(child, &CallSpec{Op: "left", Effect: Immediate}) {
		t.Error("the replay makes what the run that was right gave up")
	}
	s.write(s.lane(2), "w", Immediate, 0)
	s.read(s.lane(2), "guess", 0)
	if next := s.write(child, "next", Immediate, 0); next.Call.send == unsent {
		t.Errorf("what follows is held: %s", next.Call.hold)
	} else {
		s.Answered(next.Call, Actual)
	}
	s.skip()
	s.returned(s.run(2))
	s.want("final run 2", "commit run 2", "abandon call 1")
}

// TestTwoWaysToOneEffect: two runs come to an effect that is right in both, of which one went on
// without a read before it. The other one then has an effect of its own: from there on the only way
// is with the read, which comes neither too late nor gives way.
func TestTwoWaysToOneEffect(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	left := &CallSpec{Op: "left"}
	s.Skip(s.lane(1), left)
	w := s.write(s.lane(1), "w", Immediate, 2)
	s.skip()
	read := s.read(s.lane(2), "left", 0)
	s.Answered(read.Call, Actual)
	s.write(s.lane(2), "w", Immediate, 0)
	s.ConfirmCaller()
	s.Answered(w.Call, 1)
	s.skip()
	s.Answered(s.write(s.Fork(s.lane(2)), "x", Immediate, 1).Call, Actual)
	s.skip()
	l := s.lane(3)
	if s.GivesWay(l, left) {
		t.Fatal("the replay goes on without the read, as nobody did that came to the second effect")
	}
	if u := s.read(l, "left", 0); u.Call != read.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, read.Call.ID)
	}
	s.write(l, "w", Immediate, 0)
	s.write(s.Fork(l), "x", Immediate, 0)
	s.skip()
	s.returned(s.run(3))
	s.want("final run 3", "commit run 3")
}

// TestReadBehindWhatWasGivenUp: a run that was right gave up an effect before it had happened, and
// read on. A replay that goes on without the effect is on the same path, and finds the read, though
// it made nothing before it: made anew it would be from after what another goroutine did since.
func TestReadBehindWhatWasGivenUp(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	child := s.Fork(s.lane(1))
	s.Drop(s.write(s.lane(1), "left", Staged, 0), false)
	read := s.read(s.lane(1), "read", 0)
	s.skip()
	s.ConfirmCaller()
	s.Answered(read.Call, Actual)
	s.Answered(s.write(child, "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	s.skip()
	l := s.lane(2)
	s.Fork(l)
	left := &CallSpec{Op: "left", Effect: Staged}
	if !s.GivesWay(l, left) {
		t.Fatal("the replay makes what was given up")
	}
	s.Skip(l, left)
	if u := s.read(l, "read", 0); u.Call != read.Call {
		t.Errorf("the replay reads by call %d, want %d", u.Call.ID, read.Call.ID)
	}
}

// TestLateByTheWayWithout: one run made a read, and its guess at that was wrong; in the next one
// the code's context had ended before it came there, and what it went on to took effect. A replay
// that comes there too late leaves the read out as well, although there is an answer that counts as
// right.
func TestLateByTheWayWithout(t *testing.T) {
	s := play(t, replayable)
	s.Answered(s.read(s.lane(1), "r", 1).Call, Actual)
	r := &CallSpec{Op: "r"}
	if s.Late(s.lane(2), r) {
		t.Fatal("nothing has happened, and the call is made")
	}
	s.Answered(s.write(s.lane(2), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(2), "guess", 1).Call, Actual)
	if s.Late(s.lane(3), r) {
		t.Error("the replay makes the call")
	}
	s.write(s.lane(3), "w", Immediate, 0)
	s.read(s.lane(3), "guess", 0)
	s.returned(s.run(3))
	s.skip()
	if s.final == nil || s.final.ID != 3 {
		t.Error("the task has no result")
	}
}
