package spectree

import "testing"

// TestFirm checks that a run is told when it stands on fewer guesses of its own, and takes no
// further one when it stands on none.
func TestFirm(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	b := s.read(s.Fork(s.lane(1)), "b", 1)
	if s.Firm(s.run(1), nobody) {
		t.Error("a run that stands on guesses is firm")
	}
	s.Answered(a.Call, 0)
	s.want("start run 1", "send call 1", "send call 2 speculatively", "settle call 1", "confirm call 2", "firm run 1")
	if s.Firm(s.run(1), nobody) {
		t.Error("a run that stands on a guess is firm")
	}
	s.Answered(b.Call, 0)
	s.want("settle call 2", "firm run 1")
	if !s.Firm(s.run(1), nobody) {
		t.Error("a run that stands on no guess is not firm")
	}
	s.answers(s.read(s.Fork(s.lane(1)), "c", 1), Waiting)
	s.want("send call 3")
}

// TestGuessesOfSpareLanes: a run is replayed without them once it stands on nothing else. In the
// replay these lanes wait.
func TestGuessesOfSpareLanes(t *testing.T) {
	s := play(t, replayable)
	spare := s.Fork(s.lane(1))
	isSpare := func(l *Lane) bool { return l.ID() == spare.ID() }
	a := s.read(s.lane(1), "a", 1)
	b := s.read(spare, "b", 1)
	local := &CallSpec{Op: "local", Local: true, Predictions: 1}
	s.answers(s.Call(spare, local), 0)
	if s.Firm(s.run(1), isSpare) || s.run(1).Discarded() {
		t.Error("guesses of its own do not count")
	}
	s.Answered(a.Call, 0)
	s.want("start run 1", "send call 1", "send call 2", "settle call 1", "firm run 1")
	if s.Firm(s.run(1), isSpare) {
		t.Error("it is firm in spite of guesses")
	}
	s.want("discard run 1 call 2", "abandon call 3", "start run 2")
	spare = s.Fork(s.lane(2))
	again := s.read(spare, "b", 1)
	if again.Call != b.Call {
		t.Error("the replay makes the call anew")
	}
	s.answers(again, Waiting)
	s.answers(s.Call(spare, local), Waiting)
	s.answers(s.read(s.lane(2), "a", 0), 0)
}

// TestAssumedForSpareLanes: what a run was to assume for calls that only spare lanes have yet to
// make it forgets once it stands on nothing else. These lanes wait, in its replay as well.
func TestAssumedForSpareLanes(t *testing.T) {
	all := func(*Lane) bool { return true }
	replayed := func() (s *scenario, spare *Lane) { // run 2 is to assume something for b and c
		s = play(t, replayable)
		spare = s.Fork(s.lane(1))
		s.read(spare, "b", 1)
		s.read(spare, "c", 1)
		s.Answered(s.read(s.lane(1), "a", 1).Call, Actual)
		s.skip()
		return s, s.Fork(s.lane(2))
	}
	s, spare := replayed()
	if !s.Firm(s.run(2), all) {
		t.Error("it is not firm because of guesses that it has not taken")
	}
	s.answers(s.read(spare, "b", 1), Waiting)
	s.skip()

	s, spare = replayed()
	s.answers(s.read(spare, "b", 1), 0)
	if s.Firm(s.run(2), all) {
		t.Error("it is firm in spite of a guess")
	}
	s.want("adopt run 2 call 1", "discard run 2 call 1", "start run 3")
	spare = s.Fork(s.lane(3))
	s.answers(s.read(spare, "b", 1), Waiting)
	s.answers(s.read(spare, "c", 1), Waiting)
	s.skip()
}

// TestDoubtOfWhatIsSpare: a doubter that comes to its end while a spare lane waits for the call was
// right to doubt.
func TestDoubtOfWhatIsSpare(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.Fork(s.lane(1)), "a", 1)
	s.Doubt([]*Use{a})
	s.skip()
	s.answers(s.read(s.Fork(s.lane(2)), "a", 1), Waiting)
	if !s.Firm(s.run(2), func(*Lane) bool { return true }) {
		t.Error("it waits for what it doubts")
	}
	s.want("adopt run 2 call 1", "discard run 1")
}

// TestKnown: what a lane has come to is known once all guesses are that were made since it was
// forked, those of lanes included that it waited for, whatever is guessed elsewhere.
func TestKnown(t *testing.T) {
	s := play(t, replayable)
	s.read(s.lane(1), "before", 1)
	child := s.Fork(s.lane(1))
	grandchild := s.Fork(child)
	s.read(s.lane(1), "beside", 1)
	known := func(want bool) {
		t.Helper()
		if s.Known([]*Lane{child}) != want {
			t.Errorf("it is known: want %v", want)
		}
	}
	a, b := s.read(grandchild, "a", 1), s.read(child, "b", 1)
	known(false)
	s.Answered(b.Call, 0)
	known(true)
	s.Join(child, grandchild)
	known(false)
	s.Answered(a.Call, 0)
	known(true)
}

// TestFirmOfADiscardedRun checks that a run on a wrong guess is not told.
func TestFirmOfADiscardedRun(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	r := s.run(1)
	s.Firm(r, nobody)
	s.Answered(a.Call, Actual)
	s.want("start run 1", "send call 1", "discard run 1 call 1", "start run 2")
	if s.Firm(r, nobody) {
		t.Error("a discarded run is firm")
	}
}

// afterWrite is a task whose first run's lane /1 read and wrote, and then was
// discarded because of what another lane guessed.
func afterWrite(t *testing.T) *scenario {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	a := s.read(s.Fork(s.lane(1)), "a", 1)
	b := s.read(child, "b", 0)
	s.Answered(b.Call, Actual)
	w := s.write(child, "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	s.Answered(a.Call, Actual)
	s.skip()
	return s
}

// TestCutShort checks that a run need not repeat what another one did in a lane
// whose code's context ended in this one, and no other lane's calls.
func TestCutShort(t *testing.T) {
	for cut, want := range map[string][]string{
		"/1":   {"final run 2", "commit run 2", "abandon call 1"},
		"/1/1": {"diverge run 2 call 3", "discard run 2", "abandon call 1"},
		"/2":   {"diverge run 2 call 3", "discard run 2", "abandon call 1"},
	} {
		t.Run(cut, func(t *testing.T) {
			s := afterWrite(t)
			first := s.Fork(s.lane(2))
			if !s.Owes(s.run(2)) {
				t.Error("the lane has nothing to repeat")
			}
			s.CutShort(map[string]*Lane{"/1": first, "/1/1": s.Fork(first), "/2": s.Fork(s.lane(2))}[cut])
			if owes := cut != "/1"; s.Owes(s.run(2)) != owes {
				t.Errorf("something is to be repeated: %v; want %v", !owes, owes)
			}
			s.returned(s.run(2))
			s.want(want...)
		})
	}
}

// TestLate checks that a lane on the way to what took effect is not kept from it
// by the end of a context, and that a call that was not made counts among its
// kind, so that the next one is not taken for it.
func TestLate(t *testing.T) {
	s := afterWrite(t)
	child := s.Fork(s.lane(2))
	read, write := &CallSpec{Op: "b"}, &CallSpec{Op: "w", Effect: Immediate}
	if s.Late(child, &CallSpec{Op: "c"}) || s.Late(s.Fork(s.lane(2)), read) {
		t.Error("calls that nobody made are made after the end of their context")
	}
	if !s.Late(child, read) {
		t.Error("the lane does not read what it read")
	}
	s.answers(s.Call(child, read), Actual)
	if !s.Late(child, write) {
		t.Error("the lane does not write what it wrote")
	}
	s.answers(s.Call(child, write), Actual)
	if s.Late(child, read) || s.Late(child, write) {
		t.Error("the lane repeats more than it did")
	}

	s = afterWrite(t)
	child = s.Fork(s.lane(2))
	s.Late(child, &CallSpec{Op: "b2"})
	child.skipped["b"] = 1
	if s.Late(child, read) {
		t.Error("the second call of its kind is taken for the first")
	}
	s.answers(s.Call(child, read), Waiting)
}

// TestBasis checks that what lanes computed counts as long as no guess that they
// stood on was wrong.
func TestBasis(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	on := s.Fork(s.lane(1))
	b := s.read(s.lane(1), "b", 1)
	basis := s.Basis([]*Lane{on})
	both := s.Basis([]*Lane{on, s.lane(1)})
	s.Answered(a.Call, 0)
	s.Answered(b.Call, Actual)
	if !basis.Right() || both.Right() {
		t.Errorf("right: %v, with the wrong guess %v; want true, false", basis.Right(), both.Right())
	}
}

func nobody(*Lane) bool { return false }
