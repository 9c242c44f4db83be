package spectree

import (
	"iter"
	"slices"
)

// Say two predictions are offered for the read of a balance, 5 and 7. The run that makes the call
// goes on with 5, and a sibling is started that runs the function from the top and goes on with 7.
// Its path lists what it will assume for calls that it has yet to make. If the answer is 7, the
// first run is discarded, and no replay is started: the sibling is that replay.
//
// The rule: of any two live runs, one assumes for some call what the other one does not, so at most
// one of them can be right. A run that might turn out the same as a live one is not started
// (isNew), and when the call that told two runs apart is gone, one of them goes (merge). Without
// the rule two runs could end up on no guess at all, and both pass the same barrier (plant
// twoSiblings). What is on a path counts as assumed already: a run whose path is refuted is
// discarded before it reaches the call (plant forgetPath).

// choice is an answer that a run will assume for a call once it makes it.
type choice struct {
	call   *Call
	answer int
}

// assume has the use go on with a prediction.
func (t *Tree) assume(u *Use, idx int) {
	r := u.Run
	r.ahead = true
	r.local = r.local || u.Call.spec.Local
	u.answer, u.since = idx, int32(len(r.uses))
	u.on = dep{prev: u.lane.dep, call: u.Call}
	u.lane.dep = &u.on
	if !r.take(u.Call) { // else it stood on this already
		r.open++
	}
	u.assumed = r.assumed
	r.assumed = u
	u.earlier, u.lane.guess = u.lane.guess, u
	if u.Call.basis(idx).effects {
		t.touch(u)
	}
	if r.assumptions++; int(r.assumptions) > 2*r.open+8 {
		r.assumptions = 0
		for range r.guessed() {
			r.assumptions++
		}
	}
}

// guessed returns the uses that go on with predictions of which it is not known
// whether they are right, the newest first. It forgets the others.
func (r *Run) guessed() iter.Seq[*Use] {
	return func(yield func(*Use) bool) {
		for at := &r.assumed; *at != nil; {
			u := *at
			if u.Call.answered || u.Call.dead {
				*at = u.assumed
				continue
			}
			if !yield(u) {
				return
			}
			at = &u.assumed
		}
	}
}

// take removes the call from the run's path, and reports whether it was there.
func (r *Run) take(c *Call) bool {
	for i, ch := range slices.Backward(r.path) {
		if ch.call == c {
			r.path = append(r.path[:i], r.path[i+1:]...)
			return true
		}
	}
	return false
}

// chosen returns what the run is to assume for a call that it makes only now.
func (r *Run) chosen(c *Call) (idx int, ok bool) {
	for _, ch := range slices.Backward(r.path) {
		if ch.call == c {
			return ch.answer, true
		}
	}
	return 0, false
}

// assumes returns which answer of an unanswered call the run stands on, if any.
func (r *Run) assumes(c *Call) (idx int, ok bool) {
	if u := c.useOf(r); u != nil && u.answer >= 0 {
		return u.answer, true
	}
	return r.chosen(c)
}

// before returns, newest first, what the run stands on among its first calls, that many, apart
// from c: all that another run that differs from it only in the answer for c is
// sure to stand on as well, if these are the calls that it made before c. If it
// has yet to make c, it may never come to what it was to assume after that.
func (r *Run) before(c *Call, calls int) []choice {
	var out []choice
	for u := range r.guessed() {
		if u.index < calls && u.Call != c && !u.Call.spec.Local {
			out = append(out, choice{u.Call, u.answer})
		}
	}
	path := r.path
	if i := slices.IndexFunc(path, func(ch choice) bool { return ch.call == c }); i >= 0 {
		path = path[i+1:]
	}
	for _, ch := range path {
		if !ch.call.dead {
			out = append(out, ch)
		}
	}
	return out
}

// guessesIn returns the path without what a doubter doubts, which is a doubter's only.
func guessesIn(path []choice) []choice {
	return slices.DeleteFunc(path, func(ch choice) bool { return ch.answer == noGuess })
}

// contradicts reports whether the run assumes another answer than path does
// for a call, so that only one of them can be right.
func (r *Run) contradicts(path []choice) bool {
	for _, ch := range path {
		if idx, ok := r.assumes(ch.call); ok && idx != ch.answer {
			return true
		}
	}
	return false
}

// isNew reports whether no live run follows path or something that may turn out
// to be path. Of two live runs one is wrong always: else what follows a
// barrier would be executed by both.
func (t *Tree) isNew(path []choice) bool { return t.isNewBut(nil, path) }

// isNewBut is isNew once this run has gone.
func (t *Tree) isNewBut(gone *Run, path []choice) bool {
	for _, r := range t.runs {
		if r != gone && !r.contradicts(path) {
			return false
		}
	}
	return true
}

// fork starts a sibling of r that answers c with another prediction, if the
// limits allow it. One run is left to fall back on.
func (t *Tree) fork(r *Run, c *Call, idx int) {
	l := &t.cfg.Limits
	if r.pinned || t.frozen || c.spec.NoPrediction || !t.cfg.Replayable {
		return
	}
	if len(t.runs) >= l.Width || t.running >= l.Runs || t.started >= l.Replays {
		t.limited |= ByWidth
		return
	}
	if path := append([]choice{{c, idx}}, guessesIn(r.before(c, r.madeBefore(c)))...); t.isNew(path) {
		t.startRun(r, path)
	}
}

// loss is a run that is to be discarded because of a call.
type loss struct {
	run   *Run
	calls int // that it made before
}

// madeBefore returns how many calls the run made before c, or all that it made
// if it has not made c.
func (r *Run) madeBefore(c *Call) int {
	if u := c.useOf(r); u != nil {
		return u.index
	}
	return len(r.uses)
}

// replace discards runs because of c, and starts those that take their places.
func (t *Tree) replace(lost []loss, c *Call) {
	for _, d := range lost {
		t.discard(d.run, c)
	}
	t.reconcile()
	for _, d := range lost {
		t.replay(d, c)
	}
}

// replay starts the run that takes the place of a discarded one, unless a live run does. It assumes
// what the discarded one stood on before the wrong guess, which may well be right. When the replays
// are used up, it assumes nothing, and one run goes on without guesses.
func (t *Tree) replay(d loss, c *Call) {
	var path []choice
	if t.started < t.cfg.Limits.Replays {
		path = guessesIn(d.run.before(c, d.calls))
	}
	if !t.over && t.isNew(path) {
		t.startRun(d.run, path)
	}
}

// expects reports whether a live run is sure to make the call.
func (t *Tree) expects(c *Call) bool {
	for _, r := range t.runs {
		if _, ok := r.chosen(c); ok {
			return true
		}
	}
	return false
}

// forget tells that no live run makes the call any more, so that nothing can be
// said about what depends on its answer.
func (t *Tree) forget(c *Call) {
	for _, r := range t.runs {
		if r.take(c) {
			r.open--
			t.doubtful = true
		}
	}
}

// reconcile deals with what follows from abandoned calls. Runs that may turn
// out to be the same as another one, since the call about which they disagreed
// is forgotten, are discarded, and calls that waited go on.
func (t *Tree) reconcile() {
	if !t.merge() {
		return
	}
	for _, r := range slices.Clone(t.runs) {
		t.releaseBarriers(r)
		t.finish(r)
	}
	t.reconcile()
}

// merge is the first half of reconcile. It reports whether runs may go on now. Only when doubtful
// is set may two runs have come to agree: a call that told them apart was forgotten or answered, or
// one of them was to assume something and does not any more.
func (t *Tree) merge() bool {
	if t.over {
		return false
	}
	for len(t.freed) > 0 {
		freed := t.freed
		t.freed = nil
		t.evaluateAll(freed)
	}
	if !t.doubtful {
		return false
	}
	t.doubtful = false
	for i := 0; i < len(t.runs); i++ {
		for j := len(t.runs) - 1; j > i; j-- {
			a, b := t.runs[i], t.runs[j]
			switch {
			case !a.agrees(b):
			case a.yields(b):
				t.discard(a, nil)
				j = len(t.runs) // to be compared with the next one
			default:
				t.discard(b, nil)
			}
		}
	}
	return true
}

// agrees reports whether both runs may turn out right.
func (r *Run) agrees(o *Run) bool { return !o.contradicts(r.before(nil, len(r.uses))) }

// missedPath reports whether the run was to assume an answer of a call that it
// has just not made, since it made c in its place, which is another variant, or none. Nothing
// tells the run from the one that made that call any more, so one of the two must
// go: both might turn out right, and take effect.
func (r *Run) missedPath(c *Call, k key) bool {
	i := slices.IndexFunc(r.path, func(ch choice) bool {
		o := ch.call.key
		return ch.call != c && o.lane == k.lane && o.op == k.op && o.occ == k.occ
	})
	if i < 0 || r.discarded {
		return false
	}
	if r.path[i].answer == noGuess {
		r.tree.prefer(r)
		return false
	}
	r.path = slices.Delete(r.path, i, i+1)
	r.open--
	r.tree.doubtful = true
	return true
}

// leavePath has the run assume nothing of calls that it has yet to make. It may
// turn out the same as another one then, see reconcile.
func (r *Run) leavePath() {
	if len(r.path) > 0 {
		r.open -= len(r.path)
		r.path = nil
		r.tree.doubtful = true
	}
}

// forgoPath is leavePath of a run that goes on.
func (t *Tree) forgoPath(r *Run) {
	r.leavePath()
	t.reconcile()
}

// forgoLocal has the run do without some of its guesses at results that it computes
// itself, and without them ever after.
func (t *Tree) forgoLocal(r *Run, which func(*Call) bool) {
	var wrong *Call
	for u := range r.guessed() {
		if c := u.Call; c.spec.Local && which(c) {
			t.refuteLocal(c)
			wrong = c
		}
	}
	if wrong != nil {
		t.Answered(wrong, Actual)
	}
}

// refuteLocal has no run take a prediction for the local call any more.
func (t *Tree) refuteLocal(c *Call) {
	s := t.note()
	if s.refuted == nil {
		s.refuted = make(map[key]struct{})
	}
	s.refuted[c.localKey()] = struct{}{}
}

// Withdraw tells that the prediction with this index is not offered any more:
// whoever made it stood on a wrong guess. It may still turn out right, but runs
// that stand on it are not worth their place. But if one of them has had a predicated call sent,
// which takes effect if the prediction is right, only the actual result refutes it: then nothing is
// withdrawn, and Withdraw returns false.
func (t *Tree) Withdraw(c *Call, idx int) bool {
	if c.answered || c.dead || t.over || slices.Contains(c.withdrawn, idx) {
		return true
	}
	var gone []loss
	for _, r := range t.runs {
		if got, ok := r.assumes(c); ok && got == idx {
			if r.sentAhead {
				return false
			}
			gone = append(gone, loss{r, r.madeBefore(c)})
		}
	}
	c.withdrawn = append(c.withdrawn, idx)
	t.replace(gone, c)
	return true
}

// offered returns the first prediction from index i on that is still offered,
// or c.predictions.
func (c *Call) offered(i int) int {
	for i < c.predictions && slices.Contains(c.withdrawn, i) {
		i++
	}
	return i
}
