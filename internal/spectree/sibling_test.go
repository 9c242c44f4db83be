package spectree

import "testing"

// TestSiblings checks that each of several predictions gets a run, and that one
// run is left when the answer is in, whichever it is.
func TestSiblings(t *testing.T) {
	for match := Actual; match < 3; match++ {
		s := play(t, replayable)
		first := s.read(s.lane(1), "a", 3)
		s.want("start run 1", "start run 2", "start run 3", "send call 1")
		s.answers(s.read(s.lane(2), "a", 3), 1)
		s.answers(s.read(s.lane(3), "a", 3), 2)
		s.skip()
		s.Answered(first.Call, match)
		if len(s.runs) != 1 {
			t.Errorf("match %d: %d runs are alive", match, len(s.runs))
		}
		if r := s.runs[0]; match >= 0 && r.ID != match+1 || match < 0 && r.ID != 4 || r.Open() != 0 {
			t.Errorf("match %d: run %d is alive with %d guesses", match, r.ID, r.Open())
		}
	}
}

// TestChain checks that calls that depend on each other overlap if their
// predictions are right: all are sent before any is answered.
func TestChain(t *testing.T) {
	s := play(t, replayable)
	var uses []*Use
	for _, op := range []string{"a", "b", "c", "d"} {
		uses = append(uses, s.read(s.lane(1), op, 1))
	}
	s.returned(s.run(1))
	s.want("start run 1", "send call 1", "send call 2 speculatively", "send call 3 speculatively",
		"send call 4 speculatively", "offer run 1")
	for _, u := range uses {
		s.Answered(u.Call, 0)
	}
	s.want("settle call 1", "confirm call 2", "settle call 2", "confirm call 3", "settle call 3", "confirm call 4",
		"settle call 4", "final run 1", "commit run 1")
}

// TestSiblingThatIsNotThere checks that a sibling learns that its prediction is
// wrong even if it has not yet made the call: else it would go on beside the run
// whose prediction is right, and both would pass barriers.
func TestSiblingThatIsNotThere(t *testing.T) {
	s := play(t, replayable)
	u := s.read(s.lane(1), "a", 2)
	s.want("start run 1", "start run 2", "send call 1")
	if got := s.run(2).State(); got != CalleeSpeculative {
		t.Errorf("run 2 is to stand on a guess and is in state %d", got)
	}
	s.Answered(u.Call, 0)
	s.want("discard run 2 call 1", "settle call 1")
	if !s.Barrier(s.lane(1)) {
		t.Error("run 1 is confirmed and does not pass")
	}
}

// TestReplayIsTheSibling checks that a sibling that has not made the refuted
// call does not live on beside the run that takes its place.
func TestReplayIsTheSibling(t *testing.T) {
	s := play(t, replayable)
	u := s.read(s.lane(1), "a", 2)
	s.skip()
	s.Answered(u.Call, Actual)
	s.want("discard run 1 call 1", "discard run 2 call 1", "start run 3")
}

// TestSiblingsOfSiblings checks that a late prediction makes one run, and not
// one for each run that made the call: these differ in what came after.
func TestSiblingsOfSiblings(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 2)
	s.read(s.lane(2), "a", 2)
	s.read(s.lane(2), "b", 1)
	s.want("start run 1", "start run 2", "send call 1", "adopt run 2 call 1", "send call 2 speculatively")
	s.Predicted(a.Call)
	s.want("start run 3")
}

// TestForgottenCall checks that runs that disagree only about a call that
// nobody makes any more become one.
func TestForgottenCall(t *testing.T) {
	s := play(t, replayable)
	l := s.Fork(s.lane(1))
	s.read(s.lane(1), "x", 1)
	s.write(s.lane(1), "b", Immediate, 3)
	s.want("start run 1", "send call 1", "start run 2", "start run 3",
		"hold call 2: it has side effects and its caller is speculative")
	a := s.read(l, "a", 1)
	s.want("send call 3")
	s.Answered(a.Call, Actual)
	s.want("discard run 1 call 3", "abandon call 2", "discard run 3")
}

// TestPathIsNotTaken checks that a run that returned without having made the
// calls that it was expected to make does not wait for them.
func TestPathIsNotTaken(t *testing.T) {
	s := play(t, replayable)
	s.read(s.lane(1), "a", 2)
	s.want("start run 1", "start run 2", "send call 1")
	s.returned(s.run(2)) // not deterministic
	s.want("discard run 1", "final run 2", "commit run 2", "abandon call 1")
}

// TestWidth checks that fewer runs than predictions are started at the limit,
// and that the predictions left out are not lost for correctness.
func TestWidth(t *testing.T) {
	s := play(t, Config{Replayable: true, Limits: Limits{Depth: 8, Width: 2, Replays: 8, Runs: 8}})
	u := s.read(s.lane(1), "a", 4)
	s.want("start run 1", "start run 2", "send call 1")
	s.Answered(u.Call, 3)
	s.want("discard run 1 call 1", "discard run 2 call 1", "start run 3")
	s.answers(s.read(s.lane(3), "a", 4), 3)
	s.want("adopt run 3 call 1", "settle call 1")
}

// TestReplaysAreLimited checks that a function that is always mispredicted is
// run Replays times beyond the first, at most, however many guesses were open.
func TestReplaysAreLimited(t *testing.T) {
	for replays := 1; replays < 6; replays++ {
		s := play(t, Config{Replayable: true, Limits: Limits{Depth: 8, Width: 2, Replays: replays, Runs: 8}})
		for !s.Over() {
			r := s.runs[len(s.runs)-1]
			var uses []*Use
			for _, op := range []string{"a", "b", "c", "d"} {
				u := s.read(r.Main(), op, 3)
				uses = append(uses, u)
				if u.Answer() == Waiting {
					s.Answered(u.Call, Actual)
				}
			}
			for i := len(uses) - 1; i >= 0 && !r.Discarded(); i-- {
				s.Answered(uses[i].Call, Actual)
			}
			s.returned(r)
			s.skip()
		}
		if s.started-1 > replays || s.started == 1 {
			t.Errorf("%d replays, limit %d", s.started-1, replays)
		}
	}
}

// TestDepth checks that a run at the limit waits, and that a prediction's
// siblings are as deep as the run itself, not deeper.
func TestDepth(t *testing.T) {
	s := play(t, Config{Replayable: true, Depth: 1, CallerOpen: true, Limits: Limits{Depth: 3, Width: 4, Replays: 8,
		Runs: 8}})
	s.read(s.lane(1), "a", 1)
	b := s.read(s.lane(1), "b", 2)
	s.want("start run 1", "send call 1 speculatively", "start run 2", "send call 2 speculatively")
	if b.Call.Depth() != 3 || s.lane(1).Depth() != 3 {
		t.Errorf("depth %d, %d", b.Call.Depth(), s.lane(1).Depth())
	}
	s.answers(s.read(s.lane(1), "c", 1), Waiting)
}

// TestRunsThatDoNotEnd checks that discarded goroutines that go on count.
func TestRunsThatDoNotEnd(t *testing.T) {
	s := play(t, Config{Replayable: true, Limits: Limits{Depth: 8, Width: 4, Replays: 8, Runs: 1}})
	first := s.run(1)
	u := s.read(s.lane(1), "a", 1)
	s.Answered(u.Call, Actual)
	s.read(s.lane(2), "a", 0)
	s.answers(s.read(s.lane(2), "b", 1), Waiting)
	s.Exited(first)
	s.Exited(first)
	s.answers(s.read(s.lane(2), "c", 1), 0)
	s.skip()
}

// TestSiblingThatLeavesItsPath: a run that was to take another prediction of a call,
// and makes another variant of it, can no longer be told from the first one, which
// goes on alone: the effects of both would happen.
func TestSiblingThatLeavesItsPath(t *testing.T) {
	s := play(t, replayable)
	s.read(s.lane(1), "first", 1)
	s.read(s.lane(1), "a", 2)
	s.skip()
	second := s.run(2)
	s.read(second.Main(), "first", 1)
	u := s.Call(s.lane(2), &CallSpec{Op: "a", Variant: 1, Predictions: 1})
	if !second.Discarded() {
		t.Errorf("the second run goes on, with answer %d", u.Answer())
	}
	if len(s.runs) != 1 || s.runs[0].ID != 1 {
		t.Errorf("%d runs are alive", len(s.runs))
	}
}
