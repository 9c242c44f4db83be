package spectree

import (
	"slices"
	"strings"
)

// Goroutines of a run race with each other where code cancels what others do, or
// goes on without them. Which of them is faster may differ from run to run. The
// rules here keep that from mattering: what one run did, and cannot be taken
// back, another one must be able to repeat.

// Firm reports whether the run stands on no guess of its own. Then the run takes
// no predictions any more: if its caller is right, no other run can be. If not, a
// Firm action follows once it stands on fewer. Call it only when none but
// spare lanes are still running.
//
// Plain code does not wait for lanes that are spare, and so for nothing that they guess. Once the
// run stands on nothing else, it does without these guesses: there the lanes wait themselves.
func (t *Tree) Firm(r *Run, spare func(*Lane) bool) bool {
	if r.open > 0 && !r.discarded && !t.over {
		t.forgoSpare(r, spare)
	}
	if r.discarded || t.over {
		return false
	}
	r.settling = r.open > 0
	r.pinned = r.pinned || !r.settling
	return !r.settling
}

// forgoSpare has the run do without the guesses of spare lanes if it stands on nothing else. What
// it was to assume for calls that it has yet to make it forgets, for these lanes would make them.
// If it doubts something, it was right: it came to its end without. Guesses that it took have it
// replayed.
func (t *Tree) forgoSpare(r *Run, spare func(*Lane) bool) {
	var first *Use
	for u := range r.guessed() {
		if !spare(u.lane) {
			return
		}
		first = u
	}
	for _, ch := range r.path {
		ch.call.spec.NoPrediction = true
	}
	t.prefer(r)
	t.forgoPath(r)
	if r.discarded || first == nil {
		return
	}
	for u := range r.guessed() {
		if u.Call.spec.Local {
			t.refuteLocal(u.Call)
		} else {
			u.Call.spec.NoPrediction = true
		}
	}
	t.replace([]loss{{r, first.index}}, first.Call)
}

// settledRun tells that the run stands on fewer guesses.
func (t *Tree) settledRun(r *Run) {
	if r.settling && !r.discarded {
		r.settling = false
		t.emitRun(Firm, r, nil)
	}
}

// Known reports whether none of these lanes, which have ended, stands on a guess that was made
// since it was forked.
func (t *Tree) Known(lanes []*Lane) bool {
	return !slices.ContainsFunc(lanes, func(l *Lane) bool { return len(l.Guesses()) > 0 })
}

// Guesses returns the guesses made since the lane was forked that it stands on.
func (l *Lane) Guesses() (uses []*Use) {
	if l.dep.blocker() == nil {
		return nil
	}
	for _, g := range l.dep.guesses(l.run) {
		if u := g.call.useOf(l.run); u.index >= int(l.forkedAt) {
			uses = append(uses, u)
		}
	}
	return uses
}

// WaitedFor reports whether another lane waited for this one to end, or went on with a guess at
// what it computes.
func (l *Lane) WaitedFor() bool {
	if l.waitedFor {
		return true
	}
	for u := range l.run.guessed() {
		if u.Call.spec.Local && l.computes(u.Call) {
			return true
		}
	}
	return false
}

// Owes reports whether a lane of the run, other than its main one, has yet to
// repeat a call that took effect.
func (t *Tree) Owes(r *Run) bool {
	return slices.ContainsFunc(t.sent.all, func(c *Call) bool {
		return c.Lane() != r.main.id && !r.made(c) && !r.excused(c)
	})
}

// covers reports whether id is that of the lane, or of one that the lane forked.
func covers(lane, id string) bool {
	rest, ok := strings.CutPrefix(id, lane)
	return ok && (rest == "" || rest[0] == '/')
}

// CutShort tells that the lane came to its end after the context of its code
// ended: of the calls that it and the lanes that it forked made in other runs, it
// may have been too late for some.
func (t *Tree) CutShort(l *Lane) { l.run.cut = append(l.run.cut, l) }

// excused reports whether the run may be right although it did not make the call.
func (r *Run) excused(c *Call) bool {
	return slices.ContainsFunc(r.cut, func(l *Lane) bool { return covers(l.id, c.Lane()) })
}

// Late reports whether the lane makes a call although the context of its code has
// ended: that came too late, since the run that turns out right is known to make
// this call of the lane, the next of its operation, and something has taken effect that
// the run has yet to make: it may have followed. If not, or if a run that was right went on
// to such an effect without the call, it is not made.
func (t *Tree) Late(l *Lane, s *CallSpec) bool {
	occ, _ := l.occurrence(s.Op)
	repeats := l.run.ID > 1 || s.Effect != None && !t.Alone() // the first run finds what has happened elsewhere, too
	if repeats && !s.Local && t.Behind(l.run) {
		if c := t.rightAt(l.run, keyAt(l.id, s, occ)); c != nil && !t.GivesWay(l, s) {
			return true
		}
	}
	t.Skip(l, s)
	return false
}

// Basis is what lanes stood on once.
type Basis struct{ guesses []choice }

// Basis returns what lanes of a run stand on.
func (t *Tree) Basis(lanes []*Lane) *Basis {
	b := new(Basis)
	for _, l := range lanes {
		b.guesses = append(b.guesses, l.dep.guesses(l.run)...)
	}
	return b
}

// Right reports whether that was right, or may have been.
func (b *Basis) Right() bool { return drop{b.guesses}.right() }
