package raft

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// restBeats is how much longer than a leader's patience passes between two looks of a leader at
// rest at whether its followers' hosts are there: nothing waits for it, as what comes up wakes the
// leader, and then it looks for its majority as ever.
const restBeats = 4

// maybeRest has a leader that has nothing to do ask its followers to rest. Its next beat is later
// then.
func (r *replica) maybeRest(env *protocol.Env[smr.Message]) (wait time.Duration, asked bool) {
	if !r.rest.Due(env.Now) || !r.idle(env.Now) {
		return 0, false
	}
	return r.rest.Ask(env, kit.RestNow{Ballot: r.core.term(), Slot: smr.Slot(r.core.last)}, r.Admission.Own(), r.others())
}

// idle tells whether a leader has nothing to do, and all others are there and know all that it
// knows.
func (r *replica) idle(now time.Duration) bool {
	others := r.others()
	if len(others) == 0 || r.core.last != r.core.applied || r.reads.asking || len(r.reads.next) > 0 || r.changing ||
		r.handsOver() || len(r.learners)+r.Transfers.Len() > 0 {
		return false
	}
	progress := r.core.node.Status().Progress
	return !slices.ContainsFunc(others, func(id protocol.ID) bool {
		at, heard := r.heard[id]
		return !heard || now-at >= r.patience() || now < at || progress[uint64(id)].Match != r.core.last
	})
}

// others returns the other members.
func (r *replica) others() []protocol.ID {
	return slices.DeleteFunc(r.State.MemberIDs(), func(id protocol.ID) bool { return id == r.Cfg.ID })
}

// onRestNow has a follower rest if it has all that its leader has.
func (r *replica) onRestNow(env *protocol.Env[smr.Message], from protocol.ID, m kit.RestNow) {
	if !r.Admission.Admitted() || r.led || r.core.leader() != from || r.core.term() != m.Ballot {
		return
	}
	r.leaderWas = 0 // its next beat is late, whatever the pace
	if smr.Slot(r.core.last) == m.Slot && r.core.applied == r.core.last && r.rest.Follow(env, from, m, r.Admission.Own()) {
		r.leaderAt, r.hasLeader = env.Now, true
		r.awaitLeader(env)
	}
}

// onRested has a leader rest once all followers do.
func (r *replica) onRested(env *protocol.Env[smr.Message], from protocol.ID, m kit.Rested) {
	if !r.led || m.Ballot != r.core.term() || !r.idle(env.Now) {
		return
	}
	if others := r.others(); slices.Contains(others, from) && r.rest.Agreed(from, m, others) {
		env.After(restBeats*r.patience(), beatTimer{})
	}
}

// maybeWake wakes a leader that is given something to do.
func (r *replica) maybeWake(env *protocol.Env[smr.Message], msg smr.Message) {
	m, ofGroup := msg.(rpc)
	if r.led && (kit.Wakes(msg) || ofGroup && m.GetType() != raftpb.MsgHeartbeatResp) {
		r.wake(env)
	}
}

// wake has a leader beat again, if it rested. From now on it waits for words of its followers as
// when it began to lead.
func (r *replica) wake(env *protocol.Env[smr.Message]) {
	if !r.rest.Wake(env.Now) {
		return
	}
	for _, id := range r.others() {
		r.heard[id] = env.Now
	}
	env.After(0, beatTimer{})
}

// staysAtRest tells whether a leader needs no beat: all followers' hosts are there. Else it wakes.
func (r *replica) staysAtRest(env *protocol.Env[smr.Message]) bool {
	if !r.rest.Resting() {
		return false
	}
	if _, ok := r.rest.Heard(env.Now, r.patience()); ok {
		env.After(restBeats*r.patience(), beatTimer{})
		return true
	}
	r.wake(env)
	return true
}

// stir wakes a follower that hears from its leader: one at rest would be silent.
func (r *replica) stir(now time.Duration, from protocol.ID) {
	if !r.led && r.rest.Resting() && r.rest.Relies(from) {
		r.rest.Wake(now)
	}
}

// maybeStir wakes a follower whose leader is another one now, or nobody.
func (r *replica) maybeStir(env *protocol.Env[smr.Message]) {
	if !r.led && r.rest.Resting() && !r.rest.Relies(r.core.leader()) {
		r.rest.Wake(env.Now)
		r.awaitLeader(env)
	}
}

// relyOnHost takes a word of the leader's host for the leader's, of a follower at rest.
func (r *replica) relyOnHost(now time.Duration) {
	if r.led || !r.rest.Resting() {
		return
	}
	if at, ok := r.rest.Heard(now, r.patience()); ok {
		r.leaderAt = max(r.leaderAt, at)
	}
}

// followsHost tells whether a follower at rest still hears its leader's host, and waits for its
// next word. Else it wakes.
func (r *replica) followsHost(env *protocol.Env[smr.Message]) bool {
	if !r.rest.Resting() {
		return false
	}
	at, ok := r.rest.Heard(env.Now, r.patience())
	if !ok {
		r.rest.Wake(env.Now)
		return false
	}
	r.leaderAt = max(r.leaderAt, at)
	r.awaitLeaderFrom(env, at)
	return true
}
