package raft

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3/raftpb"

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
	best := r.successor(env.Now, to)
	if best == 0 {
		return 0, "no other member is there that is up to date"
	}
	r.core.node.TransferLeader(uint64(best))
	r.core.flush(env)
	return best, ""
}

// successor returns who has most of the other members that were heard a while ago, or of the one
// that is asked for; 0 if there is none.
func (r *replica) successor(now time.Duration, to protocol.ID) (best protocol.ID) {
	progress := r.core.node.Status().Progress
	match := uint64(0)
	for _, m := range r.State.Members() {
		at, heard := r.heard[m.ID]
		if m.ID == r.Cfg.ID || to != 0 && m.ID != to || !heard || now-at >= r.patience() || r.sends(m.ID) {
			continue
		}
		if p, ok := progress[uint64(m.ID)]; ok && p.Match > match {
			best, match = m.ID, p.Match
		}
	}
	return best
}

// appoint has a member stand for election at once, as this leader was removed and leads no more.
// The others would wait until they miss it, and that is long where answers have taken long.
func (r *replica) appoint(env *protocol.Env[smr.Message], successor protocol.ID) {
	r.Admission.SendAhead(env, successor, rpc{&raftpb.Message{
		Type: raftpb.MsgTimeoutNow.Enum(), From: new(uint64(r.Cfg.ID)), To: new(uint64(successor)),
		Term: new(r.core.term()),
	}})
}

// handsOver reports whether a successor was chosen, so that the library takes no proposals.
func (r *replica) handsOver() bool { return r.core.node.BasicStatus().LeadTransferee != 0 }
