package domino

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// alive reports whether a member was heard recently.
func (r *replica) alive(id protocol.ID) bool { return r.heard(id, suspectTicks) }

// heard reports whether a member was heard in so many ticks.
func (r *replica) heard(id protocol.ID, ticks int) bool {
	return id == r.Cfg.ID || r.peers[id] != nil && r.peers[id].silent < ticks
}

func (r *replica) countAlive() int { return r.countMembers(suspectTicks) }

// countMembers returns how many were heard in so many ticks.
func (r *replica) countMembers(ticks int) int {
	n := 0
	for _, id := range r.group {
		if r.heard(id, ticks) {
			n++
		}
	}
	return n
}

// maybeTakePart makes a member of a replica that was admitted. Before, it neither votes nor counts:
// a replica that has lost its disk would vote a second time in slots in which it has voted.
func (r *replica) maybeTakePart(env *protocol.Env[smr.Message]) {
	if r.role != blank || !r.Admission.Admitted() {
		return
	}
	if _, ok := r.State.Member(r.Cfg.ID); !ok {
		return
	}
	r.role = member
	r.regroup(env)
	r.acceptor.begin(r.learner.executed)
	r.startTime(env)
	r.soon(env)
	// In a new group, which has had no coordinator, all but the configured one wait for a while, so
	// that candidates do not overtake each other.
	if r.acceptor.promised == 0 && !r.Cfg.Join {
		switch r.Cfg.Leader {
		case 0:
			r.campaignSoon(env)
		case r.Cfg.ID:
			env.After(0, campaignTimer{})
		default:
			r.coord.hold = courtesyTicks
		}
	}
}

// regroup makes the members that the state has those with whom the replica works. Tracks are
// numbered by the order of the members, so a replica's own digit may change. That is safe, as no
// slot above the change was used: nobody votes or proposes beyond the slots for which it is decided
// who the members are. What is known of a member that stays, its stream above all, is kept.
func (r *replica) regroup(env *protocol.Env[smr.Message]) {
	r.group, r.strangers = r.group[:0], nil
	keep := map[protocol.ID]*peer{}
	for i, m := range r.State.Members() {
		r.group = append(r.group, m.ID)
		if m.ID == r.Cfg.ID {
			r.digit = uint64(i) + 1
		}
		p := r.peers[m.ID]
		if p == nil {
			p = &peer{id: m.ID, holds: map[protocol.ID]have{}, meter: newMeter(r.opt), out: flow{Flow: kit.NewFlow[uint64](1)}}
		}
		keep[m.ID] = p
	}
	r.peers = keep
	r.rule = fastPaxos(len(r.group))
	r.learner.regroup(r.group)
	r.coord.regroup(env, r)
}

// membersChanged says who the members are when they have changed, and has a member work with them.
func (r *replica) membersChanged(env *protocol.Env[smr.Message]) {
	was := r.role
	if r.MembersChanged(env); was == member && r.role == member {
		r.regroup(env)
	}
}

// changed is called when a change of the members was executed. Once the old ones are gone nobody
// decides again what came before: it must be on disk.
func (r *replica) changed(env *protocol.Env[smr.Message]) {
	r.membersChanged(env)
	r.takeSnapshot(env)
}

func (r *replica) onLeaving(*protocol.Env[smr.Message]) { r.role = removed }

func (r *replica) status(s *smr.Status) {
	s.Role, s.Leader, s.Ballot = "blank", r.leader(), uint64(r.acceptor.promised)
	s.Committed, s.Snapshot, s.LogSize = r.learner.lastDecided(), r.snapshot, r.acceptor.journal.Records()
	s.Timed, s.ClaimsAhead, s.ClockHeld = r.role == member, r.time.ahead, r.time.held
	switch {
	case r.coord.phase == leading:
		s.Role = "leader"
	case r.role == member:
		s.Role = "acceptor"
	}
}
