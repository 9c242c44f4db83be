package spectree

import (
	"fmt"
	"slices"
)

// check returns the first of the tree's invariants that does not hold. It changes nothing, and
// costs about what a walk over all calls costs. They are of three kinds: what is counted or linked
// twice agrees (checkRun, checkLane, checkRecord); nothing wrong can come to take effect
// (checkSiblings, parts of checkCall); and nothing waits that need not (checkProgress, checkWaits).
func (t *Tree) check() error {
	if !t.over && t.started > 0 && len(t.runs) == 0 {
		return fmt.Errorf("no run is alive and the task is not over")
	}
	// A doubter is started whatever the limits say: see Doubt.
	width := t.cfg.Limits.Width
	if t.doubter() != nil {
		width++
	}
	if n := len(t.runs); n > width {
		return fmt.Errorf("%d runs are alive, more than the width %d", n, width)
	}
	if n := t.started - 1 - t.extra; n > max(0, t.cfg.Limits.Replays) {
		return fmt.Errorf("%d replays, more than %d", n, t.cfg.Limits.Replays)
	}
	for _, r := range t.runs {
		if err := t.checkRun(r); err != nil {
			return fmt.Errorf("run %d: %w", r.ID, err)
		}
	}
	for _, c := range t.record.all {
		if err := t.checkCall(c); err != nil {
			return fmt.Errorf("call %d: %w", c.ID, err)
		}
	}
	if err := t.checkRecord(); err != nil {
		return err
	}
	// A final run is the right one if its caller is, so any other would be wrong.
	if t.final != nil && !t.over && (len(t.runs) != 1 || t.runs[0] != t.final || t.final.open != 0) {
		return fmt.Errorf("run %d is final, %d runs are alive, it has %d open assumptions", t.final.ID, len(t.runs),
			t.final.open)
	}
	if err := t.checkSiblings(); err != nil {
		return err
	}
	return t.checkWaits()
}

// checkRun holds a run to what it stands on: no answer that is known to be wrong or is not offered
// any more, and open counts its guesses, those of its path included. When open is 0 barriers open
// and the run may be final, so a count that is too low lets wrong effects happen, and one that is
// too high lets the task wait for ever.
func (t *Tree) checkRun(r *Run) error {
	if r.discarded {
		return fmt.Errorf("it is discarded and counted as alive")
	}
	open := 0
	for _, u := range r.uses {
		c := u.Call
		if u.at < 0 {
			continue // the run gave the call up, see Drop
		}
		if int(u.at) >= len(c.uses) || c.uses[u.at] != u {
			return fmt.Errorf("call %d does not know its use", c.ID)
		}
		switch {
		case c.dead && !t.over:
			return fmt.Errorf("it uses call %d, which is abandoned", c.ID)
		case c.answered && u.answer != c.result:
			return fmt.Errorf("it goes on with answer %d of call %d, whose result is %d", u.answer, c.ID, c.result)
		case !c.answered && u.answer != Waiting && (u.answer < 0 || u.answer >= c.predictions):
			return fmt.Errorf("it goes on with answer %d of call %d, which has %d predictions", u.answer, c.ID, c.predictions)
		case !c.answered && slices.Contains(c.withdrawn, u.answer):
			return fmt.Errorf("it goes on with answer %d of call %d, which is withdrawn", u.answer, c.ID)
		case !c.answered && u.answer >= 0:
			open++
		}
		if u == u.lane.uses[0] {
			if err := checkLane(u.lane); err != nil {
				return fmt.Errorf("lane %q: %w", u.lane.id, err)
			}
		}
		if c.spec.Local && !t.over && c.pending != nil && !c.answered && c.pending.blocker() == nil {
			return fmt.Errorf("local call %d could be resolved", c.ID)
		}
	}
	for _, ch := range r.path {
		if ch.call.answered || ch.call.dead || slices.Contains(ch.call.withdrawn, ch.answer) {
			return fmt.Errorf("it is to choose answer %d of call %d, which is over", ch.answer, ch.call.ID)
		}
		open++
	}
	if open != r.open {
		return fmt.Errorf("%d open assumptions, counted %d", open, r.open)
	}
	for _, l := range r.parked {
		if !r.pinned || r.open == 0 && t.caller == CallerConfirmed && t.mayEnd() || l.run != r {
			return fmt.Errorf("lane %q waits at a barrier that it may pass", l.id)
		}
	}
	if r.returned && r.open == 0 && t.final == nil && t.mayEnd() {
		return fmt.Errorf("it returned, stands on no guess and is not final")
	}
	return nil
}

// checkLane holds a lane to its counts of calls in progress. Call and Fork tell by them that
// goroutines share the lane, and firstBefore which calls are in flight at the same time.
func checkLane(l *Lane) error {
	var waiting, awaited int32
	for _, u := range l.uses {
		if u.answer == Waiting {
			waiting++
			if s := &u.Call.spec; s.Effect != None || s.Ordered {
				awaited++
			}
		}
	}
	if waiting != l.waiting || awaited != l.awaited {
		return fmt.Errorf("%d calls in progress, %d with side effects or ordered, counted %d and %d", waiting, awaited,
			l.waiting, l.awaited)
	}
	return nil
}

// checkCall holds a call to what its state allows. A call is in the record as long as a run may
// still make it: it has uses, or is an orphan that a replay may adopt, or is certain, so that the
// run which turns out right makes it.
func (t *Tree) checkCall(c *Call) error {
	for i, u := range c.uses {
		if u.Run.discarded && !t.over || int(u.at) != i || u.Call != c {
			return fmt.Errorf("use %d is stale: run %d", i, u.Run.ID)
		}
	}
	if t.over {
		if !c.settled && !c.dead {
			return fmt.Errorf("it is pending and the task is over")
		}
		return nil
	}
	switch {
	case c.dead:
		return fmt.Errorf("it is abandoned and in the record")
	case c.spec.Local:
		return fmt.Errorf("it is local and in the record")
	case c.settled && !c.answered:
		return fmt.Errorf("it is settled without an answer")
	case c.confirmed && c.send == unsent && !c.refused:
		return fmt.Errorf("it is confirmed and was never sent")
	case c.orphanedAt > 0 && len(c.uses) > 0:
		return fmt.Errorf("it is an orphan with uses")
	case len(c.uses) == 0 && c.orphanedAt == 0 && !c.settled && (c.underWay() || !c.Confirmed()):
		return fmt.Errorf("nobody uses it and it is no orphan")
	case c.spec.Effect == Immediate && c.send == sentSpeculative:
		return fmt.Errorf("it has immediate effects and was sent speculatively")
	}
	return t.checkProgress(c)
}

// checkProgress reports that something may be done for the call that was not done. Evaluate is
// called by what may change its result (wakeOn); a wake that is missing shows here, and would
// otherwise show as a task that hangs. It works out anew what evaluate and dispatch did step by
// step.
func (t *Tree) checkProgress(c *Call) error {
	if len(c.uses) == 0 || c.settled || slices.Contains(t.early, c) {
		return nil
	}
	right, free, u := false, false, c.uses[0]
	for _, o := range c.uses {
		if t.caller == CallerConfirmed && o.dep.blocker() == nil {
			before, _ := t.before(o, true)
			free = free || before == nil
			if !right {
				right, u = true, o
			}
		}
	}
	if !right {
		before, _ := t.before(u, false)
		free = before == nil
	}
	free = free && !(right && t.parted(c) != nil)
	mayGo := right || c.spec.Effect != Immediate && !c.spec.NoSpeculation && !c.refused
	if !right && mayGo && c.spec.Effect == Predicated {
		_, missing := u.Run.gather(c.spec.Domain, u.dep)
		mayGo = missing == nil && t.caller == CallerConfirmed
	}
	switch {
	case c.send == unsent && !c.answered && free && mayGo:
		return fmt.Errorf("it is held for no reason (%q)", c.hold)
	case c.undecided() && c.holds():
		return fmt.Errorf("its conditions are true and it does not count as certain")
	case right && c.send == sentSpeculative && !c.confirmed && c.spec.Effect != Predicated &&
		(c.spec.Effect == None || t.blocker(u.eff, c, "") == nil):
		return fmt.Errorf("it is not confirmed although its caller is right")
	case right && c.answered && c.Confirmed():
		return fmt.Errorf("it is not settled although its caller is right")
	}
	return nil
}

func (t *Tree) checkRecord() error {
	for i, c := range t.record.all {
		if c.at != i {
			return fmt.Errorf("call %d is at %d in the record, not at %d", c.ID, i, c.at)
		}
	}
	if t.over {
		return nil
	}
	for i, c := range t.orphans {
		if c.orphanedAt == 0 || len(c.uses) > 0 || c.dead || int(c.orphan) != i {
			return fmt.Errorf("call %d is no orphan", c.ID)
		}
	}
	for _, c := range t.sent.all {
		if c.dead || !c.irrevocable() {
			return fmt.Errorf("call %d is counted among the irrevocable ones", c.ID)
		}
	}
	return nil
}

// checkSiblings reports two live runs that may both turn out right: each pair has to disagree about
// a call that is not answered. Then the answer discards one of them. Two that agreed would both
// come to stand on no guess, pass barriers, and make effects on different paths.
func (t *Tree) checkSiblings() error {
	for i, a := range t.runs {
		for _, b := range t.runs[:i] {
			if a.agrees(b) {
				return fmt.Errorf("runs %d and %d stand on guesses that do not contradict each other", b.ID, a.ID)
			}
		}
	}
	return nil
}
