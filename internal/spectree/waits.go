package spectree

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// The tree never hangs by its own doing, and this file is the argument for that, in a form that
// check can follow. Each wait names what it waits for. Followed from one to the next, the waits of
// a live run lead to something that is under way outside of the tree: an attempt, the word of the
// task's caller, user code, the end of the grace. They never lead back: a call waits for what its
// lane did before it, and a lane at a barrier for calls that were made.

// Cause is what kind of thing somebody waits for.
type Cause uint8

// The causes. The first five are outside of the tree.
const (
	ForAttempt Cause = iota // Call: its attempt, made for a caller that is right
	ForCaller               // the word of the task's caller
	ForCode                 // Call: local, and the run's code computes its answer
	ForGrace                // the end of the grace, see Expire
	ForHurry                // Call: it waited for so long that a run does without the guesses, see Hurry
	ForAnswer               // Call: its answer
	ForRun                  // Run: that it comes to make Call, or ends
)

// Wait is one thing that somebody waits for.
type Wait struct {
	Cause Cause
	Call  *Call
	Run   *Run
}

// String describes the wait, for whoever looks into one that does not end.
func (w Wait) String() string {
	switch w.Cause {
	case ForAttempt:
		return fmt.Sprintf("the attempt of call %d", w.Call.ID)
	case ForCaller:
		return "the caller's word"
	case ForCode:
		return fmt.Sprintf("the code that computes call %d", w.Call.ID)
	case ForGrace:
		return "the end of the grace"
	case ForHurry:
		return fmt.Sprintf("that call %d waited for long", w.Call.ID)
	case ForAnswer:
		return fmt.Sprintf("the answer of call %d", w.Call.ID)
	default:
		return fmt.Sprintf("run %d, to make call %d", w.Run.ID, w.Call.ID)
	}
}

// Waits returns what a lane at a barrier waits for: all of that has to come, or, if the lane is
// held up, another run without the guesses of others: see HurryLane.
// There is nothing if the lane is at none, or may pass.
func (l *Lane) Waits() []Wait {
	r := l.run
	if r.discarded || !slices.Contains(r.parked, l) {
		return nil
	}
	var out []Wait
	for _, u := range r.uses {
		if u.answer >= 0 && !u.Call.answered {
			out = append(out, Wait{Cause: ForAnswer, Call: u.Call})
		}
	}
	for _, ch := range r.path {
		out = append(out, Wait{Cause: ForRun, Run: r, Call: ch.call})
	}
	if r.tree.caller == CallerOpen {
		out = append(out, Wait{Cause: ForCaller})
	}
	if c := r.tree.unsettled(); c != nil {
		out = append(out, Wait{Cause: ForAttempt, Call: c})
	}
	return out
}

// Ways returns the ways to the answer of a call, as far as the run is concerned: one for each use
// of the call by the run, or by any run if it has none itself. One way is enough, and all that this
// way waits for has to come. A way without waits leads nowhere.
func (t *Tree) Ways(c *Call, r *Run) [][]Wait {
	switch {
	case c.answered || c.dead:
		return nil
	case c.spec.Local:
		return [][]Wait{c.pendingOn()}
	case c.Confirmed(), c.undecided():
		return [][]Wait{{{Cause: ForAttempt, Call: c}}}
	case len(c.uses) == 0:
		return [][]Wait{t.orphanWaits(c)}
	}
	var ways [][]Wait
	own := c.useOf(r) != nil
	for _, u := range c.uses {
		if u.Run == r || !own {
			ways = append(ways, u.waits())
			if u.Overtaken() && !u.hurried {
				ways = append(ways, []Wait{{Cause: ForHurry, Call: c}})
			}
		}
	}
	return ways
}

// waits returns what has to come for the call to be right and answered on account of this use. It
// asks in the same order as evaluate: is what led to the call right, may it be sent or confirmed,
// is it early. nil means that nothing is missing, which a call that is not answered and not
// confirmed should not be able to say.
func (u *Use) waits() []Wait {
	t, c := u.Run.tree, u.Call
	if b := u.dep.blocker(); b != nil {
		return []Wait{{Cause: ForAnswer, Call: b}}
	}
	if t.caller != CallerConfirmed {
		return []Wait{{Cause: ForCaller}}
	}
	var before *Call
	if c.send == unsent {
		before, _ = t.before(u, true)
	} else if c.spec.Effect != None {
		before = t.blocker(u.eff, c, "") // effects are confirmed one after the other
	}
	if p := t.parted(c); p != nil {
		before = p
	}
	if before != nil {
		return []Wait{{Cause: ForAnswer, Call: before}}
	}
	if slices.Contains(t.early, c) {
		return []Wait{{Cause: ForGrace}}
	}
	return nil
}

// pendingOn returns what a local call waits for.
func (c *Call) pendingOn() []Wait {
	if c.pending == nil {
		return []Wait{{Cause: ForCode, Call: c}}
	}
	var out []Wait
	for _, d := range c.pending.deps() {
		if b := d.blocker(); b != nil {
			out = append(out, Wait{Cause: ForAnswer, Call: b})
		}
	}
	return out
}

// orphanWaits returns what a call waits for that no run makes: a run that is sure to make it, or
// else the end of the grace, when it is abandoned.
func (t *Tree) orphanWaits(c *Call) []Wait {
	var out []Wait
	for _, r := range t.runs {
		if _, ok := r.chosen(c); ok {
			out = append(out, Wait{Cause: ForRun, Run: r, Call: c})
		}
	}
	if out == nil {
		out = []Wait{{Cause: ForGrace}}
	}
	return out
}

// Waiting reports whether code of the lane waits for the tree.
func (l *Lane) Waiting() bool { return l.waiting > 0 || slices.Contains(l.run.parked, l) }

// Waiting reports whether some run waits for the tree, not only for its task's
// caller or for the end of the grace.
func (t *Tree) Waiting() bool {
	if t.over || t.caller != CallerConfirmed || len(t.early) > 0 {
		return false
	}
	for _, r := range t.runs {
		if r.waiting > 0 || len(r.parked) > 0 || r.returned {
			return true
		}
	}
	return false
}

// Wants returns what the oldest run that waits waits for, for whoever looks into
// a task that is stuck.
func (t *Tree) Wants() (out []Wait) {
	for _, r := range t.runs {
		for _, l := range r.parked {
			out = append(out, l.Waits()...)
		}
		for _, u := range r.uses {
			if u.answer == Waiting {
				out = append(out, Wait{Cause: ForAnswer, Call: u.Call})
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// Live yields the runs that are alive.
func (t *Tree) Live() iter.Seq[*Run] { return slices.Values(t.runs) }

// GoOn has a task that is stuck go on without speculation, whatever keeps it: a run that stands on
// no guess stays, and is looked at again; otherwise one starts that takes no predictions, whatever
// the limits say. It is the way out if the argument above has a hole. It reports whether that
// changes anything.
func (t *Tree) GoOn() bool {
	t.frozen = true
	var firm, from *Run
	for _, r := range t.runs {
		if from = r; r.open == 0 {
			firm = r
		}
	}
	for i := len(t.runs) - 1; i >= 0; i-- {
		if r := t.runs[i]; r != firm {
			t.discard(r, nil)
		}
	}
	if firm == nil {
		t.extra++
		firm = t.startRun(from, nil)
	}
	t.sweep(t.started + 1)
	t.evaluateAll(slices.Clone(t.record.all))
	t.releaseBarriers(firm)
	t.finish(firm)
	t.reconcile()
	return len(t.out) > 0
}

// checkWaits returns what is wrong with the waits of the live runs, as far as
// the tree knows: whether user code executes it cannot know.
func (t *Tree) checkWaits() error {
	if t.over {
		return nil
	}
	for _, r := range t.runs {
		if t.doubted(r) {
			continue // whatever it waits for, the doubter takes its place or helps it on
		}
		w := &waitCheck{t: t, run: r}
		for _, l := range r.parked {
			for _, wait := range l.Waits() {
				if err := w.follow(wait); err != nil {
					return fmt.Errorf("lane %q of run %d waits at a barrier for %w", l.id, r.ID, err)
				}
			}
		}
		for _, u := range r.uses {
			if u.answer != Waiting {
				continue
			}
			if err := w.follow(Wait{Cause: ForAnswer, Call: u.Call}); err != nil {
				return fmt.Errorf("run %d waits for %w", r.ID, err)
			}
		}
	}
	return nil
}

// waitCheck follows the waits of a run, depth first. A call that is met again on the way to itself
// closes a circle.
type waitCheck struct {
	t    *Tree
	run  *Run
	seen map[*Call]bool // true once it is known to end well
}

func (w *waitCheck) follow(wait Wait) error {
	switch wait.Cause {
	case ForRun:
		// A run forgets at a barrier what it was to assume for later calls: see Barrier.
		if len(wait.Run.parked) > 0 {
			return fmt.Errorf("%v, which waits at a barrier", wait)
		}
		return nil
	case ForAnswer:
	default:
		return nil
	}
	c := wait.Call
	if well, seen := w.seen[c]; well || c.answered || c.Confirmed() {
		return nil
	} else if seen {
		return fmt.Errorf("%v, which waits for itself", wait)
	}
	if w.seen == nil {
		w.seen = make(map[*Call]bool)
	}
	w.seen[c] = false
	err := fmt.Errorf("%v, which waits for nothing", wait)
	for _, way := range w.t.Ways(c, w.run) {
		if e := w.all(way); e == nil {
			w.seen[c] = true
			return nil
		} else {
			err = fmt.Errorf("%v, and that for %w", wait, e)
		}
	}
	delete(w.seen, c) // by another way it may end well
	return err
}

func (w *waitCheck) all(way []Wait) error {
	if len(way) == 0 {
		return errors.New("nothing")
	}
	for _, wait := range way {
		if err := w.follow(wait); err != nil {
			return err
		}
	}
	return nil
}
