package service

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// peerTable is which other replicas a replica's host talks to. It belongs to one goroutine.
type peerTable struct {
	*Replica
	known   map[protocol.ID]bool      // the members
	leaving map[protocol.ID]time.Time // others, and until when
	waiting map[protocol.ID]string    // of these, those that wait to be added, and where they are
}

// change takes the members that the replica knows now: those of all groups.
func (t *peerTable) change(groups []groupNews) {
	now := map[protocol.ID]bool{}
	var members []smr.Member
	for _, g := range groups {
		for _, m := range g.members {
			if !now[m.ID] {
				members = append(members, m)
			}
			now[m.ID] = true
		}
	}
	if maps.Equal(now, t.known) {
		return
	}
	slices.SortFunc(members, func(a, b smr.Member) int { return cmp.Compare(a.ID, b.ID) })
	for _, m := range members {
		delete(t.leaving, m.ID)
		t.set(Member{m.ID, t.cfg.addressOf(m)})
	}
	for id := range t.known {
		if !now[id] {
			t.leaving[id] = time.Now().Add(farewell)
		}
	}
	if t.known[t.cfg.ID] && !now[t.cfg.ID] {
		t.log.Warn("replica: it was removed from the group, and can be stopped", "id", t.cfg.ID)
	}
	t.known = now
	t.beats.know(members)
	t.log.Info("replica: members", "members", fmt.Sprint(members))
}

// expect talks to a replica that is no member as far as is known here, as long as it says where it
// is.
func (t *peerTable) expect(m Member) {
	if t.known[m.ID] && t.everywhere(m.ID) || m.ID == t.cfg.ID {
		return
	}
	if t.waiting[m.ID] != m.Address {
		t.waiting[m.ID] = m.Address
		t.tellLearners()
	}
	if t.known[m.ID] {
		return
	}
	if _, before := t.leaving[m.ID]; !before {
		t.log.Info("replica: there is another one, which is no member yet", "id", m.ID, "address", m.Address)
	}
	t.leaving[m.ID] = time.Now().Add(farewell)
	t.set(m)
}

// meet talks for a while to a replica that somebody wants to be added: before it is a member it has
// to be answered and brought up to date.
func (t *peerTable) meet(m smr.Member) {
	if t.known[m.ID] || m.ID == t.cfg.ID {
		return
	}
	t.leaving[m.ID] = time.Now().Add(farewell)
	t.set(Member{m.ID, t.cfg.addressOf(m)})
}

func (t *peerTable) set(m Member) {
	if err := t.host.SetPeer(m.ID, m.Address); err != nil {
		t.log.Error("replica: another one cannot be reached", "id", m.ID, "err", err)
	}
}

// tidy forgets those whose time has come.
func (t *peerTable) tidy(now time.Time) {
	for id, due := range t.leaving {
		if now.After(due) {
			delete(t.leaving, id)
			t.host.RemovePeer(id)
		}
	}
	gone := false
	for id := range t.waiting {
		if _, there := t.leaving[id]; !there && !t.known[id] || t.everywhere(id) {
			delete(t.waiting, id)
			gone = true
		}
	}
	if gone {
		t.tellLearners()
	}
}

// everywhere reports whether a replica is a member of all groups.
func (t *peerTable) everywhere(id protocol.ID) bool {
	return !slices.ContainsFunc(t.news.take(), func(g groupNews) bool {
		return !slices.ContainsFunc(g.members, func(m smr.Member) bool { return m.ID == id })
	})
}

// tellLearners makes known who waits to be added.
func (t *peerTable) tellLearners() {
	var all []Member
	for _, id := range slices.Sorted(maps.Keys(t.waiting)) {
		all = append(all, Member{id, t.waiting[id]})
	}
	t.learners.Store(&all)
}

// announce has a replica that was not in the group from the beginning tell all others where it is.
// They may not know: before it is added, or while they were away when it was.
func (t *peerTable) announce() {
	if !t.cfg.Join {
		return
	}
	to := map[protocol.ID]bool{}
	for _, m := range t.cfg.Members {
		to[m.ID] = true
	}
	for id := range t.known {
		to[id] = true
	}
	all := hereAll{address: cmp.Or(t.cfg.Advertise, t.cfg.Listen)}
	for id := range to {
		if id != t.cfg.ID {
			all.to = append(all.to, id)
		}
	}
	if err := t.status.TryDeliver(all); err != nil {
		t.log.Warn("replica: the members were not told where it is", "err", err)
	}
}
