package spectree

import "testing"

// TestSwappedReadsAfterTheContextEnded checks that a read of a lane that swapped its name with
// another one is found in the record once the task's context has ended, though no effect is near.
// Before that it is made anew, as the former name may be another lane's that reads the same.
func TestSwappedReadsAfterTheContextEnded(t *testing.T) {
	for _, tt := range []struct {
		ended bool
		found bool
	}{{true, true}, {false, false}} {
		s := play(t, replayable)
		one, other := s.Fork(s.lane(1)), s.Fork(s.lane(1))
		s.Answered(s.read(one, "x", 0).Call, Actual)
		r := s.read(other, "r", 0)
		s.Answered(r.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		if tt.ended {
			s.ContextEnded()
		}
		l := s.Fork(s.lane(2))
		if c, _ := s.Find(l, &CallSpec{Op: "r"}); (c == r.Call) != tt.found {
			t.Errorf("%+v: got call %v", tt, c)
		}
		if !tt.found {
			continue
		}
		if u := s.read(l, "r", 0); u.Call != r.Call {
			t.Errorf("the reading is call %d", u.Call.ID)
		}
		if c, _ := s.Find(s.Fork(s.lane(2)), &CallSpec{Op: "r"}); c != nil {
			t.Errorf("another lane finds call %d again", c.ID)
		}
	}
}

// TestOrderAfterTheContextEnded checks that a replay which comes to two ordered reads in another
// order finds both once the task's context has ended, if goroutines share the lane: plain code had
// made them in time. In a lane of one goroutine the second read would be of a later moment.
func TestOrderAfterTheContextEnded(t *testing.T) {
	for _, shared := range []bool{true, false} {
		s := play(t, replayable)
		a := s.ordered(s.lane(1), "a", 0)
		s.Answered(a.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		s.ordered(s.lane(2), "a", 0)
		s.read(s.lane(2), "guess", 0)
		b := s.ordered(s.lane(2), "b", 0)
		s.Answered(b.Call, Actual)
		if shared {
			s.share(s.lane(2))
		}
		s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
		s.ContextEnded()
		replay := s.lane(3)
		if !shared {
			s.Heard(replay, 1, 1) // the code goes another way
		}
		if u := s.ordered(replay, "b", 0); u.Call != b.Call {
			t.Fatalf("the replay makes call %d, want %d", u.Call.ID, b.Call.ID)
		}
		if u := s.ordered(replay, "a", 0); (u.Call == a.Call) != shared {
			t.Errorf("goroutines share the lane: %v; the replay makes call %d, and %d was made", shared, u.Call.ID, a.Call.ID)
		}
		s.skip()
	}
}

// TestOrderOfTheStartAfterTheContextEnded: the same for the read of a lane that such a goroutine
// starts, before or after another one's read.
func TestOrderOfTheStartAfterTheContextEnded(t *testing.T) {
	s := play(t, replayable)
	a := s.ordered(s.Fork(s.lane(1)), "a", 0)
	s.Answered(a.Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	s.ordered(s.Fork(s.lane(2)), "a", 0)
	b := s.ordered(s.lane(2), "b", 0)
	s.Answered(b.Call, Actual)
	s.share(s.lane(2))
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
	s.ContextEnded()
	if u := s.ordered(s.lane(3), "b", 0); u.Call != b.Call {
		t.Fatalf("the replay makes call %d, want %d", u.Call.ID, b.Call.ID)
	}
	if u := s.ordered(s.Fork(s.lane(3)), "a", 0); u.Call != a.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, a.Call.ID)
	}
	s.skip()
}

// TestGapsAfterTheContextEnded: the same if another goroutine gave a call up before such reads, or
// after them.
func TestGapsAfterTheContextEnded(t *testing.T) {
	s := play(t, replayable)
	a, b := s.ordered(s.Fork(s.lane(1)), "a", 0), s.ordered(s.lane(1), "b", 0)
	s.Answered(a.Call, Actual)
	s.Answered(b.Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	s.Drop(s.read(s.lane(2), "left", 0), false)
	other := s.ordered(s.lane(2), "other", 0)
	s.Answered(other.Call, Actual)
	s.share(s.lane(2))
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
	s.ContextEnded()
	s.Drop(s.read(s.lane(3), "left", 0), false)
	for _, want := range []*Use{other, a, b} {
		l := s.lane(3)
		if want == a {
			l = s.Fork(l)
		}
		if u := s.ordered(l, want.Call.spec.Op, 0); u.Call != want.Call {
			t.Errorf("the replay makes call %d for %q, want %d", u.Call.ID, want.Call.spec.Op, want.Call.ID)
		}
	}
	s.skip()
}

// TestReadBehindAWriteAfterTheContextEnded: goroutines that share a lane come to a write and a read
// in either order. A read that was made before the write is found behind it once the task's context
// has ended: made anew it would fail, and plain code had its answer. Until then it is made anew, as
// the goroutine that wrote may be the one that reads.
func TestReadBehindAWriteAfterTheContextEnded(t *testing.T) {
	for _, ended := range []bool{true, false} {
		s := play(t, replayable)
		r := s.read(s.lane(1), "r", 0)
		s.Answered(r.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		w := s.write(s.lane(2), "w", Immediate, 0)
		s.Answered(w.Call, Actual)
		s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
		if ended {
			s.ContextEnded()
		}
		s.write(s.lane(3), "w", Immediate, 0)
		if c, how := s.Find(s.lane(3), &CallSpec{Op: "r"}); (c == r.Call && how == Sure) != ended {
			t.Errorf("the context has ended: %v; call %v is found, certainty %d", ended, c, how)
		}
		s.skip()
	}
}
