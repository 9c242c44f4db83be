package spectree

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// Goroutines that share a lane may start others, in Groups say, in another order in a
// replay. The lanes are named in that order, so two of them may have swapped names. If
// one of them makes a call that took effect under the other's name, it gets that one: two
// requests that are equal, of lanes that did nothing else before, are the same to the world.
// The same holds for reads before such a call: made anew they would see what came after. It holds
// for all reads once the task's context has ended: what the record does not have counts as not made
// in time.
//
// It has to show that names are swapped: each of two goroutines of one Group may write the same,
// and then these are two writes. It shows where the lane was started at another point of the code
// than the one that had its name in a run that was right so far, or does something else.

// counterpart returns a call that the right run makes under another lane's name, that this
// run has yet to make and that the lane makes now, if lanes swapped their names, or nil.
func (t *Tree) counterpart(l *Lane, k key, effect Effect) *Call {
	late := effect == None && t.late
	if l.parent == nil || l.run.ID == 1 || !late && t.madeAll(l.run) {
		return nil
	}
	calls := t.sent.equal(k.op)
	if effect == None {
		if !late && !t.Behind(l.run) {
			return nil // made anew it reads the same
		}
		calls = t.record.all
	}
	var found *Call // unless another one was made after the same calls in the same order
	for _, c := range calls {
		if c.spec.Op != k.op || c.key.occ != k.occ || c.key.variant != k.variant || c.key.lane == l.id || c.spec.Once ||
			c.spec.Effect == None != (effect == None) || effect == None && (c.ended || !c.answered) {
			continue // it ended, or may end, with another one's context
		}
		u := c.right
		if u == nil || !c.Confirmed() || l.run.made(c) || t.astray(c, l.run) {
			continue
		}
		n, m := len(l.uses), u.lane.before(u)
		same := l.alike(n, u.lane, m, true)
		if !same && (found != nil || !l.alike(n, u.lane, m, false)) || effect == None && !l.sameEffects(n, u.lane, m) ||
			!t.misnamed(l, n, k.op, u.lane) {
			continue
		}
		if found = c; same {
			break
		}
	}
	if found != nil {
		t.Shared(forker(l, found.right.lane))
	}
	return found
}

// taken returns a call that took effect in another run and is what the run, which has not
// made that, makes under another lane's name by this use, or nil. Two runs may have come as
// far as that before either was known to be right: goroutines that come to their Groups at
// one moment have other names in each.
func (t *Tree) taken(u *Use) *Call {
	c, r := u.Call, u.Run
	if u.lane.parent == nil || t.madeAll(r) || c.spec.Effect == None || c.spec.Once || c.Confirmed() {
		return nil
	}
	for _, o := range t.sent.equal(c.spec.Op) {
		if o.spec.Op != c.spec.Op || o.key.occ != c.key.occ || o.key.lane == c.key.lane || o.right == nil || r.made(o) {
			continue
		}
		if n, its := u.lane.before(u), o.right.lane; u.lane.alike(n, its, its.before(o.right), false) &&
			t.misnamed(u.lane, n, o.spec.Op, its) {
			return o
		}
	}
	return nil
}

// takenBy returns the use by which the run makes what took effect as call c, see taken, or nil.
func (t *Tree) takenBy(r *Run, c *Call) *Use {
	for _, u := range r.uses {
		if u.Call.spec.Op == c.spec.Op && t.taken(u) == c {
			return u
		}
	}
	return nil
}

// misnamed reports whether the lane, which after so many uses makes a call, may be the one
// that was o in another run: goroutines are known to have shared a lane when they started
// it, or what it comes from, or the two runs had other lanes under one of these names.
func (t *Tree) misnamed(l *Lane, uses int, op string, o *Lane) bool {
	if t.startedByShared(l) || t.sent.missing(l) != nil {
		return true
	}
	if its := o.run.forked[l.id]; its != nil && !its.misled() && !l.misled() {
		if told := t.compareStarts(l, its); told == otherwise || told == alike && t.does(its, l.uses[:uses], op) {
			return true
		}
	}
	if mine := l.run.forked[o.id]; mine != nil && !mine.misled() && !o.misled() {
		if told := t.compareStarts(mine, o); told == otherwise || told == alike &&
			t.compare(mine.uses, o.uses, false) == otherwise {
			return true
		}
	}
	return false
}

// startedByShared reports whether goroutines are known to have shared a lane when they started this
// one, or what it comes from.
func (t *Tree) startedByShared(l *Lane) bool {
	for p := l.parent; p != nil; p = p.parent {
		if slices.ContainsFunc(t.seldom().forkers[p.id], drop.right) {
			return true
		}
	}
	return false
}

// endedElsewhere reports whether the context of code ended the read that the lane has found, code
// that may be another lane's which had this one's name. What ended that tells nothing of this
// code's context: if that ends too, it ends a read that is made anew. As long as something has
// happened that the run has yet to make, the read may have led to that, and stays.
func (t *Tree) endedElsewhere(l *Lane, c *Call) bool {
	return c.ended && c.spec.Effect == None && !t.late && t.madeAll(l.run) && t.startedByShared(l)
}

// misled reports whether a lane that this one waited for, or what the lane computes, went on
// with a wrong guess, or the lane left a call out, or the same of what it comes from: on that
// the code may do anything, which tells nothing of names.
func (l *Lane) misled() bool {
	uses, joined := l.uses, l.joined
	for {
		if len(l.skipped) > 0 || slices.ContainsFunc(uses, func(u *Use) bool { return u.Call.spec.Local && u.wrong() }) ||
			slices.ContainsFunc(joined, func(j *Lane) bool { return slices.ContainsFunc(j.uses, (*Use).wrong) || j.misled() }) {
			return true
		}
		if l.parent == nil {
			return false
		}
		uses, joined, l = l.parent.uses[:l.parentUses], l.parent.joined[:l.parentJoined], l.parent
	}
}

// wrong reports whether the run went on with a guess that is known to be wrong.
func (u *Use) wrong() bool { return u.answer >= 0 && u.Call.answered && u.Call.result != u.answer }

// forker returns the lane that started l, or what it comes from, where o comes from another.
func forker(l, o *Lane) *Lane {
	for l.parent.id != o.parent.id {
		l, o = l.parent, o.parent
	}
	return l.parent
}

// comparison is what the calls of two lanes tell of their names.
type comparison uint8

const (
	alike     comparison = iota // they asked for the same
	otherwise                   // they asked for other things
	parted                      // they went on with other answers, after which code may do anything
)

// compareStarts compares what those did that started two lanes, from the outermost on.
func (t *Tree) compareStarts(a, b *Lane) comparison {
	if a.parent == nil || b.parent == nil {
		if a.parent != b.parent {
			return otherwise
		}
		return alike
	}
	if told := t.compareStarts(a.parent, b.parent); told != alike {
		return told
	}
	before, its := a.parent.uses[:a.parentUses], b.parent.uses[:b.parentUses]
	told := t.compare(before, its, true)
	if told == otherwise { // goroutines that share the lane make the same calls in another order
		if before, its = byOp(before), byOp(its); sameCalls(before, its) {
			told = t.compare(before, its, true)
		}
	}
	return told
}

// byOp returns what a lane made by what it asked for, and in order among equal ones.
func byOp(uses []*Use) []*Use {
	return slices.SortedStableFunc(slices.Values(uses), func(a, b *Use) int {
		return cmp.Compare(a.Call.spec.Op, b.Call.spec.Op)
	})
}

// compare compares what two lanes asked for: in all, or as far as both came.
func (t *Tree) compare(a, b []*Use, all bool) comparison {
	for x, y := range inTurn(a, b) {
		switch {
		case x == nil || y == nil:
			if all {
				return otherwise
			}
			return alike
		case x.Call.spec.Op != y.Call.spec.Op:
			return otherwise
		case x.parts(y):
			return parted
		}
	}
	return alike
}

// does reports whether the lane, which asked for the same as another one that has made these
// calls, and was told the same, then asked for another operation.
func (t *Tree) does(l *Lane, others []*Use, op string) bool {
	for x, y := range inTurn(others, l.uses) {
		switch {
		case y == nil:
			return false
		case x == nil:
			return y.Call.spec.Op != op
		case y.parts(x):
			return false
		}
	}
	return false
}

// inTurn yields what two lanes made one after the other, without local calls, as far as one of them
// came; beyond that of the other one nil.
func inTurn(a, b []*Use) iter.Seq2[*Use, *Use] {
	return func(yield func(_, _ *Use) bool) {
		for {
			a, b = skipLocal(a), skipLocal(b)
			if len(a) == 0 && len(b) == 0 {
				return
			}
			var x, y *Use
			if len(a) > 0 {
				x, a = a[0], a[1:]
			}
			if len(b) > 0 {
				y, b = b[0], b[1:]
			}
			if !yield(x, y) {
				return
			}
		}
	}
}

// parts reports whether two lanes went on with other answers for what they asked, or may have: of a
// call that is not the same one nothing tells that its answer was.
func (u *Use) parts(o *Use) bool {
	return u.Call != o.Call || u.answer != o.answer || u.gaveUp != o.gaveUp || u.wrong()
}

// alike reports whether the lane's first n calls are another one's first m, and the same
// of those that forked them. Unless order counts, that tells nothing of lanes that goroutines
// share: these come to their calls in another order in each run.
func (l *Lane) alike(n int, o *Lane, m int, order bool) bool {
	if l.id == o.id {
		return true
	}
	if l.parent == nil || o.parent == nil {
		return false
	}
	return (!order && (l.mixed || o.mixed) || sameCalls(l.uses[:n], o.uses[:m])) &&
		l.parent.alike(int(l.parentUses), o.parent, int(o.parentUses), order)
}

// sameCalls reports whether two lanes asked for the same.
func sameCalls(a, b []*Use) bool {
	for x, y := range inTurn(a, b) {
		if x == nil || y == nil || x.Call.spec.Op != y.Call.spec.Op {
			return false
		}
	}
	return true
}

// sameEffects reports whether the effects of the lane's first n calls are among those of another
// one's first m, which are alike, and the same of those that forked them. Lanes that swapped names
// have each other's effects. One that has its own did not, and what it reads comes after them.
func (l *Lane) sameEffects(n int, o *Lane, m int) bool {
	for ; l.id != o.id; n, m, l, o = int(l.parentUses), int(o.parentUses), l.parent, o.parent {
		for _, u := range l.uses[:n] {
			c := u.Call
			if c.spec.Effect != None && !slices.ContainsFunc(o.uses[:m], func(w *Use) bool { return w.Call == c }) {
				return false
			}
		}
	}
	return true
}

// before returns how many calls the lane made before the use.
func (l *Lane) before(u *Use) int {
	return sort.Search(len(l.uses), func(i int) bool { return l.uses[i].index >= u.index })
}

func skipLocal(uses []*Use) []*Use {
	for len(uses) > 0 && uses[0].Call.spec.Local {
		uses = uses[1:]
	}
	return uses
}

// adopt tells that the lane makes a call that there is, under this key. On a guess the
// lane's code may ask for anything, so that tells nothing of names.
func (t *Tree) adopt(c *Call, l *Lane, k key) {
	if c.key.lane != k.lane && !c.spec.Once && c.Confirmed() && !l.Speculative() {
		t.rename(c, k)
	}
	t.emitRun(Adopt, l.run, c)
}

// rename has the lane, which makes the call under this key, be the one that made it from
// now on: whoever has the call's former name may make an equal one.
func (t *Tree) rename(c *Call, k key) {
	effects := c.irrevocable()
	if effects {
		t.sent.remove(c)
	}
	t.record.rekey(c, key{lane: k.lane, op: k.op, occ: k.occ, variant: c.key.variant, eff: c.key.eff, ord: c.key.ord})
	if effects {
		t.sent.add(c)
	}
}
