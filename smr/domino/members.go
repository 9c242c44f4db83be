package domino

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// alive tells whether a member was heard recently.
func (r *Replica) alive(id protocol.ID) bool { return r.heard(id, suspectTicks) }

// heard tells whether a member was heard in so many ticks.
func (r *Replica) heard(id protocol.ID, ticks int) bool {
	return id == r.cfg.ID || r.peers[id] != nil && r.peers[id].silent < ticks
}

func (r *Replica) countAlive() int { return r.countMembers(suspectTicks) }

// countMembers returns how many were heard in so many ticks.
func (r *Replica) countMembers(ticks int) int {
	n := 0
	for _, id := range r.group {
		if r.heard(id, ticks) {
			n++
		}
	}
	return n
}

// maybeTakePart makes a member of a replica that was admitted.
func (r *Replica) maybeTakePart(env *protocol.Env[smr.Message]) {
	if r.role != blank || !r.admission.Admitted() {
		return
	}
	if _, ok := r.state.Member(r.cfg.ID); !ok {
		return
	}
	r.role = member
	r.adoptMembers(env)
	r.acceptor.begin(r.learner.executed)
	r.soon(env)
	if r.acceptor.promised == 0 && !r.cfg.Join {
		switch r.cfg.Leader {
		case 0:
			r.campaignSoon(env)
		case r.cfg.ID:
			env.After(0, campaignTimer{})
		default:
			r.coord.hold = courtesyTicks
		}
	}
}

// adoptMembers makes the members that the state has those with whom the replica works.
func (r *Replica) adoptMembers(env *protocol.Env[smr.Message]) {
	r.group, r.strangers = r.group[:0], nil
	keep := map[protocol.ID]*peer{}
	for i, m := range r.state.Members() {
		r.group = append(r.group, m.ID)
		if m.ID == r.cfg.ID {
			r.digit = uint64(i) + 1
		}
		p := r.peers[m.ID]
		if p == nil {
			p = &peer{id: m.ID, holds: map[protocol.ID]Have{}, meter: newMeter(r.opt), next: 1}
		}
		keep[m.ID] = p
	}
	r.peers = keep
	r.rule = fastPaxos(len(r.group))
	r.learner.adopt(r.group)
	r.coord.adopt(env, r)
}

// membersChanged says who the members are, at the start and when they have changed.
func (r *Replica) membersChanged(env *protocol.Env[smr.Message]) {
	r.admission.MembersChanged(env)
	switch {
	case r.state.Removed(r.cfg.ID):
		r.role = removed
		env.Send(protocol.App, smr.RefusedAsRemoved(r.cfg.ID))
	case r.role == member:
		r.adoptMembers(env)
	default:
		r.maybeTakePart(env)
	}
}

// changed is called when a change of the members was executed. Once the old ones are gone nobody
// decides again what came before: it must be on disk.
func (r *Replica) changed(env *protocol.Env[smr.Message]) {
	r.membersChanged(env)
	r.takeSnapshot(env)
}

func (r *Replica) status(id smr.CallID) smr.Status {
	role := [...]string{"blank", "acceptor", "removed"}[r.role]
	switch {
	case r.admission.Refused():
		role = "refused"
	case r.coord.phase == leading:
		role = "leader"
	}
	return smr.Status{
		ID: id, Replica: r.cfg.ID, Role: role, Leader: r.leader(), Ballot: uint64(r.acceptor.promised),
		Committed: r.learner.lastDecided(), Applied: r.state.Applied(), Snapshot: r.snapshot,
		LogSize: r.acceptor.journal.Records(), Sessions: r.state.Sessions(), Members: slices.Clone(r.state.Members()),
	}
}
