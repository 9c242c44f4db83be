package spectree

import "testing"

func (s *scenario) finds(what string, l *Lane, op string, want *Call, how Certainty) {
	s.Helper()
	c, certainty := s.Find(l, &CallSpec{Op: op})
	if c != want || c != nil && certainty != how {
		s.Errorf("%s: found %v, certainty %d, want %v, %d", what, c, certainty, want, how)
	}
}

// TestCertaintyAfterAnotherCall: a replay leaves out what another run gave up, and makes a call
// that cannot be compared anew, which tells it something else. What the other run made after its
// own is the same call only if that can be compared.
func TestCertaintyAfterAnotherCall(t *testing.T) {
	for variant, forked := range []bool{false, false, true} {
		variant = min(variant, 1)
		s := play(t, replayable)
		l := s.lane(1)
		s.Drop(s.read(l, "left", 0), false)
		s.Answered(s.read(l, "a", 0).Call, Actual)
		if forked {
			l = s.Fork(l)
		}
		x := s.read(l, "x", 0)
		s.Answered(x.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		l = s.lane(2)
		s.Skip(l, &CallSpec{Op: "left"})
		if a := s.Call(l, &CallSpec{Op: "a", Variant: variant}); variant > 0 {
			s.Answered(a.Call, Actual)
		}
		if forked {
			l = s.Fork(l)
		}
		s.finds("after the call", l, "x", x.Call, []Certainty{Sure, Doubtful}[variant])
		s.skip()
	}
}

// TestCertainty: a lane is sure to make a call that one of another run made in its place
// if it has made the same calls before, and none of them overlapped: else it may be that
// of another goroutine on the same context. A run that has yet to make what took effect
// is not: it must not read anew what comes before that. Nor is one whose task's context has
// ended, which could not read anew.
func TestCertainty(t *testing.T) {
	guessed := func(t *testing.T, before ...string) (*scenario, map[string]*Call) {
		s, calls := play(t, replayable), make(map[string]*Call)
		l := s.lane(1)
		for _, op := range before {
			u := s.read(l, op, 0)
			s.Answered(u.Call, Actual)
			calls[op] = u.Call
		}
		u := s.read(l, "guess", 1)
		s.Answered(u.Call, Actual)
		s.skip()
		return s, calls
	}
	t.Run("in the same order", func(t *testing.T) {
		s, calls := guessed(t, "a", "b")
		s.finds("the first call", s.lane(2), "a", calls["a"], Sure)
		s.read(s.lane(2), "a", 0)
		s.finds("the second call", s.lane(2), "b", calls["b"], Sure)
	})
	t.Run("in another order", func(t *testing.T) {
		s, calls := guessed(t, "a", "b")
		s.finds("the second call", s.lane(2), "b", calls["b"], Doubtful)
		s.read(s.lane(2), "b", 0)
		s.finds("the first call", s.lane(2), "a", calls["a"], Doubtful)
	})
	t.Run("of calls that overlapped", func(t *testing.T) {
		s := play(t, replayable)
		l := s.lane(1)
		guess := s.read(l, "guess", 2)
		a := s.read(l, "a", 0)
		s.read(l, "b", 0)
		s.Answered(a.Call, Actual)
		s.skip()
		s.read(s.lane(2), "guess", 0)
		s.Answered(guess.Call, 1)
		s.skip()
		s.finds("the first call", s.lane(2), "a", a.Call, Doubtful)
	})
	t.Run("of calls that overlapped, once the context has ended", func(t *testing.T) {
		s := play(t, replayable)
		a, b := s.read(s.lane(1), "a", 0), s.read(s.lane(1), "b", 0)
		s.Answered(a.Call, Actual)
		s.Answered(b.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		s.skip()
		s.finds("the second call", s.lane(2), "b", b.Call, Doubtful)
		s.ContextEnded() // made anew it would fail
		s.finds("the second call, too late for a new one", s.lane(2), "b", b.Call, Sure)
	})
	t.Run("by another path than one that gave up", func(t *testing.T) {
		s := play(t, replayable)
		l := s.lane(1)
		s.Drop(s.read(l, "left", 0), false)
		a := s.read(l, "a", 0)
		s.Answered(a.Call, Actual)
		s.Answered(s.read(l, "guess", 1).Call, Actual)
		s.skip()
		s.Answered(s.read(s.lane(2), "left", 0).Call, Actual)
		s.finds("the call", s.lane(2), "a", a.Call, Doubtful)
	})
	t.Run("by another path, once something has happened", func(t *testing.T) {
		s := play(t, replayable)
		a := s.read(s.lane(1), "a", 0)
		s.Answered(a.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		s.Skip(s.lane(2), &CallSpec{Op: "left"})
		s.Answered(s.write(s.Fork(s.lane(2)), "w", Immediate, 0).Call, Actual)
		s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
		s.skip()
		s.Skip(s.lane(3), &CallSpec{Op: "left"})
		s.finds("the call", s.lane(3), "a", a.Call, Doubtful)
	})
	t.Run("before an effect", func(t *testing.T) {
		s := play(t, replayable)
		l := s.lane(1)
		a, b := s.read(l, "a", 0), s.read(l, "b", 0)
		s.Answered(a.Call, Actual)
		s.Answered(b.Call, Actual)
		w := s.write(s.Fork(l), "w", Immediate, 0)
		s.Answered(w.Call, Actual)
		guess := s.read(l, "guess", 1)
		s.Answered(guess.Call, Actual)
		s.skip()
		s.finds("the second call", s.lane(2), "b", b.Call, Sure)
		s.write(s.Fork(s.lane(2)), "w", Immediate, 0)
		s.finds("once the run has the effect", s.lane(2), "b", b.Call, Doubtful)
	})
}

// TestGuessesBehindACallMadeAnew: a call that cannot be compared is made anew in each run, and so
// is an ordered one behind it. That takes no predictions once a guess was wrong in its place: the
// next run would make both anew, and guess wrong anew.
func TestGuessesBehindACallMadeAnew(t *testing.T) {
	for _, wrong := range []bool{true, false} {
		s := play(t, replayable)
		s.Answered(s.ordered(s.lane(1), "a", 0).Call, Actual)
		first := s.ordered(s.lane(1), "b", 1)
		if s.answers(first, 0); wrong {
			s.Answered(first.Call, Actual)
		} else {
			s.Answered(first.Call, 0)
			s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		}
		s.skip()
		s.Answered(s.Call(s.lane(2), &CallSpec{Op: "a", Ordered: true, Variant: 1}).Call, Actual)
		b := s.ordered(s.lane(2), "b", 1)
		if s.Predicted(b.Call); b.Call == first.Call {
			t.Error("the replay has an answer from before what it was told first")
		}
		if guessed := b.Answer() == 0; guessed == wrong {
			t.Errorf("the first guess was wrong: %v; the second run guesses: %v", wrong, guessed)
		}
		s.skip()
	}
}

// TestSeveralRightCallsInOnePlace: runs that were told the same may each have made another variant
// of a read, since nobody could tell that it was the same. Once something has taken effect in one
// of them, the others are not right any more, and the replay is right with that one's. This matters
// where code gave a call up.
func TestSeveralRightCallsInOnePlace(t *testing.T) {
	s := play(t, replayable)
	first := s.read(s.lane(1), "a", 0)
	guess := s.read(s.lane(1), "guess", 2)
	l := s.lane(2)
	other := &CallSpec{Op: "a", Variant: 1}
	second := s.Call(l, other)
	s.read(l, "guess", 0)
	s.Answered(first.Call, Actual)
	s.Answered(second.Call, Actual)
	s.Answered(guess.Call, 1)
	s.Drop(s.read(l, "left", 0), false)
	s.Answered(s.write(l, "w", Immediate, 0).Call, Actual)
	again := s.read(l, "again", 1)
	s.Answered(again.Call, Actual)
	s.skip()

	l = s.lane(3)
	if c, how := s.Find(l, &CallSpec{Op: "a"}); c != first.Call || how != Doubtful {
		t.Errorf("the call that nothing follows: found call %d, certainty %d", c.ID, how)
	}
	if c, how := s.Find(l, other); c != second.Call || how != Sure {
		t.Errorf("the call that an effect follows: found call %d, certainty %d", c.ID, how)
	}
	s.Call(l, other)
	s.read(l, "guess", 0)
	s.Skip(l, &CallSpec{Op: "left"})
	s.write(l, "w", Immediate, 0)
	s.read(l, "again", 0)
	s.skip()
	s.returned(s.run(3))
	s.want("final run 3", "commit run 3")
}

// TestRightByTwoWays: a read was made in one place by two runs, of which only one went on without
// the answer of another call, or was told something else, and both are right as far as they came. A
// replay that does as that one, and may read nothing anew, makes the read of that one.
func TestRightByTwoWays(t *testing.T) {
	for _, tt := range []struct {
		name       string
		one, other func(*scenario, *Lane)
	}{
		{"left out", func(s *scenario, l *Lane) { s.Answered(s.read(l, "left", 0).Call, Actual) },
			func(s *scenario, l *Lane) { s.Skip(l, &CallSpec{Op: "left"}) }},
		{"told otherwise", func(s *scenario, l *Lane) { s.Heard(l, 1, 1) }, func(s *scenario, l *Lane) { s.Heard(l, 1, 2) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, replayable)
			l := s.lane(1)
			tt.one(s, l)
			first := s.read(l, "a", 0)
			s.Answered(first.Call, Actual)
			s.Answered(s.read(l, "guess", 1).Call, Actual)
			s.skip()

			other := &CallSpec{Op: "a", Variant: 1}
			l = s.lane(2)
			tt.other(s, l)
			s.Answered(s.write(s.Fork(l), "w", Immediate, 0).Call, Actual)
			second := s.Call(l, other)
			s.Answered(second.Call, Actual)
			s.Answered(s.read(l, "again", 1).Call, Actual)
			s.skip()

			l = s.lane(3)
			tt.other(s, l)
			s.finds("by the other way", l, "a", first.Call, Doubtful)
			if c, how := s.Find(l, other); c != second.Call || how != Sure {
				t.Errorf("by this way: found call %d, certainty %d", c.ID, how)
			}
			s.skip()
		})
	}
}

// TestReadByAnotherWay: goroutines share a lane, and come to a read in another order in the run
// that tries another guess, so that it makes another call there. Then the one that led to an effect
// is answered, and the effect happens. What the other run is told may be from after it, so it gives
// way to one that makes the call that led there.
func TestReadByAnotherWay(t *testing.T) {
	s := play(t, replayable)
	other := s.read(s.lane(1), "other", 0)
	r := s.read(s.lane(1), "r", 1)
	s.Answered(other.Call, Actual)
	w := s.write(s.lane(1), "w", Immediate, 1)
	guess := s.read(s.lane(1), "guess", 2)
	s.skip()

	anew := s.Call(s.lane(2), &CallSpec{Op: "r", Variant: 1})
	s.read(s.lane(2), "other", 0)
	if anew.Call == r.Call {
		t.Fatal("what cannot be compared counts as the same call")
	}
	s.skip()
	s.Answered(r.Call, 0)
	s.want("settle call 2", "send call 3", "discard run 2 call 3")

	s.Answered(w.Call, 0)
	s.Answered(guess.Call, 1)
	s.skip()
	l := s.lane(3)
	s.read(l, "other", 0)
	s.finds("the call that led to the effect", l, "r", r.Call, Sure)
	s.answers(s.read(l, "r", 0), 0)
	s.answers(s.write(l, "w", Immediate, 0), 0)
	s.skip()
}
