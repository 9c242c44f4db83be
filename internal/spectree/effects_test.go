package spectree

import "testing"

// TestReadAfterPredictedWrite checks that what follows a write that was
// answered by prediction is sent only when the write is done, unless their keys
// say that they commute.
func TestReadAfterPredictedWrite(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	w := s.Call(l, &CallSpec{Op: "w", Effect: Immediate, Conflict: "x", Predictions: 1})
	same := s.Call(l, &CallSpec{Op: "same", Conflict: "x", Predictions: 1})
	other := s.Call(l, &CallSpec{Op: "other", Conflict: "y", Predictions: 1})
	none := s.Call(l, &CallSpec{Op: "none", Predictions: 1})
	s.want("start run 1", "send call 1",
		"hold call 2: an earlier call with side effects is not answered",
		"send call 3 speculatively",
		"hold call 4: an earlier call with side effects is not answered")
	s.Answered(w.Call, 0)
	s.want("settle call 1", "send call 2", "send call 4 speculatively")
	for _, u := range []*Use{same, other, none} {
		s.Answered(u.Call, 0)
	}
	s.returned(s.run(1))
	s.want("settle call 2", "confirm call 3", "settle call 3", "confirm call 4", "settle call 4", "final run 1",
		"commit run 1")
}

// TestAdoption checks that a replay adopts what was made after the same side
// effects, and nothing else.
func TestAdoption(t *testing.T) {
	s := play(t, replayable)
	a := s.read(s.lane(1), "a", 1)
	s.write(s.lane(1), "w", Staged, 1)
	s.read(s.lane(1), "b", 1)
	s.want("start run 1", "send call 1", "send call 2 speculatively",
		"hold call 3: an earlier call with side effects is not answered")
	s.Answered(a.Call, Actual)
	s.want("discard run 1 call 1", "abandon call 3", "start run 2")
	s.read(s.lane(2), "a", 1)
	s.read(s.lane(2), "b", 0) // before w this time: another call
	s.want("adopt run 2 call 1", "settle call 1", "send call 4")
	if s.Orphans() != 1 {
		t.Errorf("%d orphans, want the staged call", s.Orphans())
	}
	s.write(s.lane(2), "w", Staged, 1)
	s.want("adopt run 2 call 2", "confirm call 2")
	if s.Orphans() != 0 {
		t.Errorf("%d orphans", s.Orphans())
	}
}

// TestGrace checks what becomes of calls that no run uses: those that are known
// to be right are kept, those that nobody may want are abandoned.
func TestGrace(t *testing.T) {
	s := play(t, replayable)
	l := s.Fork(s.lane(1))
	right := s.read(l, "right", 1)
	a := s.read(s.lane(1), "a", 1)
	wrong := s.read(s.lane(1), "wrong", 1)
	s.skip()
	s.Answered(a.Call, Actual)
	s.want("discard run 1 call 2", "start run 2")
	s.Answered(right.Call, 0)
	s.Expire(true)
	s.want("abandon call 3")
	s.Answered(wrong.Call, 0)
	s.Predicted(wrong.Call)
	s.Refused(wrong.Call, "late")
	s.want()
	s.answers(s.read(s.Fork(s.lane(2)), "right", 1), 0)
	s.want("adopt run 2 call 1", "settle call 1")
}

// TestSweep checks that the return of a run ends the grace of what it did not
// adopt, save what another run is sure to make.
func TestSweep(t *testing.T) {
	s := play(t, replayable)
	first := s.run(1)
	a := s.read(s.lane(1), "a", 1)
	s.read(s.lane(1), "b", 1)
	s.skip()
	s.Answered(a.Call, Actual)
	s.skip()
	s.returned(first)
	s.want()
	s.read(s.lane(2), "a", 0)
	s.returned(s.run(2))
	s.want("adopt run 2 call 1", "settle call 1", "abandon call 2", "final run 2", "commit run 2")
}

// TestEffectOnce checks that a replay uses the call that took effect, whatever
// it does before.
func TestEffectOnce(t *testing.T) {
	s := play(t, replayable)
	w := s.write(s.lane(1), "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	a := s.read(s.lane(1), "a", 1)
	s.Answered(a.Call, Actual)
	s.skip()
	s.answers(s.write(s.lane(2), "w", Immediate, 0), Actual)
	s.answers(s.read(s.lane(2), "a", 1), Actual)
	s.returned(s.run(2))
	s.want("adopt run 2 call 1", "adopt run 2 call 2", "settle call 2", "final run 2", "commit run 2")
	if !w.Call.Settled() || !w.Call.Confirmed() || w.Call.Effect() != Immediate || w.Call.Op() != "w" ||
		w.Call.Lane() != "" {
		t.Error("call 1 is not what it was")
	}
}

// TestDivergence checks that a replay that takes another path than the one on
// which something took effect ends the task before anything else does.
func TestDivergence(t *testing.T) {
	begin := func(t *testing.T) *scenario {
		s := play(t, replayable)
		w := s.write(s.lane(1), "w", Immediate, 0)
		s.Answered(w.Call, Actual)
		a := s.read(s.lane(1), "a", 1)
		s.Answered(a.Call, Actual)
		s.want("start run 1", "send call 1", "resume run 1 call 1 answer -1", "settle call 1",
			"send call 2", "discard run 1 call 2", "start run 2")
		return s
	}
	t.Run("another effect", func(t *testing.T) {
		s := begin(t)
		s.write(s.lane(2), "v", Immediate, 0)
		s.want("hold call 3: another call that took effect has yet to be made")
		if s.Orphans() != 1 {
			t.Errorf("%d calls wait for the grace to end, want 1", s.Orphans())
		}
		s.Expire(true)
		s.want("diverge run 2 call 1", "discard run 2", "abandon call 3", "abandon call 2")
	})
	t.Run("returns", func(t *testing.T) {
		s := begin(t)
		s.returned(s.run(2))
		s.want("diverge run 2 call 1", "discard run 2", "abandon call 2")
		s.diverge(nil, nil)
		s.want()
	})
	t.Run("staged", func(t *testing.T) {
		s := begin(t)
		s.read(s.lane(2), "b", 1) // no guess is taken where the run leaves the path
		v := s.write(s.lane(2), "v", Staged, 0)
		s.want("hold call 3: another call that took effect has yet to be made",
			"hold call 4: another call that took effect has yet to be made")
		s.Expire(true)
		s.want("diverge run 2 call 1", "discard run 2", "abandon call 3", "abandon call 4", "abandon call 2")
		if v.Call.Confirmed() {
			t.Error("the second effect is confirmed")
		}
	})
}

// TestNoDivergenceOnAGuess checks that a run that is wrong may do anything: only
// one that is right and leaves the path is not deterministic.
func TestNoDivergenceOnAGuess(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	s.Join(s.lane(1), child) // had ended before anybody asked for a guess
	w := s.write(s.lane(1), "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	a := s.read(s.lane(1), "a", 1)
	s.Answered(a.Call, Actual)
	s.skip()

	child = s.Fork(s.lane(2))
	local := s.Call(s.lane(2), &CallSpec{Op: "local", Local: true, Predictions: 1})
	s.write(s.lane(2), "v", Immediate, 1)
	s.want("hold call 4: it has side effects and its caller is speculative")
	wrong := s.run(2)
	s.returned(wrong)
	s.want("offer run 2")
	s.Resolve(local.Call, []*Lane{child}, Actual)
	s.want("discard run 2 call 3", "abandon call 3", "abandon call 4", "start run 3")
	s.write(s.lane(3), "w", Immediate, 0)
	s.read(s.lane(3), "a", 0)
	s.returned(s.run(3))
	s.want("adopt run 3 call 1", "adopt run 3 call 2", "settle call 2", "final run 3", "commit run 3")
}

// TestRefusedAfterPlainSend checks that a call that was sent plainly, of whose
// run nothing is left when the peer says that it ran nothing, is not what a
// replay adopts.
func TestRefusedAfterPlainSend(t *testing.T) {
	s := play(t, replayable)
	other := s.Fork(s.lane(1))
	w := s.write(other, "w", Immediate, 0)
	a := s.read(s.lane(1), "a", 1)
	s.Answered(a.Call, Actual)
	s.want("start run 1", "send call 1", "send call 2", "discard run 1 call 2", "start run 2")
	s.Refused(w.Call, "not here")
	s.want("abandon call 1")
	again := s.write(s.Fork(s.lane(2)), "w", Immediate, 0)
	s.want("send call 3")
	s.Answered(again.Call, Actual)
	s.read(s.lane(2), "a", 0)
	s.returned(s.run(2))
	s.want("resume run 2 call 3 answer -1", "settle call 3", "adopt run 2 call 2", "settle call 2", "final run 2",
		"commit run 2")
}

// TestRefused checks that a refused call is held until its caller is right, and
// sent again at once if it is.
func TestRefused(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	a := s.read(s.lane(1), "a", 0)
	s.Refused(a.Call, "busy")
	s.want("start run 1", "send call 1 speculatively", "hold call 1: busy")
	s.ConfirmCaller()
	s.ConfirmCaller()
	s.want("send call 1")
	s.Refused(a.Call, "not speculatively")
	s.want("send call 1")
	if s.Caller() != CallerConfirmed {
		t.Error("the caller is not confirmed")
	}
	w := s.write(s.Fork(s.lane(1)), "w", Immediate, 0)
	s.Refused(w.Call, "not speculatively")
	s.want("send call 2", "send call 2")
	if n := len(s.sent.all); n != 1 {
		t.Errorf("%d calls took effect", n)
	}
}

// TestRefusedAmongMany checks that a call that did not happen is forgotten, and
// is no place where a replay would have to come by.
func TestRefusedAmongMany(t *testing.T) {
	s := play(t, replayable)
	for range 2 * recordScan {
		s.Answered(s.write(s.Fork(s.lane(1)), "w", Immediate, 0).Call, Actual)
	}
	w := s.write(s.Fork(s.lane(1)), "w", Immediate, 0)
	a := s.read(s.lane(1), "a", 1)
	s.Answered(a.Call, Actual)
	s.Refused(w.Call, "not here")
	for range 2 * recordScan {
		s.answers(s.write(s.Fork(s.lane(2)), "w", Immediate, 0), Actual)
	}
	s.read(s.lane(2), "a", 0)
	s.returned(s.run(2))
	s.skip()
	if s.final == nil {
		t.Error("the task diverged")
	}
}

// TestStagedInOrder checks that effects of goroutines that share a lane are
// confirmed one after the other.
func TestStagedInOrder(t *testing.T) {
	s := play(t, Config{CallerOpen: true})
	l := s.lane(1)
	a := s.Call(l, &CallSpec{Op: "a", Effect: Staged, Conflict: "a"})
	b := s.Call(l, &CallSpec{Op: "b", Effect: Staged, Conflict: "b"})
	s.want("start run 1", "send call 1 speculatively", "send call 2 speculatively")
	s.ConfirmCaller()
	s.want("confirm call 1")
	s.Answered(a.Call, Actual)
	s.want("resume run 1 call 1 answer -1", "settle call 1", "confirm call 2")
	s.Answered(b.Call, Actual)
	s.returned(s.run(1))
	s.want("resume run 1 call 2 answer -1", "settle call 2", "final run 1", "commit run 1")
}

// TestSharedLane checks that goroutines that share a lane may come in another
// order in another run: who is early waits for those whose calls took effect.
func TestSharedLane(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	x := s.write(s.lane(1), "x", Immediate, 0)
	a := s.read(child, "a", 1)
	s.Answered(a.Call, Actual)
	s.want("start run 1", "send call 1", "send call 2", "discard run 1 call 2", "start run 2")
	y := s.write(s.lane(2), "y", Immediate, 0)
	s.want("hold call 3: another call that took effect has yet to be made")
	s.write(s.lane(2), "x", Immediate, 0)
	s.want("adopt run 2 call 1", "send call 3")
	s.Answered(x.Call, Actual)
	s.Answered(y.Call, Actual)
	s.Expire(true)
	b := s.read(s.Fork(s.lane(2)), "a", 0) // the goroutine that wrote y may ask
	s.Answered(b.Call, Actual)
	s.returned(s.run(2))
	s.want("resume run 2 call 1 answer -1", "settle call 1", "resume run 2 call 3 answer -1", "settle call 3",
		"send call 4", "resume run 2 call 4 answer -1", "settle call 4", "final run 2", "commit run 2", "abandon call 2")
}

// TestConfirmedReadsStay checks that a replay of goroutines that share a lane
// uses what they read before they wrote, in whatever order they come: read again
// they would see what they are yet to write.
func TestConfirmedReadsStay(t *testing.T) {
	s := play(t, replayable)
	one := s.write(s.lane(1), "one", Immediate, 0)
	s.Answered(one.Call, Actual)
	read := s.read(s.lane(1), "read", 0)
	s.Answered(read.Call, Actual)
	write := s.write(s.lane(1), "write", Immediate, 1)
	s.Answered(write.Call, Actual)
	s.skip()
	s.answers(s.read(s.lane(2), "read", 0), Actual)
	s.want("adopt run 2 call 2")
}

// TestTouch checks that what follows a future that turned out to have had side
// effects is not what was made without them.
func TestTouch(t *testing.T) {
	s := play(t, replayable)
	if s.run(1).HasEffects() || s.lane(1).HasEffects() {
		t.Error("effects before there were any")
	}
	f := s.read(s.lane(1), "future", 1)
	s.read(s.lane(1), "a", 1)
	s.Answered(f.Call, Actual)
	s.skip()
	s.read(s.lane(2), "future", 0)
	s.Touch(s.lane(2), "future")
	s.Touch(s.lane(2), "nothing")
	if !s.run(2).HasEffects() || !s.lane(2).HasEffects() {
		t.Error("no effects")
	}
	s.read(s.lane(2), "a", 0)
	s.want("adopt run 2 call 1", "settle call 1", "send call 3")
}

// TestEffectsOfGoroutines checks that a run's effects include those of
// goroutines that nobody waited for.
func TestEffectsOfGoroutines(t *testing.T) {
	s := play(t, replayable)
	s.write(s.Fork(s.lane(1)), "w", Immediate, 0)
	if !s.run(1).HasEffects() || s.lane(1).HasEffects() {
		t.Error("the run has effects, its main lane has none")
	}
}
