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
	case r.Transfers.Of(best.id) != nil || best.match < r.log.base ||
		best.match+smr.Slot(r.Cfg.MaxPending) < r.lead.end || best.match < r.lead.start:
		return 0, fmt.Sprintf("replica %d has slots up to %d of %d", best.id, best.match, r.lead.end)
	}
	r.Admission.SendAhead(env, best.id, takeOver{Ballot: r.promised})
	return best.id, ""
}

// onTakeOver stands for leader, as the leader wants it.
func (r *replica) onTakeOver(env *protocol.Env[smr.Message], from protocol.ID, m takeOver) {
	if r.role != follower || r.leader != from || m.Ballot != r.promised || !owns(from, m.Ballot) {
		return
	}
	r.role, r.leader = candidate, 0
	env.Stop(leaderTimer{})
	r.stand(env, kit.NewBallot(max(r.promised, r.candidacy.above), r.Cfg.ID))
}
