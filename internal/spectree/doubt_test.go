package spectree

import "testing"

// doubted is a task whose first run went on with guesses at reads a and b, and a run
// that doubts the guess at a.
func doubted(t *testing.T) (s *scenario, a *Use) {
	s = play(t, replayable)
	a = s.read(s.lane(1), "a", 1)
	s.read(s.lane(1), "b", 1)
	s.Doubt([]*Use{a})
	s.want("start run 1", "send call 1", "send call 2 speculatively", "start run 2 call 1")
	s.answers(s.read(s.lane(2), "a", 1), Waiting)
	s.skip()
	return s, a
}

// TestDoubter: a run that waits for the actual result of a call goes if a guess was
// right, and stays if none was.
func TestDoubter(t *testing.T) {
	s, a := doubted(t)
	s.Answered(a.Call, 0)
	s.want("resume run 2 call 1 answer 0", "discard run 2", "settle call 1", "confirm call 2")

	s, a = doubted(t)
	s.Answered(a.Call, Actual)
	s.want("resume run 2 call 1 answer -1", "discard run 1 call 1", "settle call 1")
	s.returned(s.run(2))
	s.want("final run 2", "commit run 2", "abandon call 2")
}

// TestDoubterBesideARunThatReturned: the calls of a run that is right count before it ends the
// task.
func TestDoubterBesideARunThatReturned(t *testing.T) {
	s, a := doubted(t)
	w := s.write(s.lane(1), "w", Staged, 0)
	s.skip()
	s.Answered(s.lane(1).uses[1].Call, 0)
	s.Answered(w.Call, Actual)
	s.returned(s.run(1))
	s.skip()
	s.Answered(a.Call, 0)
	s.want("resume run 2 call 1 answer 0", "discard run 2", "settle call 1", "confirm call 2", "settle call 2",
		"confirm call 3", "settle call 3", "final run 1", "commit run 1")
}

// TestDoubterThatGivesUp: what its code does without the answer is what counts.
func TestDoubterThatGivesUp(t *testing.T) {
	s, _ := doubted(t)
	l := s.lane(2)
	s.Insist(l.uses[0])
	s.want("discard run 1")
	if l.Speculative() || l.run.Speculative() {
		t.Error("it stands on a guess")
	}
	s.Drop(l.uses[0], false)
	s.want("abandon call 1")
	s.returned(s.run(2))
	s.want("final run 2", "commit run 2", "abandon call 2")
}

// TestDoubterThatGivesUpAnother: a doubter gives up a call that it does not doubt, while the other
// run went on with a guess at it: plain code has that call end here, and what is ordered behind it
// goes on, whatever becomes of the guess that is doubted.
func TestDoubterThatGivesUpAnother(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	a := s.ordered(s.lane(1), "a", 1)
	s.ordered(child, "x", 1)
	s.Doubt([]*Use{a})
	s.skip()
	child = s.Fork(s.lane(2))
	x := s.ordered(child, "x", 0)
	s.Insist(x)
	s.Drop(x, false)
	s.skip()
	if !x.Call.dead || len(s.runs) != 1 || s.runs[0].ID != 2 {
		t.Fatalf("call %d goes on, and %d runs", x.Call.ID, len(s.runs))
	}
	s.Join(s.lane(2), child)
	if u := s.ordered(s.lane(2), "b", 0); u.Call.send != sentPlain {
		t.Errorf("what follows is held: %s", u.Call.hold)
	}
	s.skip()
}

// TestDoubterThatGoesOn: if another goroutine of it has an effect that no other run has,
// or comes to a barrier, nothing holds it up.
func TestDoubterThatGoesOn(t *testing.T) {
	s, _ := doubted(t)
	other := s.Fork(s.lane(2))
	s.write(other, "w", Immediate, 0)
	s.want("discard run 1", "send call 3")

	s, _ = doubted(t)
	if !s.Barrier(s.Fork(s.lane(2))) {
		t.Error("it waits at a barrier")
	}
	s.want("discard run 1")
}

// TestDoubterTakesNoPredictions: it is plain in all that comes.
func TestDoubterTakesNoPredictions(t *testing.T) {
	s, _ := doubted(t)
	s.answers(s.read(s.Fork(s.lane(2)), "c", 1), Waiting)
}

// TestDoubtOfAnEarlierCall: the doubter of the call that was made first takes the place
// of another one, and there is never more than one.
func TestDoubtOfAnEarlierCall(t *testing.T) {
	s := play(t, replayable)
	a, b := s.read(s.lane(1), "a", 1), s.read(s.lane(1), "b", 1)
	s.skip()
	s.Doubt([]*Use{b})
	s.want("start run 2 call 2")
	s.Doubt([]*Use{b, a})
	s.want("discard run 2", "start run 3 call 1")
	s.Doubt([]*Use{b, a})
	s.Doubt([]*Use{b})
	s.want()
}

// TestDoubtThatHasARun: a doubter stays when another one that was to take its place is not needed,
// since a run that is behind has yet to go on with the guess.
func TestDoubtThatHasARun(t *testing.T) {
	s := play(t, replayable)
	a, b := s.read(s.lane(1), "a", 0), s.read(s.lane(1), "b", 1) // by goroutines that share the lane
	s.read(s.lane(1), "c", 2)
	s.Predicted(a.Call)
	s.skip()
	s.Doubt([]*Use{b})
	s.want("start run 3 call 2")
	s.Doubt([]*Use{a, b})
	s.want()
}

// TestDoubterThatIsGoneAtOnce: what random programs are held against lets one run more than the
// width be alive for a doubter, also where the tree has discarded that in the same breath.
func TestDoubterThatIsGoneAtOnce(t *testing.T) {
	cfg := replayable
	cfg.Limits = ample
	cfg.Limits.Width = 1
	s := &shell{p: &program{main: &block{code: []instr{{op: opEnd}}}}, t: New(cfg), stats: new(stats)}
	run := s.t.Start()
	a := s.t.Call(run.Main(), &CallSpec{Op: "a", Predictions: 1})
	a.Call.Data = &shellCall{c: a.Call, site: new(site), state: inFlight}
	s.t.Doubt([]*Use{a})
	s.t.Answered(a.Call, 0)
	for _, act := range s.t.Take() {
		if act.Run != nil {
			s.obeyOne(&act)
		}
	}
	if s.problem != "" || len(s.runs) != 2 || s.alive != 1 {
		t.Errorf("%s: %d runs, of which %d are alive", s.problem, len(s.runs), s.alive)
	}
}

// TestDoubterLeavesWhatIsYetToBeMade: a write waits for a guess of another goroutine, and a doubter
// does without that. It does without what the run is to assume for calls that it has yet to make,
// too: it may come to them, and the write would wait for those guesses. If nothing but these tells
// the doubter from another run, it keeps them.
func TestDoubterLeavesWhatIsYetToBeMade(t *testing.T) {
	for _, sibling := range []bool{false, true} {
		s := play(t, replayable)
		predictions := 1
		if sibling {
			predictions = 2 // run 2 goes on with the other one
		}
		s.read(s.Fork(s.lane(1)), "yet", predictions)
		s.Answered(s.read(s.lane(1), "wrong", 1).Call, Actual)
		replay := s.started
		writes := func(run int) *Use {
			s.Fork(s.lane(run))
			s.read(s.Fork(s.lane(run)), "beside", 1)
			s.read(s.lane(run), "wrong", 1)
			return s.write(s.lane(run), "w", Immediate, 0)
		}
		w := writes(replay)
		s.skip()
		s.Hurry(w)
		s.skip()
		if s.started != replay+1 {
			t.Fatalf("sibling %v: no doubter is started", sibling)
		}
		if sibling {
			continue
		}
		s.read(s.Fork(s.lane(replay+1)), "yet", 1)
		s.read(s.Fork(s.lane(replay+1)), "beside", 1)
		s.read(s.lane(replay+1), "wrong", 1)
		s.write(s.lane(replay+1), "w", Immediate, 0)
		if s.skip(); w.Call.send != sentPlain {
			t.Error("the write waits for guesses of others")
		}
	}
}
