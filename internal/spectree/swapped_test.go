package spectree

import (
	"slices"
	"testing"
)

// TestSwappedNames checks that a lane finds a call that took effect under the name of
// another one that did the same before, once, and only where names may be swapped.
func TestSwappedNames(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, replay []string // what each lane does, in the order of their forks
		shared        bool     // goroutines are known to share the lane that forks
		guesses       bool     // the replay stands on a guess
		calls         []int    // of the replay, lane by lane, from 1; those of the first run come first
	}{
		{"two that swapped", []string{"a", "b"}, []string{"b", "a"}, false, false, []int{2, 1}},
		{"one is gone", []string{"a", "b"}, []string{"b"}, false, false, []int{2}},
		{"an equal one more", []string{"a", "b"}, []string{"b", "b", "a"}, false, false, []int{2, 4, 1}},
		{"nothing is swapped", []string{"", "a"}, []string{"a", "a"}, false, false, []int{3, 1}},
		{"nothing that shows", []string{"", "a"}, []string{"a", ""}, false, false, []int{3}},
		{"goroutines share the lane", []string{"", "a"}, []string{"a", ""}, true, false, []int{1}},
		{"and another one comes", []string{"", "a"}, []string{"a", "a"}, true, false, []int{1, 3}},
		{"on a guess", []string{"a", "b"}, []string{"b", "a"}, true, true, []int{2, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, replayable)
			s.does(1, tt.first)
			if tt.shared {
				s.Shared(s.lane(1))
			}
			guess := s.read(s.lane(1), "guess", 1)
			s.Answered(guess.Call, Actual)
			if tt.guesses {
				s.read(s.lane(2), "another guess", 1)
			}
			s.skip()
			if got := s.does(2, tt.replay); !slices.Equal(got, tt.calls) {
				t.Errorf("the calls are %v, want %v", got, tt.calls)
			}
		})
	}
}

// does has a lane each write what the list says, if anything, and be answered if it was
// sent. It returns the calls.
func (s *scenario) does(run int, ops []string) (calls []int) {
	var lanes []*Lane
	for range ops {
		lanes = append(lanes, s.Fork(s.lane(run)))
	}
	for i, op := range ops {
		if op == "" {
			continue
		}
		u := s.write(lanes[i], op, Immediate, 0)
		if calls = append(calls, u.Call.ID); u.Call.Confirmed() && u.Answer() == Waiting {
			s.Answered(u.Call, Actual)
		}
	}
	return calls
}

// TestSwappedByStart checks that a lane whose name may be another one's is found out by what
// the lane that starts it did before: goroutines that share that one come in another order.
func TestSwappedByStart(t *testing.T) {
	for _, tt := range []struct {
		name    string
		replay  string // what the starting lane reads first in the replay
		guesses bool   // the replay stands on a guess then
		call    int    // that the replay makes; 5 is a new one
	}{
		{"in the same order", "p", false, 5},
		{"in another order", "q", false, 4},
		{"in another order, on a guess", "q", true, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, replayable)
			main := s.lane(1)
			s.Answered(s.read(main, "p", 0).Call, Actual)
			s.Fork(main) // does nothing yet
			s.Answered(s.read(main, "q", 0).Call, Actual)
			guess := s.read(main, "guess", 1)
			s.Answered(guess.Call, Actual) // wrong: run 2 forks as run 1 did
			main = s.lane(2)
			s.read(main, "p", 0)
			s.Fork(main)
			s.read(main, "q", 0)
			s.Answered(s.write(s.Fork(main), "a", Immediate, 0).Call, Actual)
			s.Answered(s.read(main, "another guess", 1).Call, Actual)
			main = s.lane(3)
			s.read(main, tt.replay, 0)
			if tt.guesses {
				s.read(main, "guess", 0)
				s.read(main, "a third guess", 1)
			}
			if u := s.write(s.Fork(main), "a", Immediate, 0); (u.Call.ID == 4) != (tt.call == 4) {
				t.Errorf("it is call %d, want %d", u.Call.ID, tt.call)
			}
		})
	}
}

// TestReorderedBeforeTheStart checks that goroutines that read on the starting lane's context in
// another order say nothing of the names of what it starts after both: each lane writes for itself.
func TestReorderedBeforeTheStart(t *testing.T) {
	s := play(t, replayable)
	start := func(run int, reads ...string) (one, other *Lane) {
		main := s.lane(run)
		for _, key := range reads {
			u := s.read(main, key, 0)
			if _, ok := u.Call.Answered(); !ok {
				s.Answered(u.Call, Actual)
			}
		}
		return s.Fork(main), s.Fork(main)
	}
	start(1, "p", "q")
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	one, _ := start(2, "p", "q")
	w := s.write(one, "a", Immediate, 0)
	s.Answered(w.Call, Actual)
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
	one, other := start(3, "q", "p")
	if u := s.write(other, "a", Immediate, 0); u.Call == w.Call {
		t.Error("a lane has another one's write")
	}
	if u := s.write(one, "a", Immediate, 0); u.Call != w.Call {
		t.Errorf("the write is call %d, made anew", u.Call.ID)
	}
}

// TestSwappedReads checks that a lane that swapped its name with another one gets what it
// read before it wrote: made anew, the reading would see the writing.
func TestSwappedReads(t *testing.T) {
	s := play(t, replayable)
	one, other := s.Fork(s.lane(1)), s.Fork(s.lane(1))
	s.Answered(s.read(one, "x", 0).Call, Actual)
	r := s.read(other, "r", 0)
	s.Answered(r.Call, Actual)
	w := s.write(other, "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	l := s.Fork(s.lane(2))
	if u := s.read(l, "r", 0); u.Call != r.Call {
		t.Errorf("the reading is call %d", u.Call.ID)
	}
	if u := s.write(l, "w", Immediate, 0); u.Call != w.Call {
		t.Errorf("the writing is call %d", u.Call.ID)
	}
}

// TestSwappedLanesThatGoroutinesShare: a lane that swapped its name finds what it made in whatever
// order the goroutines come that share it. Here one of them reads on before the other one has come
// to its write, which is equal to that of the first. What it reads after a write that the other
// lane's reading had not seen is made anew.
func TestSwappedLanesThatGoroutinesShare(t *testing.T) {
	for _, shared := range []bool{true, false} {
		s := play(t, replayable)
		s.Answered(s.read(s.Fork(s.lane(1)), "x", 0).Call, Actual)
		l := s.Fork(s.lane(1))
		first := s.write(l, "w", Immediate, 0)
		if !shared {
			s.Answered(first.Call, Actual)
		}
		r := s.read(l, "r", 0)
		s.Answered(first.Call, Actual)
		s.Answered(r.Call, Actual)
		second := s.write(l, "w", Immediate, 0)
		s.Answered(second.Call, Actual)
		last := s.write(l, "last", Immediate, 0)
		s.Answered(last.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		s.skip()
		l = s.Fork(s.lane(2))
		if u := s.write(l, "w", Immediate, 0); u.Call != first.Call {
			t.Errorf("shared: %v; the first write is call %d", shared, u.Call.ID)
		}
		if u := s.write(l, "w", Immediate, 0); (u.Call == second.Call) != shared {
			t.Errorf("shared: %v; the second write is call %d", shared, u.Call.ID)
		}
		if u := s.read(l, "r", 0); u.Call == r.Call {
			t.Errorf("shared: %v; the reading is that from before the second write", shared)
		}
		s.skip()
	}
}

// TestSwappedReadThatEnded checks that a lane gets no read that another one's context has ended, or
// may still end.
func TestSwappedReadThatEnded(t *testing.T) {
	for _, open := range []bool{false, true} {
		s := play(t, replayable)
		s.Shared(s.lane(1))
		other := s.Fork(s.lane(1))
		w := s.write(s.Fork(s.lane(1)), "w", Immediate, 0)
		r := s.read(other, "r", 0)
		guess := s.read(s.lane(1), "guess", 1)
		if !open {
			s.Ended(r.Call)
			s.Answered(r.Call, Actual)
		}
		s.Answered(w.Call, Actual)
		s.Answered(guess.Call, Actual)
		s.Fork(s.lane(2))
		if u := s.read(s.Fork(s.lane(2)), "r", 0); u.Call == r.Call {
			t.Errorf("still open: %v; the reading is that of another lane", open)
		}
		s.skip()
	}
}

// TestReadThatEndedUnderTheSameName: where goroutines share the lane that starts others, a read
// that the context of its code ended may be that of another lane which had this name. It is made
// anew then, once. Else the lane is told what it was told before.
func TestReadThatEndedUnderTheSameName(t *testing.T) {
	for _, shared := range []bool{true, false} {
		s := play(t, replayable)
		if shared {
			s.Shared(s.lane(1))
		}
		ended := s.read(s.Fork(s.lane(1)), "r", 0)
		s.Ended(ended.Call)
		s.Answered(ended.Call, Actual)
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		again := s.read(s.Fork(s.lane(2)), "r", 0)
		if (again.Call == ended.Call) == shared {
			t.Errorf("shared: %v; the replay reads by call %d, and %d ended", shared, again.Call.ID, ended.Call.ID)
		}
		s.Answered(again.Call, Actual)
		s.read(s.lane(2), "guess", 0)
		s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
		if u := s.read(s.Fork(s.lane(3)), "r", 0); u.Call != again.Call {
			t.Errorf("shared: %v; the next replay reads by call %d, want %d", shared, u.Call.ID, again.Call.ID)
		}
		s.skip()
	}
}

// TestReadsBehindOwnWrites checks that a lane whose write before was its own gets no read of
// another one that wrote the same, though names may be swapped: that one asks for its read itself.
func TestReadsBehindOwnWrites(t *testing.T) {
	s := play(t, replayable)
	s.does(1, []string{"w", "w"})
	s.Shared(s.lane(1))
	other := s.lane(1).run.forked["/2"]
	r := s.read(other, "r", 0)
	s.Answered(r.Call, Actual)
	s.Answered(s.write(other, "v", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	calls := s.does(2, []string{"w", "w"})
	one, other := s.lane(2).run.forked["/1"], s.lane(2).run.forked["/2"]
	if u := s.read(one, "r", 0); u.Call == r.Call || !slices.Equal(calls, []int{1, 2}) {
		t.Errorf("behind calls %v the first lane reads by call %d", calls, u.Call.ID)
	}
	if u := s.read(other, "r", 0); u.Call != r.Call {
		t.Errorf("the second lane reads by call %d", u.Call.ID)
	}
}

// TestNamesOnAGuess checks that a lane that did something else on a wrong guess of its own is
// not taken for one that swapped its name: of two that do the same each reads for itself.
func TestNamesOnAGuess(t *testing.T) {
	s := play(t, replayable)
	one, other := s.Fork(s.lane(1)), s.Fork(s.lane(1))
	p := s.read(other, "p", 1)
	s.read(other, "r of a wrong guess", 0)
	s.Answered(s.read(one, "p", 0).Call, Actual)
	r := s.read(one, "r", 0)
	s.Answered(r.Call, Actual)
	w := s.write(one, "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	s.Answered(p.Call, Actual)
	s.Fork(s.lane(2))
	other = s.Fork(s.lane(2))
	s.read(other, "p", 0)
	if u := s.read(other, "r", 0); u.Call == r.Call {
		t.Errorf("the reading is call %d", u.Call.ID)
	}
}

// TestSwappedAtOneMoment checks that a run gives way that made, under another lane's name, what
// takes effect in a run beside it: goroutines came to their Groups at one moment, and in
// another order in each.
func TestSwappedAtOneMoment(t *testing.T) {
	s := play(t, replayable)
	x := s.read(s.lane(1), "x", 2)
	one := s.Fork(s.lane(1))
	s.write(one, "a", Immediate, 0)
	s.write(s.Fork(s.lane(1)), "b", Immediate, 0)
	b := s.write(s.Fork(s.lane(2)), "b", Immediate, 0).Call // it stands on nothing, and happens
	if s.skip(); !one.run.discarded {
		t.Fatal("the first run goes on with another call")
	}
	s.read(s.lane(3), "x", 0)
	a := s.write(s.Fork(s.lane(3)), "a", Immediate, 0).Call
	if u := s.write(s.Fork(s.lane(3)), "b", Immediate, 0); u.Call != b {
		t.Errorf("it is made anew, as call %d", u.Call.ID)
	}
	s.Answered(b, Actual)
	s.Answered(x.Call, 0)
	s.skip()
	s.Answered(a, Actual)
	s.returned(s.run(3))
	s.skip()
	if s.final == nil || s.final.ID != 3 {
		t.Error("the task has no result")
	}
}

// TestLastRunMayGiveWay checks that a run alone that takes no guesses keeps its answers as long as
// it has yet to make what took effect in one beside it: it may make that under another lane's
// name, and give way to a replay, which asks for all of them.
func TestLastRunMayGiveWay(t *testing.T) {
	s := play(t, replayable)
	x := s.read(s.lane(1), "x", 2)
	b := s.write(s.Fork(s.lane(2)), "b", Immediate, 0).Call // it stands on nothing, and happens
	s.skip()
	s.Answered(x.Call, 0)
	s.skip()
	s.Barrier(s.lane(1))
	x.Take()
	if len(s.runs) > 1 || s.Last() != nil || s.Spent(x.Call) {
		t.Fatalf("%d runs are alive, and an answer is said to be spent: %v", len(s.runs), s.Spent(x.Call))
	}
	one := s.Fork(s.lane(1))
	s.write(one, "a", Immediate, 0)
	s.write(s.Fork(s.lane(1)), "b", Immediate, 0)
	if s.skip(); !one.run.discarded {
		t.Fatal("the run goes on with another call")
	}
	if u := s.read(s.lane(3), "x", 0); u.Call != x.Call {
		t.Errorf("the replay asks by call %d", u.Call.ID)
	}
	s.Barrier(s.lane(3))
	if u := s.write(s.Fork(s.lane(3)), "b", Immediate, 0); u.Call != b || s.Last() != s.run(3) {
		t.Errorf("it is made anew, as call %d, or the replay is not the last run", u.Call.ID)
	}
}

// TestNamesAfterAGuess checks that a lane whose starter went on with another answer is not taken
// for one that swapped its name: of two goroutines of one Group, the second of which was started on
// a wrong guess in the run that came first, each reads for itself, though that comes first in the
// next run.
func TestNamesAfterAGuess(t *testing.T) {
	for _, tt := range []struct {
		name          string
		open          bool // it is not known yet which guess is wrong
		grandchildren bool // lanes that these start read
	}{
		{"a wrong guess", false, false},
		{"another guess", true, false},
		{"a wrong guess of what started the starter", false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, replayable)
			fork := func(run int) *Lane {
				l := s.Fork(s.lane(run))
				if tt.grandchildren {
					l = s.Fork(l)
				}
				return l
			}
			one := fork(1)
			r := s.read(one, "r", 0)
			s.Answered(r.Call, Actual)
			w := s.write(one, "w", Immediate, 0)
			s.Answered(w.Call, Actual)
			guess := s.read(s.lane(1), "guess", 2)
			other := s.Fork(s.lane(1))
			s.Answered(s.read(other, "what only the first guess asks for", 0).Call, Actual)
			s.Fork(other)
			one = fork(2)
			s.read(s.lane(2), "guess", 2)
			if !tt.open {
				s.Answered(guess.Call, 1)
			}
			if u := s.read(fork(2), "r", 0); u.Call == r.Call {
				t.Errorf("the reading is call %d", u.Call.ID)
			}
			if u := s.read(one, "r", 0); u.Call != r.Call {
				t.Errorf("the reading that the lane made before is call %d now", u.Call.ID)
			}
		})
	}
}

// TestSharedOnAGuess checks that goroutines that share a lane on a wrong guess do not count as
// sharing it: one that makes then what another one's write has been makes a second one.
func TestSharedOnAGuess(t *testing.T) {
	for _, right := range []bool{false, true} {
		s := play(t, replayable)
		s.does(1, []string{"", "a"})
		guess := s.read(s.lane(1), "guess", 1)
		s.Shared(s.lane(1))
		run := s.answer(guess, right, 1)
		if right {
			run = s.answer(s.read(s.lane(1), "another guess", 1), false, 1)
		}
		got := s.does(run, []string{"a", ""})
		if adopted := got[0] == 1; adopted != right {
			t.Errorf("the guess was right: %v; the write is call %d", right, got[0])
		}
	}
}

// TestNamesOnAnOpenGuess: the same where nobody will know whether the guess was right, since its
// call was refused once its run was gone.
func TestNamesOnAnOpenGuess(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	one, other, third := s.Fork(s.lane(1)), s.Fork(s.lane(1)), s.Fork(s.lane(1))
	p := s.read(other, "p", 1)
	s.read(other, "r of a guess", 0)
	guess := s.read(third, "guess", 1)
	s.ConfirmCaller()
	s.Answered(s.read(one, "p", 0).Call, Actual)
	r := s.read(one, "r", 0)
	s.Answered(r.Call, Actual)
	s.Answered(s.write(one, "w", Immediate, 0).Call, Actual)
	s.Answered(guess.Call, Actual)
	s.Refused(p.Call, "refused")
	s.skip()
	s.Fork(s.lane(2))
	other = s.Fork(s.lane(2))
	s.read(other, "p", 0)
	if u := s.read(other, "r", 0); u.Call == r.Call {
		t.Errorf("the reading is call %d, of another lane", u.Call.ID)
	}
}

// TestDiscardedRunsTellNothing: code of a discarded run whose call has no answer goes on after the
// error, starts goroutines and skips calls. It does not count as a goroutine that shares a lane,
// nor as one that went on without a call.
func TestDiscardedRunsTellNothing(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	guess := s.read(l, "guess", 1)
	s.read(l, "waits", 0)
	s.Answered(guess.Call, Actual)
	if !l.run.discarded {
		t.Fatal("the run is alive")
	}
	s.Skip(s.Fork(l), &CallSpec{Op: "left"})
	if s.ambiguous || len(s.seldom().forkers) > 0 {
		t.Error("its lane counts as shared")
	}
	if s.gaveUp() {
		t.Error("it counts as one that went on without a call")
	}
}

// TestLeftOutIsNoOtherName: a lane that left a call out, and another one that made it, have not
// swapped names: a replay of the first that makes the call does not get that of the other one.
func TestLeftOutIsNoOtherName(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		s := play(t, replayable)
		a, b := s.Fork(s.lane(1)), s.Fork(s.lane(1))
		if dropped {
			s.Drop(s.read(a, "r", 0), false)
		} else {
			s.Skip(a, &CallSpec{Op: "r"})
		}
		s.Answered(s.read(a, "other", 0).Call, Actual)
		r := s.read(b, "r", 0)
		s.Answered(r.Call, Actual)
		s.Answered(s.write(b, "w", Immediate, 0).Call, Actual)
		s.Answered(s.read(b, "guess", 1).Call, Actual)
		if u := s.read(s.Fork(s.lane(2)), "r", 0); u.Call == r.Call {
			t.Errorf("dropped %v: a lane gets what another one read", dropped)
		}
		s.skip()
	}
}

// TestLeftOutBeforeTheStart: a replay leaves out a call that another run made before it started two
// lanes. So the lanes were started at other points, but have not swapped names.
func TestLeftOutBeforeTheStart(t *testing.T) {
	s := play(t, replayable)
	s.Answered(s.read(s.lane(1), "r", 0).Call, Actual)
	s.Fork(s.lane(1))
	w := s.write(s.Fork(s.lane(1)), "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	s.Skip(s.lane(2), &CallSpec{Op: "r"})
	if u := s.write(s.Fork(s.lane(2)), "w", Immediate, 0); u.Call == w.Call {
		t.Error("a lane gets what another one wrote")
	}
	s.skip()
}

// TestCertaintyUnderAnotherName: a read that another lane made, and this one makes if the two have
// swapped names, is the same only if that can be compared: names do not tell who asks.
func TestCertaintyUnderAnotherName(t *testing.T) {
	s := play(t, replayable)
	s.Fork(s.lane(1))
	r := s.read(s.Fork(s.lane(1)), "r", 0)
	s.Answered(r.Call, Actual)
	s.Shared(s.lane(1))
	s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	s.skip()
	s.finds("the read", s.Fork(s.lane(2)), "r", r.Call, Doubtful)
}
