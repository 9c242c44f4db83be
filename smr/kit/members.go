package kit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// members is who belongs to the group, as the log says. A change is decided here, by the state,
// when its entry is applied: all replicas come to the same answer, however many changes were
// proposed at once and whatever their proposers knew. Changes are answered alike if they come
// twice, as entries may.
type members struct {
	now []identified // in order of their IDs
	// removed are those that were members, in order. They do not come back: a replica that has not
	// heard of the removal would take a new disk's word for that of the old one, which may have voted
	// otherwise.
	removed []protocol.ID
}

// identified is a member with its disk, which is 0 for one that was there from the beginning: see
// Admission.
type identified struct {
	smr.Member
	incarnation Incarnation
}

func byID(m identified, id protocol.ID) int { return cmp.Compare(m.ID, id) }

func (g *members) change(slot smr.Slot, c MemberChange) Reply {
	if err := c.Validate(); err != nil {
		return Reply{Outcome: smr.Rejected, Reason: err.Error()}
	}
	if c.Remove != 0 {
		return g.remove(slot, c.Remove)
	}
	return g.add(slot, c)
}

func (g *members) remove(slot smr.Slot, id protocol.ID) Reply {
	i, ok := slices.BinarySearchFunc(g.now, id, byID)
	r, gone := slices.BinarySearch(g.removed, id)
	switch {
	case gone:
	case !ok:
		return Reply{Outcome: smr.Rejected, Reason: fmt.Sprintf("replica %d is no member", id)}
	case len(g.now) == 1:
		return Reply{Outcome: smr.Rejected, Reason: fmt.Sprintf("replica %d is the last member", id)}
	default:
		g.now = slices.Delete(slices.Clone(g.now), i, i+1)
		g.removed = slices.Insert(g.removed, r, id)
	}
	return Reply{Outcome: smr.Committed, Slot: slot}
}

func (g *members) add(slot smr.Slot, c MemberChange) Reply {
	i, ok := slices.BinarySearchFunc(g.now, c.Add.ID, byID)
	_, gone := slices.BinarySearch(g.removed, c.Add.ID)
	switch {
	case gone:
		return Reply{Outcome: smr.Rejected, Reason: fmt.Sprintf(
			"replica %d was removed, and does not come back under this ID", c.Add.ID)}
	case ok && g.now[i].Member != c.Add:
		return Reply{Outcome: smr.Rejected, Reason: fmt.Sprintf("replica %d is a member already, at %s", c.Add.ID,
			g.now[i].Address)}
	case !ok:
		g.now = slices.Insert(slices.Clone(g.now), i, identified{c.Add, c.Incarnation})
	}
	return Reply{Outcome: smr.Committed, Slot: slot}
}

func (g *members) fields(c *wirefmt.Coder) {
	wirefmt.List(c, &g.now, 3, func(c *wirefmt.Coder, m *identified) {
		MemberFields(c, &m.Member)
		wirefmt.Uint(c, &m.incarnation)
	})
	wirefmt.List(c, &g.removed, 1, wirefmt.Uint32)
	if c.Reading() {
		if err := g.check(); err != nil {
			c.Failf("%v", err)
		}
	}
}

func (g *members) check() error {
	for i := 1; i < len(g.now); i++ {
		if g.now[i-1].ID >= g.now[i].ID {
			return fmt.Errorf("smr: members %d and %d are out of order", g.now[i-1].ID, g.now[i].ID)
		}
	}
	if len(g.now) == 0 || g.now[0].ID == protocol.App || !slices.IsSorted(g.removed) {
		return fmt.Errorf("smr: no members, a member 0, or removed members out of order")
	}
	for _, id := range g.removed {
		if _, ok := slices.BinarySearchFunc(g.now, id, byID); ok {
			return fmt.Errorf("smr: member %d was removed", id)
		}
	}
	return nil
}
