package spectree

import "testing"

// TestReadThatIsReplaced: it was right to make a read that does not answer, but the run in the
// place of the one that did made another one there, which cannot be compared with it. Nobody comes
// to the first one any more, so it does not keep its stream from others until the task ends.
func TestReadThatIsReplaced(t *testing.T) {
	for _, test := range []struct {
		name     string
		earlier  bool // the other run makes its read before the first one is discarded
		answered bool // before the grace is over
	}{
		{"before the other one is made", false, false},
		{"afterwards", true, false},
		{"and answered", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, replayable)
			reads := func(run, variant int) *Use {
				l := s.Fork(s.lane(run))
				s.read(s.lane(run), "guessed", 2)
				return s.Call(l, &CallSpec{Op: "read", Variant: variant})
			}
			u := reads(1, 0)
			if test.earlier {
				reads(2, 1)
			}
			s.skip()
			s.Answered(s.first.uses[0].Call, 1)
			s.Expire(false)
			if !test.earlier {
				s.want("discard run 1 call 1") // the read is kept for run 2, which has yet to come there
				reads(2, 1)
				s.skip()
			}
			if test.answered {
				s.Answered(u.Call, Actual)
			}
			s.skip()
			s.Expire(false)
			s.skip()
			if gone := u.Call.dead; gone == test.answered {
				t.Errorf("abandoned: %v", gone)
			}
		})
	}
}

// TestReadThatAWrongRunReplaces: what a run makes on a guess replaces nothing.
func TestReadThatAWrongRunReplaces(t *testing.T) {
	s := play(t, replayable)
	l := s.Fork(s.lane(1))
	guessed := s.read(s.lane(1), "guessed", 1)
	u := s.Call(l, &CallSpec{Op: "read"})
	s.Answered(guessed.Call, Actual)
	other := s.Fork(s.lane(2))
	s.read(other, "guessed too", 1)
	s.Call(other, &CallSpec{Op: "read", Variant: 1})
	s.skip()
	if s.Expire(false); u.Call.dead {
		t.Error("the run that takes its place may make it")
	}
	s.skip()
}
