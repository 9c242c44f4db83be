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
	if !l.wentWithout(l.gaps) || other.wentWithout(l.gaps) {
		t.Error("a lane went without its own gaps, and no other lane did")
	}
}
