package multipaxos

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// handOver asks a follower to lead, or the one that has most if to is 0. The leader keeps
// proposing until the successor asks for its promise: phase 1 finds what it proposes in
// between. So the group stands still for a round trip and not for the time of an election.
//
// A hand-over is no step of the protocol that safety depends on. The successor stands in a higher
// ballot like any candidate, and must get a majority's promises. If it fails, or the message is
// lost, this leader goes on, and nobody waits for anything.
func (r *replica) handOver(env *protocol.Env[smr.Message], to protocol.ID) (protocol.ID, string) {
	switch {
	case r.role != leader:
		return 0, fmt.Sprintf("replica %d does not lead", r.Cfg.ID)
	case to == r.Cfg.ID:
		return 0, fmt.Sprintf("replica %d leads already", to)
	case r.lead.changing != 0:
		return 0, "a change of the members is on its way"
	}
	var best *peer
	for _, p := range r.lead.peers {
		if (to == 0 || p.id == to) && (best == nil || p.match > best.match) {
			best = p
		}
	}
	switch {
	case best == nil && to == 0:
		return 0, "there is no other member"
	case best == nil:
		return 0, fmt.Sprintf("replica %d is no member", to)
	// One that is far behind would be elected first and catch up then, while all wait. One below
	// base could not even use this leader's promise; one below start lacks some of what this leader
	// found in phase 1.
	case r.Transfers.Of(best.id) != nil || best.match < r.log.base ||
		best.match+smr.Slot(r.Cfg.MaxPending) < r.lead.end || best.match < r.lead.start:
		return 0, fmt.Sprintf("replica %d has slots up to %d of %d", best.id, best.match, r.lead.end)
	}
	r.Admission.SendAhead(env, best.id, takeOver{Ballot: r.promised})
	return best.id, ""
}

// onTakeOver stands for leader, as the leader wants it. The pre-vote is left out, in which the
// others would refuse: they hear the leader. A request of another ballot, or of anybody but the
// leader that this replica follows, is old and would depose a leader that does not want to be.
func (r *replica) onTakeOver(env *protocol.Env[smr.Message], from protocol.ID, m takeOver) {
	if r.role != follower || r.leader != from || m.Ballot != r.promised || !owns(from, m.Ballot) {
		return
	}
	r.role, r.leader = candidate, 0
	env.Stop(leaderTimer{})
	r.stand(env, kit.NewBallot(max(r.promised, r.candidacy.above), r.Cfg.ID))
}
