package domino

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// accepted returns what the acceptor has in the slots above low, up to high: of each slot what it
// has accepted in the highest ballot. A replica executes something else where others have decided
// without it.
func (a *acceptor) accepted(low, high smr.Slot) (out bySlot) {
	out = a.open(out, shared, a.votes.within(low, high))
	for owner, l := range a.tracks { //pure:ok they are sorted
		out = a.open(out, trackOf(owner), l.items.within(low, high))
	}
	for _, c := range a.closes { //pure:ok they are sorted
		out = append(out, c.items.within(low, high)...)
	}
	slices.SortFunc(out, func(i, j item) int { return cmp.Compare(i.Slot, j.Slot) })
	return out
}

// open appends those of a track's items for whose slots nothing was accepted of a coordinator.
func (a *acceptor) open(to bySlot, l trackID, items bySlot) bySlot {
	c := a.closes[l]
	for _, i := range items {
		if c == nil || !slices.ContainsFunc(c.spans, func(s span) bool { return s.low < i.Slot && i.Slot <= s.high }) {
			to = append(to, i)
		}
	}
	return to
}

// writeExecuted writes down what was executed above a slot where the acceptor has something else,
// or nothing: so the disk tells what was executed. It comes before anything is forgotten.
func (r *replica) writeExecuted(env *protocol.Env[smr.Message], before smr.Slot) {
	if r.learner.executed == before {
		return
	}
	a := &r.acceptor
	has, done := a.accepted(before, r.learner.executed), r.past.items.within(before, r.learner.executed)
	var other []item
	note := func(i item) {
		if was, ok := a.executed.get(i.Slot); !ok || !was.equal(i) {
			other = append(other, i)
		}
	}
	for len(has) > 0 || len(done) > 0 {
		switch {
		case len(done) == 0 || len(has) > 0 && has[0].Slot < done[0].Slot:
			note(item{Slot: has[0].Slot})
			has = has[1:]
		case len(has) == 0 || done[0].Slot < has[0].Slot:
			note(done[0])
			done = done[1:]
		default:
			if !has[0].equal(done[0]) {
				note(done[0])
			}
			has, done = has[1:], done[1:]
		}
	}
	for len(other) > 0 {
		n := fit(other)
		a.journal.Wrote(env.Append(executedRecord{other[:n:n]}), other[n-1].Slot)
		other = other[n:]
	}
}

// applyDoubtful executes what the disk has for the slots behind the snapshot, in their order: what
// is written down as executed, and otherwise what was accepted.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (n int, err error) {
	a := &r.acceptor
	if err := a.disk.Check(); err != nil {
		return 0, err
	}
	all := slices.Clone(a.executed.within(r.snapshot, maxSlot))
	for _, i := range a.accepted(r.snapshot, maxSlot) {
		if _, ok := a.executed.get(i.Slot); !ok {
			n += len(i.Entries)
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(i, j item) int { return cmp.Compare(i.Slot, j.Slot) })
	for _, i := range all {
		r.State.ApplyAll(i.Slot, i.Entries, func(int, kit.Reply) {})
	}
	return n, nil
}
