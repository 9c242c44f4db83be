package fastpaxos

import (
	"hash/crc32"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Acceptors give slots to commands without asking each other, so slots are decided in any order,
// and one in which two commands collided holds up all that are decided above it. Execution goes
// through them without a gap; what is above waits in cells.
//
// Votes and promises outlive what is cut here: a slot that is executed and in a snapshot needs no
// vote any more, a promise is written again with each cut. A change of the members is in a snapshot
// before this replica votes above it. A vote counts in a generation, and after a crash the replica
// must not cast one as a member of a group that is no more.

// execute applies what is decided, in the order of the slots.
func (r *replica) execute(env *protocol.Env[smr.Message]) {
	before := r.State.Applied()
	for !r.Over() {
		s := r.State.Applied() + 1
		if s > r.base+smr.Slot(len(r.cells)) || !r.cell(s).decided {
			break
		}
		r.apply(env, s, r.cell(s).value)
	}
	if r.State.Applied() == before {
		return
	}
	r.top = max(r.top, r.State.Applied())
	if l := r.lead; l != nil {
		l.wants = slices.DeleteFunc(l.wants, func(w *want) bool { return !r.Desk.Waits(w.entry) })
		r.propose(env, 0)
		if r.lead != nil {
			r.answerReads(env)
		}
	}
	r.journal.MaybeSave(env, nil)
}

func (r *replica) apply(env *protocol.Env[smr.Message], s smr.Slot, e kit.Entry) {
	if v := r.cell(s).vote; v.Entry.Kind != 0 && r.ours[wishFor(v.Entry)].slot == s {
		r.forgetOwn(wishFor(v.Entry))
	}
	r.forgetOwn(wishFor(e)) // also if another vote took the place of its own
	if r.lead != nil {
		delete(r.lead.tallies, s)
	}
	if e.Kind == kit.NoOp {
		r.State.Skip(s)
		return
	}
	generation := r.State.Generation()
	reply := r.State.Apply(s, e)
	r.journal.Executed()
	if r.lead != nil {
		r.Desk.Applied(env, e, reply)
		if r.lead.proposed[wishFor(e)] == s {
			delete(r.lead.proposed, wishFor(e))
		}
		if r.lead.changing == s {
			r.lead.changing = 0
		}
	}
	if e.Kind == kit.ChangeMembers {
		r.changed(env, generation)
	}
}

// changed takes note that a change of the members was applied. That it was is on disk before the
// replica votes for anything above.
func (r *replica) changed(env *protocol.Env[smr.Message], before uint64) {
	if r.State.Generation() != before {
		if err := r.journal.SaveNow(env, nil); err != nil {
			r.Fail(env, err)
			return
		}
		r.tellDecided(env) // one that is removed tells before it goes silent
		r.MembersChanged(env)
	}
	if r.lead != nil && !r.Over() {
		r.open = 0
		r.campaign(env, false) // back to fast rounds
	}
}

// cut forgets the slots up to one, on disk as far as whole records allow.
func (r *replica) cut(env *protocol.Env[smr.Message], to smr.Slot) {
	if to > r.base {
		r.cells = slices.Delete(r.cells, 0, int(min(to-r.base, smr.Slot(len(r.cells)))))
		r.base = to
		r.top = max(r.top, to)
	}
	r.journal.Cut(env, to, promiseRecord{r.promised})
	r.disk.Saved(env)
}

func (r *replica) onDecided(env *protocol.Env[smr.Message], from protocol.ID, m decided) {
	if len(r.State.Members()) == 0 {
		return // only a snapshot says with whom the group began
	}
	for _, p := range m.Items {
		if r.near(p.Slot) && p.Entry.Kind != 0 {
			r.learn(p.Slot, p.Entry)
			r.top = max(r.top, p.Slot)
		}
	}
	r.execute(env)
	if m.More {
		r.progress.Fetching()
		r.Admission.Send(env, from, r.fetch())
	}
}

// split parts entries into those that are told whole, and the names of large commands.
func split(items []item) (small []item, large []named) {
	for _, p := range items {
		if n := len(p.Entry.Command); n < largeBytes {
			small = append(small, p)
		} else {
			named := named{Slot: p.Slot, Entry: p.Entry, Length: uint64(n),
				Sum: crc32.Checksum(p.Entry.Command, crc32.MakeTable(crc32.Castagnoli))}
			named.Entry.Command = nil
			large = append(large, named)
		}
	}
	return small, large
}

// largeBytes is from which size on a command is not sent again to those who have accepted it.
const largeBytes = 4 << 10

// onDecidedNames learns that what the replica has accepted in slots is decided, if it is that. What
// it has not accepted it fetches when it does not get on.
func (r *replica) onDecidedNames(env *protocol.Env[smr.Message], m decidedNames) {
	if len(r.State.Members()) == 0 {
		return // only a snapshot says with whom the group began
	}
	for _, n := range m.Items {
		if !r.near(n.Slot) || n.Entry.Kind != kit.Command {
			continue
		}
		r.top = max(r.top, n.Slot)
		c := r.cell(n.Slot)
		e := n.Entry
		e.Command = c.vote.Entry.Command
		if uint64(len(e.Command)) == n.Length && e.Equal(c.vote.Entry) &&
			crc32.Checksum(e.Command, crc32.MakeTable(crc32.Castagnoli)) == n.Sum {
			c.decide(e)
		}
	}
	r.execute(env)
}

// onFetch answers a replica that lags: with what was decided, or with the state as it is if that is
// not there any more.
func (r *replica) onFetch(env *protocol.Env[smr.Message], from protocol.ID, m fetch) {
	r.progress.Heard(from, 0, m.Applied)
	if r.State.Applied() <= m.Applied {
		return
	}
	if m.Applied >= r.base && m.Generation != 0 {
		var items []item
		for s := m.Applied + 1; s <= r.State.Applied(); s++ {
			items = append(items, item{s, r.cell(s).value})
		}
		r.tellParts(env, from, items)
		return
	}
	r.progress.SendState(env, from, m.Applied, r.State, nil)
}

// tellParts tells a replica that lags a part of what it lacks, as much as may be under way. It asks
// for the rest.
func (r *replica) tellParts(env *protocol.Env[smr.Message], to protocol.ID, items []item) {
	var parts []decided
	bytes := 0
	for chunk := range chunks(items) {
		for _, p := range chunk {
			bytes += kit.EntryBytes(p.Entry)
		}
		parts = append(parts, decided{head: r.head(r.promised), Items: chunk})
		if bytes >= r.Cfg.MaxUnderwayBytes/2 {
			break
		}
	}
	last := parts[len(parts)-1].Items
	parts[len(parts)-1].More = last[len(last)-1].Slot < items[len(items)-1].Slot
	for _, m := range parts {
		r.Admission.Send(env, to, m)
	}
}

// onInstalled goes on from a snapshot. Votes for later slots stay: they are promises. A coordinator
// that has to be told leads no more.
func (r *replica) onInstalled(env *protocol.Env[smr.Message], s *kit.Arrived) error {
	r.journal.Has(s.Slot)
	r.write(env)
	r.cut(env, s.Slot)
	r.abandon()
	r.stopLeading()
	r.forgetOurs()
	r.MembersChanged(env)
	r.execute(env)
	return nil
}

// applyDoubtful executes what the disk has for the slots behind the snapshot, in their order: what
// is written down as decided, and otherwise the replica's own vote. A slot of which the disk has
// neither was not executed with a command in it.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (n int, err error) {
	if err := r.disk.Check(); err != nil {
		return 0, err
	}
	for i, c := range r.cells {
		s := r.base + 1 + smr.Slot(i)
		e := c.vote.Entry
		if c.decided {
			e = c.value
		}
		if e.Kind == 0 || e.Kind == kit.NoOp {
			r.State.Skip(s)
			continue
		}
		r.State.Apply(s, e)
		if !c.decided {
			n++
		}
	}
	return n, nil
}
