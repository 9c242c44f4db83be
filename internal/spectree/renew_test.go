package spectree

import "testing"

// TestRenew: a run that is not to know how long it waited at a barrier gives way, once it
// may pass, to one that has all answers, takes no predictions and does not wait.
func TestRenew(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	s.want("start run 1", "send call 1")
	s.Renew(s.lane(1))
	if s.Barrier(s.lane(1)) {
		t.Fatal("run 1 passes on a guess")
	}
	s.Answered(a.Call, 0)
	s.want("settle call 1", "discard run 1", "start run 2")
	s.answers(s.read(s.lane(2), "a", 1), 0)
	s.answers(s.read(s.lane(2), "b", 1), Waiting)
	s.Renew(s.lane(2))
	if !s.Barrier(s.lane(2)) {
		t.Error("run 2 has something to wait for")
	}
	if s.run(2).Guessed() {
		t.Error("run 2 went on with a guess")
	}
}

// TestRenewNow: so does one that waited for something else meanwhile, unless it has
// passed a barrier.
func TestRenewNow(t *testing.T) {
	for _, passed := range []bool{false, true} {
		s := play(t, replayable)
		s.Answered(s.read(s.lane(1), "a", 1).Call, 0)
		s.skip()
		if passed && !s.Barrier(s.lane(1)) {
			t.Fatal("run 1 stands on a guess")
		}
		s.RenewNow(s.lane(1))
		if passed {
			s.want()
		} else {
			s.want("discard run 1", "start run 2")
		}
	}
}
