package domino

import (
	"hash/crc32"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// largeBytes is from which size on commands are not told again to those whom their client has sent
// them too.
const largeBytes = 4 << 10

// name leaves the large commands out of votes that a peer is told of for the first time. If it
// lacks one, it asks for that, and gets it whole; so is what may be lost sent.
func (r *replica) name(p *peer, m *news) {
	if p.id == r.Cfg.ID {
		return
	}
	m.Items, m.Names = shortened(m.Items, func(k int) bool {
		return m.First+uint64(k) > p.told && digitOf(m.Items[k].Slot) == sharedDigit
	})
}

// shortened returns items, of which large ones that the receiver has lack their commands, and the
// names of these. It changes no item.
func shortened(items []item, has func(k int) bool) (out []item, names []name) {
	out = items
	for k, i := range items {
		if i.sizeBytes() < largeBytes || !has(k) {
			continue
		}
		if names == nil {
			out = slices.Clone(items)
		}
		n := nameOf(i)
		n.Index = uint64(k)
		names = append(names, n)
		out[k] = bare(i)
	}
	return out, names
}

func nameOf(i item) (n name) {
	for _, e := range i.Entries {
		n.Lengths = append(n.Lengths, uint64(len(e.Command)))
		n.Sum = crc32.Update(n.Sum, crc32.MakeTable(crc32.Castagnoli), e.Command)
	}
	return n
}

// bare returns an item without its commands.
func bare(i item) item {
	i.Entries = slices.Clone(i.Entries)
	for k := range i.Entries {
		i.Entries[k].Command = nil
	}
	return i
}

// whole puts the commands back into named items, and returns the message up to the first one whose
// commands the replica does not have.
func (r *replica) whole(env *protocol.Env[smr.Message], p *peer, m news) news {
	if len(m.Names) == 0 {
		return m
	}
	m.Items = slices.Clone(m.Items)
	for _, n := range m.Names {
		if n.Index >= uint64(len(m.Items)) {
			continue
		}
		i := &m.Items[n.Index]
		number := m.First + n.Index
		if number <= p.have || i.Slot <= r.learner.executed {
			continue // it is not looked at
		}
		known, ok := r.known(*i, n)
		if !ok {
			r.Admission.Send(env, p.id, missing{Number: number})
			m.Items = m.Items[:n.Index]
			break
		}
		*i = known
	}
	return m
}

// named returns what was learned, for a member that has voted for some of it: it has the commands
// of that.
func (r *replica) named(to protocol.ID, c closeSlots) learned {
	m := learned{closeSlots: c}
	m.Items, m.Names = shortened(c.Items, func(k int) bool {
		at, found := r.learner.find(c.Items[k].Slot)
		return found && slices.ContainsFunc(r.learner.contests[at].candidates, func(v candidate) bool {
			return v.by.Has(to) && v.equal(c.Items[k])
		})
	})
	return m
}

// complete puts the commands back into what was learned, as whole does. It is as good as lost if
// the replica does not have them.
func (r *replica) complete(m learned) (c closeSlots, ok bool) {
	c = m.closeSlots
	if len(m.Names) == 0 {
		return c, true
	}
	c.Items = slices.Clone(m.Items)
	for _, n := range m.Names {
		if n.Index >= uint64(len(c.Items)) {
			return c, false
		}
		i := &c.Items[n.Index]
		if i.Slot <= r.learner.executed {
			continue // it is not looked at
		}
		if *i, ok = r.known(*i, n); !ok {
			return c, false
		}
	}
	return c, true
}

// known returns the item that is named, if the replica has voted for it or heard of it by another
// vote.
func (r *replica) known(i item, n name) (item, bool) {
	same := func(o item) bool {
		m := nameOf(o)
		return bare(o).equal(i) && m.Sum == n.Sum && slices.Equal(m.Lengths, n.Lengths)
	}
	if own, ok := r.acceptor.votes.get(i.Slot); ok && same(own) {
		return own, true
	}
	if at, found := r.learner.find(i.Slot); found {
		for _, c := range r.learner.contests[at].candidates {
			if same(c.item) {
				return c.item, true
			}
		}
	}
	return item{}, false
}

// onMissing sends a part of the stream again, whole what was asked for and by names what follows:
// that has come from its client meanwhile, most often.
func (r *replica) onMissing(env *protocol.Env[smr.Message], p *peer, m missing) {
	if m.Number > p.out.has && m.Number < p.out.Next() {
		p.told = m.Number
		p.out.Restart(m.Number)
		r.soon(env)
	}
}
