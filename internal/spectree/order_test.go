package spectree

import "testing"

func (s *scenario) ordered(l *Lane, op string, predictions int) *Use {
	return s.Call(l, &CallSpec{Op: op, Ordered: true, Predictions: predictions})
}

// TestOrderOfSharedLanes checks that ordered calls of goroutines that share a
// lane are the same calls in whatever order a run makes them, and that what
// follows all of them is the same too. That they share it shows when a run comes
// to a call early although it was told what another one was told.
func TestOrderOfSharedLanes(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	a, b := s.ordered(l, "a", 1), s.ordered(l, "b", 1)
	w := s.Call(s.Fork(l), &CallSpec{Op: "w", Effect: Immediate, Ordered: true, Predictions: 1})
	s.want("start run 1", "send call 1", "hold call 2: an earlier ordered call is not answered",
		"hold call 3: an earlier ordered call is not answered")
	s.Answered(a.Call, 0)
	s.Answered(b.Call, 0)
	s.want("settle call 1", "send call 2", "settle call 2", "send call 3")
	s.Answered(w.Call, Actual)
	s.want("discard run 1 call 3", "start run 2")
	l = s.lane(2)
	s.dropped = make(map[key][]drop) // what is right is looked up by all that preceded it
	s.answers(s.ordered(l, "b", 1), 0)
	s.answers(s.ordered(l, "a", 1), 0)
	s.answers(s.Call(s.Fork(l), &CallSpec{Op: "w", Effect: Immediate, Ordered: true, Predictions: 1}), Actual)
	s.want("adopt run 2 call 2", "adopt run 2 call 1", "adopt run 2 call 3", "settle call 3")
}

// TestOrderWithinSharedLanes checks that nothing comes before what preceded it:
// if a goroutine makes another call than it did on a wrong guess, those after it
// are made again.
func TestOrderWithinSharedLanes(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	other := s.ordered(l, "other", 0)
	guess := s.read(l, "guess", 1)
	wrong := s.ordered(l, "wrong", 0)
	last := s.ordered(l, "last", 0)
	s.Answered(other.Call, Actual)
	s.Answered(wrong.Call, Actual)
	s.Answered(last.Call, Actual)
	s.skip()
	s.Answered(guess.Call, Actual)
	l = s.lane(2)
	s.answers(s.ordered(l, "other", 0), Actual)
	s.answers(s.read(l, "guess", 0), Actual)
	right := s.ordered(l, "right", 0)
	s.Answered(right.Call, Actual)
	s.answers(s.ordered(l, "last", 0), Waiting)
	s.want("discard run 1 call 2", "start run 2", "adopt run 2 call 1", "adopt run 2 call 2", "settle call 2",
		"send call 5",
		"resume run 2 call 5 answer -1", "settle call 5", "send call 6")
}

// TestOrderOfOneGoroutine checks that a run that was told something else may
// make its calls in another order, and that they keep it.
func TestOrderOfOneGoroutine(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	guess := s.read(l, "guess", 1)
	a := s.ordered(l, "a", 1)
	b := s.ordered(l, "b", 1)
	s.Answered(a.Call, 0)
	s.Answered(b.Call, 0)
	s.Answered(guess.Call, Actual)
	s.skip()
	l = s.lane(2)
	s.answers(s.read(l, "guess", 0), Actual)
	first := s.ordered(l, "b", 0)
	s.answers(first, Waiting)
	s.Answered(first.Call, Actual)
	s.answers(s.ordered(l, "a", 0), Waiting)
	s.want("adopt run 2 call 1", "settle call 1", "send call 4", "resume run 2 call 4 answer -1", "settle call 4",
		"send call 5")
}

// TestOrderOfTheRightRun: a call that is right does not wait for one that comes
// after it, although the run that made both first made them in another order.
func TestOrderOfTheRightRun(t *testing.T) {
	s := play(t, replayable)
	first := s.read(s.lane(1), "first", 2)
	late := CallSpec{Op: "late", Ordered: true, NoSpeculation: true}
	early := CallSpec{Op: "early", Ordered: true, Predictions: 1}
	s.Call(s.lane(1), &late)
	s.Call(s.lane(1), &early) // while the first is waited for: goroutines share the lane
	s.read(s.lane(2), "first", 0)
	u := s.Call(s.lane(2), &early)
	s.Call(s.lane(2), &late)
	s.skip()
	s.Answered(first.Call, 1)
	s.skip()
	if u.Call.send != sentPlain {
		t.Error("the call that comes first is not sent")
	}
	s.Answered(u.Call, 0)
	s.want("settle call 3", "send call 2")
}

// TestOrdersOfTwoRuns: of two runs that are right so far, and disagree about the order
// of two calls that neither has made on a guess, one turns out wrong later. Neither call
// waits for the other then.
func TestOrdersOfTwoRuns(t *testing.T) {
	s := play(t, replayable)
	first := s.ordered(s.lane(1), "first", 0)
	a, b := s.ordered(s.lane(1), "a", 0), s.ordered(s.lane(1), "b", 0)
	s.Predicted(first.Call)
	s.Predicted(first.Call)
	s.ordered(s.lane(2), "b", 0)
	s.skip()
	if b.Call.send != sentPlain {
		t.Error("the first call of the second run is not sent")
	}
	s.ordered(s.lane(2), "a", 0)
	s.ordered(s.lane(2), "first", 0)
	s.Answered(first.Call, 1)
	s.Answered(b.Call, Actual)
	s.skip()
	if a.Call.send != sentPlain {
		t.Error("the next one is not")
	}
}

// TestGoroutinesAtTheSameTime checks that calls with side effects which goroutines make in
// one lane are in flight at the same time, as in code without speculation, and what follows
// them comes after them all.
func TestGoroutinesAtTheSameTime(t *testing.T) {
	s := play(t, replayable)
	a := s.write(s.lane(1), "a", Immediate, 0)
	b := s.write(s.lane(1), "b", Immediate, 0)
	c := s.read(s.lane(1), "c", 0)
	s.want("start run 1", "send call 1", "send call 2", "send call 3")
	s.Answered(b.Call, Actual)
	s.Answered(c.Call, Actual)
	s.want("resume run 1 call 2 answer -1", "settle call 2", "resume run 1 call 3 answer -1", "settle call 3")
	d := s.write(s.lane(1), "d", Immediate, 0) // of the second goroutine, while the first one waits
	s.want("send call 4")
	s.Answered(a.Call, Actual)
	s.Answered(d.Call, Actual)
	s.skip()
	s.write(s.lane(1), "e", Immediate, 0)
	s.want("send call 5")
}

// TestGoroutineAfterWhatWasLeft checks that a call waits for one with side effects that the
// lane's code does not wait for any more, whatever other goroutines of the lane wait for.
func TestGoroutineAfterWhatWasLeft(t *testing.T) {
	s := play(t, replayable)
	a := s.write(s.lane(1), "a", Immediate, 0)
	s.Drop(a, false) // the code ended its context, and went on
	s.write(s.lane(1), "b", Immediate, 0)
	s.write(s.lane(1), "c", Immediate, 0) // beside b
	s.want("start run 1", "send call 1", "hold call 2: an earlier call with side effects is not answered",
		"hold call 3: an earlier call with side effects is not answered")
	s.Answered(a.Call, Actual)
	s.want("send call 2", "send call 3")
}

// TestWhatTheLaneWaitsForLater checks that an effect of another lane comes before a call that was
// made first, though a goroutine that shares the call's lane waits for that effect as well by now.
func TestWhatTheLaneWaitsForLater(t *testing.T) {
	s := play(t, replayable)
	act := &CallSpec{Op: "act", Effect: Immediate, NoPrediction: true, NoSpeculation: true, Once: true}
	child := s.Fork(s.lane(1))
	a := s.Call(child, act)
	s.Join(s.lane(1), child)
	s.read(s.lane(1), "b", 0)
	s.want("start run 1", "send call 1", "hold call 2: an earlier call with side effects is not answered")
	s.Call(s.lane(1), act)
	s.want("adopt run 1 call 1")
	s.Answered(a.Call, Actual)
	s.want("resume run 1 call 1 answer -1", "resume run 1 call 1 answer -1", "settle call 1", "send call 2")
}

// TestOrderBesideAnother checks that an ordered call that was entered with the whole order before
// it, since an equal one that came after other calls was in its place, is found when that one is
// gone.
func TestOrderBesideAnother(t *testing.T) {
	s := play(t, Config{Replayable: true, CallerOpen: true})
	l := s.lane(1)
	s.share(l)
	guess := s.read(l, "guess", 1)
	s.Answered(s.ordered(l, "before", 0).Call, Actual)
	first := s.ordered(l, "b", 0)
	s.Answered(first.Call, Actual)
	s.Answered(guess.Call, Actual)
	l = s.lane(2)
	s.read(l, "guess", 0)
	s.Answered(s.ordered(l, "another", 0).Call, Actual)
	second := s.ordered(l, "b", 0)
	if second.Call == first.Call {
		t.Fatal("a call is adopted although another one came before it")
	}
	s.Answered(second.Call, Actual)
	later := s.read(l, "later", 1)
	s.skip()
	s.Expire(false)
	s.Answered(later.Call, Actual)
	s.skip()
	l = s.lane(3)
	s.read(l, "guess", 0)
	s.ordered(l, "another", 0)
	if u := s.ordered(l, "b", 0); u.Call != second.Call {
		t.Errorf("it is made anew, as call %d", u.Call.ID)
	}
}

// TestWaitsDoNotShareLanes checks that a lane whose code got another value from waiting for a
// goroutine, or gave up waiting for a call, may make its ordered calls in another order, and counts
// as nobody else's.
func TestWaitsDoNotShareLanes(t *testing.T) {
	for name, waits := range map[string]func(s *scenario, l *Lane, run int){
		"another value": func(s *scenario, l *Lane, run int) { s.Heard(l, 1, run) },
		"a call not made": func(s *scenario, l *Lane, run int) {
			if run == 2 {
				s.Skip(l, &CallSpec{Op: "left"})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := play(t, replayable)
			l := s.lane(1)
			waits(s, l, 1)
			s.Answered(s.ordered(l, "a", 0).Call, Actual)
			s.Answered(s.ordered(l, "b", 0).Call, Actual)
			s.Answered(s.read(l, "guess", 1).Call, Actual)
			l = s.lane(2)
			waits(s, l, 2)
			s.ordered(l, "b", 0)
			if len(s.shared) > 0 {
				t.Error("goroutines seem to share the lane")
			}
		})
	}
}

// TestForkedBeside: a goroutine that shares a lane waits for a call in order when another one forks
// a lane of its own. Plain code makes the two calls at the same time.
func TestForkedBeside(t *testing.T) {
	for _, effect := range []Effect{None, Immediate} {
		s := play(t, replayable)
		call := func(l *Lane, op string, predictions int) *Use {
			return s.Call(l, &CallSpec{Op: op, Effect: effect, Ordered: true, Predictions: predictions})
		}
		call(s.lane(1), "slow", 0)
		child := s.Fork(s.Fork(s.lane(1)))
		if beside := call(child, "beside", 0); beside.Call.send != sentPlain {
			t.Errorf("effect %d: it is held: %s", effect, beside.Call.hold)
		}
		s.skip()

		s = play(t, replayable)
		call(s.lane(1), "guessed", 1)
		if after := call(s.Fork(s.lane(1)), "after", 0); after.Call.send != unsent {
			t.Errorf("effect %d: what follows a call that is guessed does not wait for it", effect)
		}
		s.skip()
	}
}

// TestBesideACallOfTwoLanes: a call that a run makes once and its lanes share is in flight beside
// what its own lane makes next, also where another lane was the first to make it.
func TestBesideACallOfTwoLanes(t *testing.T) {
	s := play(t, replayable)
	root := s.lane(1)
	once := &CallSpec{Op: "once", Effect: Immediate, Once: true}
	s.Call(s.Fork(root), once)
	s.Call(root, once)
	s.Call(s.Fork(root), &CallSpec{Op: "elsewhere", Ordered: true})
	if beside := s.Call(root, &CallSpec{Op: "beside", Ordered: true}); beside.Call.send != sentPlain {
		t.Errorf("it is held: %s", beside.Call.hold)
	}
	s.skip()
}

// TestOrderedReadBehindTwins: two runs make an ordered read anew in one place, since only one of
// them was about to make an effect before it, which it gave up. What is ordered behind the one came
// while the other was under way: a replay that finds that other one makes it anew.
func TestOrderedReadBehindTwins(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	guess := s.read(l, "guess", 1)
	s.Drop(s.write(l, "left", Immediate, 0), false)
	s.Answered(guess.Call, 0)
	w := s.write(l, "w", Immediate, 1)
	a := s.ordered(l, "a", 1)
	b := s.ordered(l, "b", 1)
	s.Doubt([]*Use{a})
	way := func(l *Lane) *Use {
		s.read(l, "guess", 0)
		s.Skip(l, &CallSpec{Op: "left", Effect: Immediate})
		s.write(l, "w", Immediate, 0)
		return s.ordered(l, "a", 0)
	}
	twin := way(s.lane(2))
	s.Answered(w.Call, 0)
	s.Answered(a.Call, 0)
	s.Answered(b.Call, Actual)
	if twin.Call == a.Call || twin.Call.answered || !b.Call.Confirmed() {
		t.Fatal("there are no two reads in one place")
	}
	s.Answered(twin.Call, Actual)
	s.skip()
	l = s.runs[0].Main()
	if u := way(l); u.Call != twin.Call {
		t.Fatalf("the replay finds call %d, want %d", u.Call.ID, twin.Call.ID)
	}
	if u := s.ordered(l, "b", 0); u.Call == b.Call {
		t.Error("what was sent before the ordered call's answer counts as made after it")
	}
	s.skip()
}

// TestOrderedReadBesideAnother: goroutines that share a lane make two ordered reads, the replay in
// the other order. It still waits for the one when it comes to the other, so they are in flight at
// the same time, and the answer that led to an effect counts for it, too.
func TestOrderedReadBesideAnother(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	a := s.ordered(l, "a", 1)
	s.Skip(l, &CallSpec{Op: "left"})
	b := s.ordered(l, "b", 2)
	replay := s.lane(2)
	again := s.ordered(replay, "b", 0)
	if again.Call == b.Call {
		t.Fatal("the replay's read is the other run's")
	}
	s.Answered(a.Call, 0)
	w := s.write(l, "w", Immediate, 0)
	s.Answered(w.Call, Actual)
	if !a.Call.Confirmed() {
		t.Fatal("the read is not right")
	}
	if u := s.ordered(replay, "a", 0); u.Call != a.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, a.Call.ID)
	}
	s.skip()
}

// TestOrderedReadThatLedToAnEffect: two runs gave an ordered read up, and one of them made another
// one that the other run did not, so that they made what follows anew in one place. Of these two
// reads a replay makes the one after which an effect happened.
func TestOrderedReadThatLedToAnEffect(t *testing.T) {
	s := play(t, replayable)
	l := s.lane(1)
	s.Drop(s.ordered(l, "left", 0), false)
	a, guess := s.ordered(l, "a", 2), s.read(l, "guess", 1)
	l = s.lane(2)
	s.Drop(s.ordered(l, "left", 0), false)
	s.skip()
	s.Answered(s.ordered(l, "other", 0).Call, Actual)
	b := s.ordered(l, "a", 0)
	if b.Call == a.Call {
		t.Fatal("there are no two reads in one place")
	}
	s.Answered(b.Call, Actual)
	s.Answered(s.write(l, "w", Immediate, 0).Call, Actual)
	s.Answered(a.Call, 0)
	s.Answered(guess.Call, Actual)
	s.skip()
	l = s.runs[len(s.runs)-1].Main()
	s.Skip(l, &CallSpec{Op: "left", Ordered: true})
	s.Skip(l, &CallSpec{Op: "other", Ordered: true})
	if u := s.ordered(l, "a", 0); u.Call != b.Call {
		t.Errorf("run %d makes call %d, want %d", l.run.ID, u.Call.ID, b.Call.ID)
	}
	s.skip()
}

// TestOrderedReadInOrder: goroutines that share a lane come to their ordered reads in another order
// in each run, so that two runs make one of these reads each: the first one was sent before another
// read's answer. Both are right. A replay that has yet to make an effect makes the read that led to
// it, or, if the effect is that of another goroutine, the one that was sent in order.
func TestOrderedReadInOrder(t *testing.T) {
	for _, tt := range []struct {
		name            string
		left, elsewhere bool
	}{
		{name: "what led to an effect"},
		{name: "once a call was left out", left: true},
		{name: "beside an effect", elsewhere: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := play(t, replayable)
			reads, writes := s.lane, s.lane
			if tt.elsewhere {
				lanes := make(map[int][2]*Lane)
				of := func(run int) [2]*Lane {
					if _, ok := lanes[run]; !ok {
						lanes[run] = [2]*Lane{s.Fork(s.lane(run)), s.Fork(s.lane(run))}
					}
					return lanes[run]
				}
				reads, writes = func(run int) *Lane { return of(run)[0] }, func(run int) *Lane { return of(run)[1] }
			}
			s.Answered(s.ordered(reads(1), "a", 0).Call, Actual)
			first := s.ordered(reads(1), "r", 1)
			s.ordered(reads(1), "b", 1)
			s.Answered(first.Call, Actual)

			s.Answered(s.ordered(reads(2), "b", 0).Call, Actual)
			second := s.ordered(reads(2), "r", 0)
			if second.Call == first.Call {
				t.Fatal("what was sent before the other read's answer counts as made after it")
			}
			s.Answered(second.Call, Actual)
			s.Answered(s.read(reads(2), "first guess", 1).Call, Actual)

			way := func(l *Lane) {
				s.ordered(l, "a", 0)
				s.ordered(l, "b", 0)
				if u := s.ordered(l, "r", 0); u.Call != second.Call {
					t.Errorf("run %d makes call %d, want %d", l.run.ID, u.Call.ID, second.Call.ID)
				}
			}
			way(reads(3))
			s.Answered(s.write(writes(3), "w", Immediate, 0).Call, Actual)
			if tt.left {
				s.Skip(reads(3), &CallSpec{Op: "left"})
			}
			s.Answered(s.read(reads(3), "guess", 1).Call, Actual)
			way(reads(4))
			s.skip()
		})
	}
}

// TestOrderedReadBesideAnEffect: an ordered read of a lane that nobody had waited for did not lead
// to the effect of the lane that started it. A replay that has yet to make the effect makes the
// read that was sent in order, of two that are right.
func TestOrderedReadBesideAnEffect(t *testing.T) {
	for _, waited := range []string{"never", "later", "by another", "before"} {
		s := play(t, replayable)
		child := s.Fork(s.lane(1))
		s.Skip(child, &CallSpec{Op: "left"})
		first := s.ordered(child, "r", 0)
		s.Answered(first.Call, Actual)
		switch waited {
		case "before":
			s.Join(s.lane(1), child)
		case "by another":
			s.Join(s.Fork(s.lane(1)), child)
		}
		s.Answered(s.write(s.lane(1), "w", Immediate, 0).Call, Actual)
		if waited == "later" {
			s.Join(s.lane(1), child)
		}
		s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
		s.skip()

		child = s.Fork(s.lane(2))
		s.write(s.lane(2), "w", Immediate, 0)
		s.Answered(s.ordered(child, "left", 0).Call, Actual)
		second := s.ordered(child, "r", 0)
		if second.Call == first.Call {
			t.Fatal("what was sent before the other read's answer counts as made after it")
		}
		s.Answered(second.Call, Actual)
		s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)
		s.skip()

		child = s.Fork(s.lane(3))
		s.ordered(child, "left", 0)
		want := second.Call
		if waited == "before" {
			want = first.Call
		}
		if u := s.ordered(child, "r", 0); u.Call != want {
			t.Errorf("waited for %s: the replay makes call %d, want %d", waited, u.Call.ID, want.ID)
		}
		s.skip()
	}
}

// TestOrderedReadBehindAnEffect: a run goes by another way than an earlier one, since it left a
// call out, and an effect of another lane happens before the run comes to a read that the earlier
// one made. A replay that has yet to make the effect, and makes the read after one that the earlier
// run had not made, does not find it: it was sent before the answer to that.
func TestOrderedReadBehindAnEffect(t *testing.T) {
	s := play(t, replayable)
	s.Answered(s.read(s.lane(1), "left", 0).Call, Actual)
	first := s.ordered(s.Fork(s.lane(1)), "r", 0)
	s.Answered(first.Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)

	way := func(run int) (child *Lane, before *Use) {
		s.Skip(s.lane(run), &CallSpec{Op: "left"})
		child = s.Fork(s.lane(run))
		return child, s.ordered(child, "before", 0)
	}
	_, before := way(2)
	s.Answered(before.Call, Actual)
	s.Answered(s.write(s.lane(2), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)

	child, again := way(3)
	if again.Call != before.Call {
		t.Fatal("the replay makes the first read anew")
	}
	if u := s.ordered(child, "r", 0); u.Call == first.Call {
		t.Error("the replay takes an answer from before the one that the read follows")
	}
	s.skip()
}

// TestLeftOutIsNoOtherOrder: a run gave a call up that its replay does not make at all, and so
// comes at once to what followed. That does not show that goroutines share the lane, where calls
// may come in any order.
func TestLeftOutIsNoOtherOrder(t *testing.T) {
	s := play(t, replayable)
	s.Drop(s.ordered(s.lane(1), "left", 0), false)
	next := s.ordered(s.lane(1), "next", 1)
	s.skip()
	s.Answered(next.Call, Actual)
	s.Skip(s.lane(2), &CallSpec{Op: "left", Ordered: true})
	if u := s.ordered(s.lane(2), "next", 0); u.Call != next.Call {
		t.Error("the replay makes the call anew")
	}
	if len(s.shared) > 0 {
		t.Error("the lane counts as one that goroutines share")
	}
	s.skip()
}

// TestOrderedReadOnItsPath: two runs made an ordered read in one place, of which one had given up
// another call. A replay that leaves that call out makes the read on its own path, though an effect
// that it has yet to make has happened.
func TestOrderedReadOnItsPath(t *testing.T) {
	s := play(t, replayable)
	child := s.Fork(s.lane(1))
	s.Answered(s.ordered(child, "before", 0).Call, Actual)
	s.Answered(s.ordered(child, "r", 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)

	child = s.Fork(s.lane(2))
	s.Drop(s.ordered(child, "left", 0), false)
	s.Answered(s.write(s.lane(2), "w", Immediate, 0).Call, Actual)
	second := s.ordered(child, "r", 0)
	s.skip()
	s.Answered(second.Call, Actual)
	s.Answered(s.read(s.lane(2), "another guess", 1).Call, Actual)

	child = s.Fork(s.lane(3))
	s.Skip(child, &CallSpec{Op: "left", Ordered: true})
	if u := s.ordered(child, "r", 0); u.Call != second.Call {
		t.Errorf("the replay makes call %d, want %d", u.Call.ID, second.Call.ID)
	}
	s.skip()
}

// TestOrderedReadBehindAGivenUpCall: a replay that gives up the same call as the run that was right
// finds the ordered read that followed, though it made the call that it gave up anew: made anew,
// the read would be from after an effect that has happened.
func TestOrderedReadBehindAGivenUpCall(t *testing.T) {
	s := play(t, replayable)
	way := func(run int) *Use {
		child := s.Fork(s.lane(run))
		s.Drop(s.ordered(child, "left", 0), false)
		s.skip()
		r := s.ordered(child, "r", 0)
		s.Join(s.lane(run), child)
		return r
	}
	first := way(1)
	s.Answered(first.Call, Actual)
	s.Answered(s.write(s.Fork(s.lane(1)), "w", Immediate, 0).Call, Actual)
	s.Answered(s.read(s.lane(1), "guess", 1).Call, Actual)
	if u := way(2); u.Call != first.Call {
		t.Error("the replay reads anew")
	}
	s.skip()
}

// TestCallsOfOneDomain: a callee that keeps its calls in order gets one while another one is under
// way. Two callees get them one after the other.
func TestCallsOfOneDomain(t *testing.T) {
	d := new(Domain)
	for _, test := range []struct {
		name          string
		first, second *Domain
		sent          bool
	}{{"one", d, d, true}, {"two", d, new(Domain), false}, {"none", nil, nil, false}, {"one of them", d, nil, false}} {
		t.Run(test.name, func(t *testing.T) {
			s := play(t, replayable)
			s.answers(s.Call(s.lane(1), &CallSpec{Op: "a", Ordered: true, Domain: test.first, Predictions: 1}), 0)
			b := s.Call(s.lane(1), &CallSpec{Op: "b", Ordered: true, Domain: test.second})
			s.skip()
			if sent := b.Call.send != unsent; sent != test.sent {
				t.Errorf("the second call is sent: %v", sent)
			}
		})
	}
}
