package spectree

import "sort"

// Goroutines that share a lane may start others, in Groups say, in another order in a
// replay. The lanes are named in that order, so two of them may have swapped names. If
// one of them makes a call that took effect under the other's name, it gets that one: two
// requests that are equal, of lanes that did nothing else before, are the same to the world.

// counterpart returns an irrevocable call that the run has yet to make and that the lane
// makes now, if lanes swapped their names, or nil. On a guess code may ask for anything.
func (t *Tree) counterpart(l *Lane, k key) *Call {
	if l.parent == nil || l.run.ID == 1 || l.Speculative() || t.breaks(trustNames) {
		return nil
	}
	for _, c := range t.sent.all {
		if c.spec.Op != k.op || c.key.occ != k.occ || c.key.variant != k.variant || c.spec.Once || l.run.made(c) {
			continue
		}
		if l.alike(len(l.uses), c.use.lane, c.use.lane.before(&c.use)) && (t.misnamed(l) || l.run.forked[c.lane].strays(c.use.lane)) {
			return c
		}
	}
	return nil
}

// strays reports whether the lane, which may be nil, did otherwise than another one.
func (l *Lane) strays(o *Lane) bool {
	return l != nil && !sameCalls(l.uses, o.uses, false)
}

// misnamed reports whether the lane's name may be another one's: goroutines shared a lane
// when they started it, or what it comes from, or its code does not do what was done
// under its name.
func (t *Tree) misnamed(l *Lane) bool {
	for p := l.parent; p != nil; p = p.parent {
		if _, ok := t.forkers[p.id]; ok {
			return true
		}
	}
	return t.sent.missing(l) != nil
}

// alike reports whether the lane's first n calls are another one's first m, and the same
// of those that forked them.
func (l *Lane) alike(n int, o *Lane, m int) bool {
	if l.id == o.id {
		return true
	}
	if l.parent == nil || o.parent == nil {
		return false
	}
	return sameCalls(l.uses[:n], o.uses[:m], true) && l.parent.alike(int(l.parentUses), o.parent, int(o.parentUses))
}

// sameCalls reports whether two lanes asked for the same: all of it, or as far as both came.
func sameCalls(a, b []*Use, all bool) bool {
	for {
		a, b = skipLocal(a), skipLocal(b)
		if len(a) == 0 || len(b) == 0 {
			return !all || len(a) == len(b)
		}
		if a[0].Call.spec.Op != b[0].Call.spec.Op {
			return false
		}
		a, b = a[1:], b[1:]
	}
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

// adopt tells that the lane makes a call that there is, under this key.
func (t *Tree) adopt(c *Call, l *Lane, k key) {
	if c.key.lane != k.lane && c.irrevocable() {
		t.rename(c, l, k)
	}
	t.emitRun(Adopt, l.run, c)
}

// rename has the lane, which makes the call under this key, be the one that made it from
// now on: whoever has the call's former name may make an equal one.
func (t *Tree) rename(c *Call, l *Lane, k key) {
	t.sent.remove(c)
	t.record.rename(c, key{lane: k.lane, op: k.op, occ: k.occ, variant: c.key.variant, eff: c.key.eff, ord: c.key.ord})
	t.sent.add(c, l)
}
