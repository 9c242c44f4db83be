package spectree

import "slices"

// Code may stop waiting for a call: a timer or another goroutine ends the call's context, or it
// goes on without. A run that went on with a prediction waits no more, so nothing shows whether
// it would have given the call up by now. So once the call takes long, a second run is started
// beside it, the doubter, which waits for the call as plain code does and takes no predictions of
// its own.
//
//   - If the answer comes first, the doubter is not needed if a prediction was right,
//     and takes the place of the run that is wrong otherwise.
//   - If its code gives the call up first, that is what plain code would have done: the
//     runs that took a prediction are discarded. The same holds if it comes to a barrier
//     meanwhile, has an effect that no other run has, makes another call in its place, or
//     gives another call up at whose answer these runs guess.

// noGuess is what a doubter is to assume for its call, in place of a prediction.
const noGuess = -3

// Doubt starts a doubter beside runs that went on with predictions, for the call that was
// made first. There is one at a time: it is plain in all that comes after that call. It
// is started whatever the limits say, since the other runs may never come to their ends
// by themselves.
func (t *Tree) Doubt(uses []*Use) {
	var u *Use
	for _, o := range uses {
		if o.Doubtful() && o.Run.doubts() == nil && (u == nil || o.index < u.index) {
			u = o
		}
	}
	if u == nil {
		return
	}
	if d := t.doubter(); d != nil {
		now := d.doubts().useOf(u.Run)
		if now != nil && now.index <= u.index || t.doubting(d, u, uses) == nil {
			return
		}
		t.discard(d, nil)
		t.reconcile()
	}
	if !u.Doubtful() {
		return
	}
	if path := t.doubting(nil, u, uses); path != nil {
		t.extra++
		t.startRun(u.Run, path).plain = true
		t.out[len(t.out)-1].Call = u.Call
	}
}

// doubting returns what a doubter of the use's call is to assume, which does without all of these
// guesses, once a run has gone; nil if it would be one that there is. What the use's run is to
// assume for calls that it has yet to make is left out, unless nothing else tells the doubter from
// another run: goroutines may make these calls that the run does without by now, and then what the
// doubter was started for would wait for their guesses.
func (t *Tree) doubting(gone *Run, u *Use, uses []*Use) []choice {
	all := slices.DeleteFunc(u.Run.before(u.Call, u.index), func(ch choice) bool {
		return slices.ContainsFunc(uses, func(o *Use) bool { return o.Call == ch.call })
	})
	for _, yet := range []bool{false, true} {
		path := []choice{{u.Call, noGuess}}
		for _, ch := range all {
			if _, chosen := u.Run.chosen(ch.call); !chosen || yet {
				path = append(path, ch)
			}
		}
		if t.isNewBut(gone, path) {
			return path
		}
	}
	return nil
}

// Doubtful reports whether the use's run is alive and went on with a prediction of which nothing is
// known. It may be of a call with effects: what waits for it waits for nothing more that plain code
// would.
func (u *Use) Doubtful() bool {
	c := u.Call
	return u.answer >= 0 && !u.Run.discarded && !c.answered && !c.dead && !c.spec.Local
}

// doubter returns the run that is one, or nil.
func (t *Tree) doubter() *Run {
	i := slices.IndexFunc(t.runs, func(r *Run) bool { return r.doubts() != nil })
	if i < 0 {
		return nil
	}
	return t.runs[i]
}

// doubts returns the call that the run doubts the predictions of, or nil.
func (r *Run) doubts() *Call {
	if !r.plain {
		return nil
	}
	for _, ch := range r.path {
		if ch.answer == noGuess {
			return ch.call
		}
	}
	return nil
}

// doubted reports whether there is a doubter beside the run: whatever the run waits for, the
// doubter takes its place or helps it on.
func (t *Tree) doubted(r *Run) bool {
	d := t.doubter()
	if d == nil || d == r {
		return false
	}
	_, ok := r.assumes(d.doubts())
	return ok
}

// Insist tells that the code of the use gives it up. If its run is a doubter of the call, then it
// was right to doubt. The same holds if it is one of another call, and a run that it doubts went on
// with a guess at this one: nobody would end the call, which plain code does here, as long as that
// run lives, and what is ordered behind it would wait.
func (t *Tree) Insist(u *Use) {
	r := u.Run
	c := r.doubts()
	if u.answer != Waiting || c == nil {
		return
	}
	if c == u.Call || slices.ContainsFunc(u.Call.uses, func(o *Use) bool {
		idx, ok := o.Run.assumes(c)
		return o.answer >= 0 && ok && idx >= 0
	}) {
		t.prefer(r)
	}
}

// prefer discards the runs that took what a doubter doubts.
func (t *Tree) prefer(r *Run) {
	c := r.doubts()
	if c == nil || r.discarded {
		return
	}
	r.insists = true
	for _, o := range slices.Clone(t.runs) {
		if idx, ok := o.assumes(c); ok && idx >= 0 {
			t.discard(o, nil)
		}
	}
	t.relieve()
	t.reconcile()
}

// yields reports whether of two runs that may turn out to be the same r goes. One that
// doubts may be behind.
func (r *Run) yields(o *Run) bool { return !r.insists && (o.insists || r.plain && !o.plain) }

// relieve has a doubter be a run as any other, once no other run assumes what it doubts.
func (t *Tree) relieve() {
	r := t.doubter()
	if r == nil || t.over {
		return
	}
	c := r.doubts()
	for _, o := range t.runs {
		if idx, ok := o.assumes(c); ok && idx >= 0 {
			return
		}
	}
	r.take(c)
	r.open--
	t.doubtful = true
	t.reconcile()
}
