package raft

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// forced is what the library puts in the votes that a leader's successor asks for [Raft thesis
// §3.10]. They are asked for in its name, and so disturb nobody.
const forced = "CampaignTransfer"

// handOver has a follower lead that was heard a while ago, or the one that has most if to is 0. The
// library takes no proposals until the follower has everything and was told to stand; if that takes
// ten heartbeats, it goes on.
func (r *replica) handOver(env *protocol.Env[smr.Message], to protocol.ID) (protocol.ID, string) {
	switch {
	case !r.led:
		return 0, fmt.Sprintf("replica %d does not lead", r.Cfg.ID)
	case to == r.Cfg.ID:
		return 0, fmt.Sprintf("replica %d leads already", to)
	case r.changing:
		return 0, "a change of the members is on its way"
	}
	if _, member := r.State.Member(to); to != 0 && !member {
		return 0, fmt.Sprintf("replica %d is no member", to)
	}
	progress := r.core.node.Status().Progress
	best, match := protocol.ID(0), uint64(0)
	for _, m := range r.State.Members() {
		at, heard := r.heard[m.ID]
		if m.ID == r.Cfg.ID || to != 0 && m.ID != to || !heard || env.Now-at >= r.patience() || r.sends(m.ID) {
			continue
		}
		if p, ok := progress[uint64(m.ID)]; ok && p.Match > match {
			best, match = m.ID, p.Match
		}
	}
	if best == 0 {
		return 0, "no other member is there that is up to date"
	}
	r.core.node.TransferLeader(uint64(best))
	r.core.flush(env)
	return best, ""
}

// handsOver tells whether a successor was chosen, so that the library takes no proposals.
func (r *replica) handsOver() bool { return r.core.node.BasicStatus().LeadTransferee != 0 }
