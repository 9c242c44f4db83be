package spectree

import (
	"slices"
	"sort"
)

// What makes two calls the same call cannot always be written down: a token that
// an interceptor takes from the context, an option that can only be compared. So
// calls of one Op in one place may come in variants. Who makes a call asks Find for
// each variant what it would use, and compares. What cannot be compared is the same
// where the tree is sure: a function that was told the same comes by the same call.

// Alone reports whether no run but the first was started: it finds no call of another's.
func (t *Tree) Alone() bool { return t.started <= 1 }

// Variants returns the highest variant that any call has.
func (t *Tree) Variants() int { return int(t.record.variants) }

// Certainty is how sure it is that a call that was found is the same call.
type Certainty uint8

// The kinds of Certainty.
const (
	// Doubtful: only if both can be compared, and are the same.
	Doubtful Certainty = iota
	// Sure: unless they can be compared, and differ: the run that turns out right makes
	// the call here, or a run did in whose lane the code was told nothing else.
	// It is not sure where one of the two gave up what the other one was told.
	// Goroutines that share a lane may still have come here in another order. Once that shows
	// the call is Doubtful, unless an effect that this run has yet to make has happened:
	// what the run would read anew would come from after that.
	Sure
	// Certain: whatever somebody compares.
	Certain
)

// Find returns the call that the lane would use if it made this one now, or nil if
// it would make a new one, and how sure it is that it is the same.
func (t *Tree) Find(l *Lane, s *CallSpec) (*Call, Certainty) {
	if s.Local {
		return nil, Certain
	}
	occ, _ := l.occurrence(s.Op)
	k := t.keyOf(l, s, occ)
	c, _ := t.lookup(l, k, s)
	switch {
	case c == nil, s.Once, c.irrevocable():
		return c, Certain
	case c.key.lane != l.id: // see counterpart: a guess at names is none at who asks
		return c, Doubtful
	case !c.Confirmed() && !l.repeats(c, k), t.notFollowed(l, k, c), t.gaveUp() && !t.onPathOf(l, c, t.ledBy(l, k, c)):
		return c, Doubtful
	case t.toldSame(l, k, c) != nil:
		return c, Doubtful
	case (t.reordered(l, c) || t.gaveUp() && l.toldOtherwise(c)) && !t.Behind(l.run):
		return c, Doubtful
	}
	return c, Sure
}

// toldOtherwise reports whether the lane was told something else than every run that made c, by
// another call in the same place, say: runs that gave up different calls may each be right.
func (l *Lane) toldOtherwise(c *Call) bool {
	other := func(u *Use) bool {
		same, _ := l.knowsNoOther(u.Run)
		return !same
	}
	return other(&c.use) && !slices.ContainsFunc(c.uses, func(u *Use) bool { return !other(u) })
}

// ledBy reports whether something took effect after the call that the lane's run has yet to make:
// see followed. Its code comes to that by this call, even if it gave up more than others before.
func (t *Tree) ledBy(l *Lane, k key, c *Call) bool {
	led, _ := t.followed(l, k.place(), c.spec.Effect)
	return led == c
}

// notFollowed reports whether another variant of the call is the one after which something took
// effect: see followed.
func (t *Tree) notFollowed(l *Lane, k key, c *Call) bool {
	if t.record.variants == 0 || t.madeAll(l.run) {
		return false
	}
	other, _ := t.followed(l, k.place(), c.spec.Effect)
	return other != nil && other != c
}

// toldSame returns another call that counts as right at c's place, and which a run made that was
// told what this lane was, as none was that made c; or nil. Runs that were told other things may
// each be right as far as they came.
func (t *Tree) toldSame(l *Lane, k key, c *Call) *Call {
	if c.spec.Effect != None || t.record.confirmedAt(k) == nil || !t.record.twins || l.repeats(c, k) {
		return nil
	}
	return t.confirmedWhere(k, func(o *Call) bool { return o != c && !t.astray(o, l.run) && l.repeats(o, k) })
}

// overlaps notes that the lane makes a call while another one is waited for: goroutines
// share the lane, and from that one on may swap their calls.
func (t *Tree) overlaps(l *Lane) {
	if l.overlapped {
		return
	}
	l.overlapped = true
	at := 0
	for _, u := range l.uses {
		if u.answer == Waiting {
			break
		}
		if !u.Call.spec.Local {
			at++
		}
	}
	s := t.note()
	if s.overlapAt == nil {
		s.overlapAt = make(map[string]int)
	}
	if known, ok := s.overlapAt[l.id]; !ok || at < known {
		s.overlapAt[l.id] = at
	}
}

// Overlapped reports whether calls of the lane overlapped in some run, here or before.
func (t *Tree) Overlapped(l *Lane) bool {
	at, ok := t.seldom().overlapAt[l.id]
	return ok && len(l.uses)-int(l.locals) >= at
}

// Behind reports whether an effect has happened that the run has yet to make.
func (t *Tree) Behind(r *Run) bool {
	return !t.madeAll(r) && slices.ContainsFunc(t.sent.all, func(c *Call) bool { return !r.made(c) && !r.excused(c) })
}

// reordered reports whether goroutines that share the lane may have come here in another order than
// in the runs that made c. Once the task's context has ended that counts no more: see unordered.
func (t *Tree) reordered(l *Lane, c *Call) bool {
	return !t.late && (t.Overlapped(l) || !l.inStep(c))
}

// repeats reports whether the lane is sure to make c at this place, since one of
// another run did, and this one was told nothing else.
func (l *Lane) repeats(c *Call, k key) bool {
	repeats := func(o *Run) bool {
		u := o.useAt(k)
		return u != nil && u.Call == c && l.toldAll(u)
	}
	if repeats(c.use.Run) {
		return true
	}
	for _, u := range c.uses {
		if repeats(u.Run) {
			return true
		}
	}
	for o := l.run.from; o != nil; o = o.from {
		if repeats(o) {
			return true
		}
	}
	return false
}

// toldAll reports whether the lane was told nothing else than another run's had been when it made
// the use, and gave up waiting for the same.
func (l *Lane) toldAll(u *Use) bool {
	if !l.gaps.within(u.gaps, nil) || !u.gaps.within(l.gaps, nil) ||
		!l.heardAs(len(l.heard), u.lane, u.lane.heardBefore(u.index)) {
		return false
	}
	same, _ := l.knowsNoOther(u.Run)
	return same
}

// inStep reports whether the lane has made what some run's did before that made c
// there, in the same order. Local calls do not count: see Heard. What one of the two gave up
// counts only if the other one made it, too: see toldAll.
func (l *Lane) inStep(c *Call) bool {
	if l.keepsStep(&c.use) {
		return true
	}
	return slices.ContainsFunc(c.uses, l.keepsStep)
}

func (l *Lane) keepsStep(u *Use) bool {
	at, its := l.strides[u.lane], u.lane.uses
	for {
		at.mine = passOver(l.uses, at.mine, func(o *Use) bool { return o.Call.spec.Local })
		at.its = passOver(its, at.its, func(o *Use) bool { return o.Call.spec.Local })
		if at.mine == len(l.uses) || at.its == len(its) || its[at.its] == u {
			break
		}
		switch mine, other := l.uses[at.mine], its[at.its]; {
		case mine.Call.key.place() == other.Call.key.place():
			at.mine, at.its = at.mine+1, at.its+1
		case other.gaveUp:
			at.its++
		case mine.gaveUp:
			at.mine++
		default:
			return false
		}
	}
	if l.strides == nil {
		l.strides = make(map[*Lane]stride)
	}
	l.strides[u.lane] = at
	left := func(o *Use) bool { return o != u && (o.gaveUp || o.Call.spec.Local) }
	at.mine, at.its = passOver(l.uses, at.mine, left), passOver(its, at.its, left)
	return at.mine == len(l.uses) && at.its < len(its) && its[at.its] == u
}

// passOver returns the index of the first use from i on for which the function returns false.
func passOver(uses []*Use, i int, is func(*Use) bool) int {
	for i < len(uses) && is(uses[i]) {
		i++
	}
	return i
}

// supersede replaces runs that made another variant of a call that is irrevocable now.
// Nobody was sure whether it was the same call; now the run that turns out right makes
// this one there, and none other. So it does with runs that made it under another lane's
// name: their replays find it, see counterpart. And so with runs that went on where the one
// that is right had given up before the call, or the other way round, or that made other calls
// on the way to it: they are on another path. And so with runs that wait for themselves now, see
// heldBack.
func (t *Tree) supersede() {
	for len(t.released) > 0 && !t.over {
		c := t.released[0]
		t.released = t.released[1:]
		var lost []loss
		for _, r := range t.runs {
			if u := r.useAt(c.key); u != nil && u.Call != c {
				lost = append(lost, loss{r, u.index})
			} else if u := r.overtakenBy(c); u != nil {
				lost = append(lost, loss{r, u.index})
			} else if g := r.leftOut(c); g != nil {
				lost = append(lost, loss{r, int(g.uses)})
			} else if u := t.byAnotherWay(r, c); u != nil {
				lost = append(lost, loss{r, u.index})
			} else if u := r.heldBack(c); u != nil {
				lost = append(lost, loss{r, u.index})
			} else if u := t.takenBy(r, c); u != nil {
				t.Shared(forker(u.lane, c.right.lane))
				lost = append(lost, loss{r, u.index})
			}
		}
		if len(lost) > 0 {
			t.replace(lost, c)
		}
	}
}

// heard is what a lane's code got from waiting for others of its run. Whether it had to
// make a local call for that is a matter of time.
type heard struct{ what, value, at int }

// Heard tells that the lane's code got a value from waiting for others of its run.
// Equal numbers mean what it waited for, and which value it got.
func (t *Tree) Heard(l *Lane, what, value int) {
	if !l.run.discarded {
		l.heard = append(l.heard, heard{what, value, len(l.run.uses)})
	}
}

// heardBefore returns how often the lane heard something before it made the run's
// use of this index.
func (l *Lane) heardBefore(index int) int {
	return sort.Search(len(l.heard), func(i int) bool { return l.heard[i].at > index })
}

// heardAs reports whether the lane first heard, n times, what another run's lane did,
// m times, and the same with those that forked them.
func (l *Lane) heardAs(n int, o *Lane, m int) bool {
	if n != m || !sameWords(l.heard[:n], o.heard[:m]) {
		return false
	}
	return l.parent == nil || o.parent == nil || l.parent.heardAs(int(l.parentHeard), o.parent, int(o.parentHeard))
}

func sameWords(a, b []heard) bool {
	return slices.EqualFunc(a, b, func(x, y heard) bool { return x.what == y.what && x.value == y.value })
}

// useAt returns what the run made at this place, whatever became of it since.
func (r *Run) useAt(k key) *Use {
	if r.at == nil {
		r.at = make(map[key]*Use, len(r.uses))
	}
	for _, u := range r.uses[r.inAt:] {
		r.at[u.Call.key.place()] = u
	}
	r.inAt = int32(len(r.uses))
	return r.at[k.place()]
}

// knowsNoOther reports whether all that led to where the lane is, in its own past
// and in that of the lanes that it comes from or has joined, was told nothing else
// than o was, as far as o was told of it; and whether that is known for good.
func (l *Lane) knowsNoOther(o *Run) (same, final bool) {
	return l.sawNoOther(o, len(l.uses), len(l.joined))
}

// stride is how many calls of a lane, and of another run's, are known to be the same.
type stride struct{ mine, its int }

// sameness is how much of a lane's past is known for good to be another run's, too.
type sameness struct{ uses, joined int }

// sawNoOther is knowsNoOther for the lane's first uses and joined lanes.
func (l *Lane) sawNoOther(o *Run, uses, joined int) (same, final bool) {
	known := l.same[o]
	allUses, allJoined, above := true, true, true
	for i := known.uses; i < uses; i++ {
		same, final := l.uses[i].toldAs(o, o.useAt(l.uses[i].Call.key))
		if !same {
			return false, true
		}
		if allUses = allUses && final; allUses {
			known.uses = i + 1
		}
	}
	for i := known.joined; i < joined; i++ {
		same, final := l.joined[i].wasToldAs(o)
		if !same {
			return false, true
		}
		if allJoined = allJoined && final; allJoined {
			known.joined = i + 1
		}
	}
	if l.same == nil {
		l.same = make(map[*Run]sameness)
	}
	l.same[o] = known
	if l.parent != nil {
		if same, above = l.parent.sawNoOther(o, int(l.parentUses), int(l.parentJoined)); !same {
			return false, true
		}
	}
	return true, allUses && allJoined && above
}

// wasToldAs is knowsNoOther for a lane that has ended, and for what it heard.
func (l *Lane) wasToldAs(o *Run) (same, final bool) {
	if same, final = l.knowsNoOther(o); !same {
		return false, true
	}
	if w := o.forked[l.id]; w != nil {
		n := min(len(l.heard), len(w.heard))
		return sameWords(l.heard[:n], w.heard[:n]), final && (o.discarded || n == len(l.heard))
	}
	return true, final && o.discarded
}

// toldAs reports whether the use was told nothing else than w was, which run o made
// at its place, if it did; and whether that is known for good.
func (u *Use) toldAs(o *Run, w *Use) (same, final bool) {
	switch {
	case u.Call.spec.Local: // see Heard
		return true, true
	case u.answer == Waiting: // for another goroutine that shares the lane
		return true, false
	case w == nil || w.answer == Waiting:
		return true, o.discarded
	case u.unneeded || w.unneeded, u.gaveUp && w.gaveUp:
		return true, true
	}
	return w.answer == u.answer && w.gaveUp == u.gaveUp && w.Call == u.Call, true
}
