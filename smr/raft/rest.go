package raft

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// restRules are what package kit asks about a group that has nothing to do.
func (r *replica) restRules() kit.RestRules {
	return kit.RestRules{
		Leads:  func() bool { return r.led },
		Leader: func() (protocol.ID, uint64) { return r.core.leader(), r.core.term() },
		End:    func() (smr.Slot, bool) { return smr.Slot(r.core.last), r.core.last == r.core.applied },
		Idle:   r.idle, Wakes: wakes, Patience: r.patience, Await: r.awaitBeat, Resume: r.resume, Beat: beatTimer{},
	}
}

// idle reports whether a leader has nothing to do, and all others are there and know all that it
// knows.
func (r *replica) idle(now time.Duration) bool {
	if r.part != nil && !r.part.rounds.idle() {
		return false
	}
	if r.reads.asking || len(r.reads.next) > 0 || r.changing || r.handsOver() || len(r.learners)+r.transfers() > 0 {
		return false
	}
	progress := r.core.node.Status().Progress
	return !slices.ContainsFunc(r.State.MemberIDs(), func(id protocol.ID) bool {
		at, heard := r.heard[id]
		return id != r.Cfg.ID && (!heard || now-at >= r.patience() || now < at || progress[uint64(id)].Match != r.core.last)
	})
}

// wakes reports whether a message of the library's gives a leader something to do.
func wakes(msg smr.Message) bool {
	m, ofGroup := msg.(rpc)
	return ofGroup && m.GetType() != raftpb.MsgHeartbeatResp
}

// resume has a leader take it that its followers were there until now.
func (r *replica) resume(env *protocol.Env[smr.Message]) {
	for _, id := range r.State.MemberIDs() {
		r.heard[id] = env.Now
	}
}

// awaitBeat has a follower wait for its leader's next word, as if the last one had come then.
func (r *replica) awaitBeat(env *protocol.Env[smr.Message], at time.Duration) {
	r.hasLeader, r.leaderWas = true, 0
	r.awaitLeaderFrom(env, at)
}
