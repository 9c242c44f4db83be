package raft

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A learner is a replica that waits to be added and is brought up to date meanwhile. Only the
// leader knows it, as a learner of the library's; the log does not. So the next leader hears of it
// from the replica itself, and nothing is left of one that never comes back.
type learner struct {
	disk  kit.Incarnation // whose progress the library knows
	asked time.Duration   // when it last said that it waits
}

// learn has a leader bring a replica up to date that waits to be added.
func (r *replica) learn(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation) {
	if !r.led {
		return
	}
	l := r.learners[from]
	if l != nil && l.disk != disk {
		r.dropLearner(from) // what the library knows is of the disk before
		l = nil
	}
	if l == nil {
		if len(r.learners) >= kit.MaxLearners {
			return
		}
		l = &learner{disk: disk}
		r.learners[from] = l
		r.core.change(raftpb.ConfChangeAddLearnerNode, from)
	}
	l.asked = env.Now
	r.core.flush(env)
}

// dropLearner has the library forget a learner, unless a snapshot has made it a member meanwhile.
func (r *replica) dropLearner(id protocol.ID) {
	delete(r.learners, id)
	if _, member := r.State.Member(id); !member {
		r.dropTransfer(id)
		r.core.change(raftpb.ConfChangeRemoveNode, id)
	}
}

// addedLearner takes note that a replica is a member now, with a disk. If that is another one than
// the library knows the progress of, it is to know none.
func (r *replica) addedLearner(id protocol.ID, disk kit.Incarnation) {
	l := r.learners[id]
	delete(r.learners, id)
	if l != nil && l.disk != disk {
		r.dropTransfer(id)
		r.core.change(raftpb.ConfChangeRemoveNode, id)
	}
}

// tendLearners forgets those that are not there any more.
func (r *replica) tendLearners(now time.Duration) {
	for _, id := range slices.Sorted(maps.Keys(r.learners)) {
		if at := r.learners[id].asked; now-at > r.Tempo.Times(kit.LearnerWanted) {
			r.dropLearner(id)
		}
	}
}

// dropLearners is for a leader that leads no longer.
func (r *replica) dropLearners() {
	for _, id := range slices.Sorted(maps.Keys(r.learners)) {
		r.dropLearner(id)
	}
}

// stranger reports whether a message is of another disk of a learner than the one whose progress
// the library knows.
func (r *replica) stranger(from protocol.ID, disk kit.Incarnation) bool {
	l := r.learners[from]
	return l != nil && l.disk != disk
}

// upToDate reports whether a replica that waits to be added lacks no more than a batch, and is
// still there.
func (r *replica) upToDate(
	env *protocol.Env[smr.Message], id protocol.ID, disk kit.Incarnation,
) (ok bool, why string) {
	l := r.learners[id]
	if l == nil && len(r.learners) >= kit.MaxLearners {
		return false, fmt.Sprintf("%d other replicas are being brought up to date", len(r.learners))
	}
	if l == nil || l.disk != disk || env.Now-l.asked >= r.patience() || r.sends(id) {
		return false, ""
	}
	p := r.core.node.Status().Progress[uint64(id)]
	return p.Match > 0 && p.Match+uint64(r.Cfg.MaxBatch) >= r.core.committed(), ""
}

// followers returns all that a leader sends snapshots to.
func (r *replica) followers() []protocol.ID {
	return append(r.State.MemberIDs(), slices.Sorted(maps.Keys(r.learners))...)
}

// learns has a replica that waits to be added count itself as a learner in a snapshot whose members
// it is none of: the library takes no other.
func (r *replica) learns(meta *raftpb.SnapshotMetadata) {
	self := uint64(r.Cfg.ID)
	if r.Cfg.Join && !slices.Contains(meta.GetConfState().GetVoters(), self) {
		meta.ConfState.Learners = append(meta.ConfState.Learners, self)
	}
}
