package raft

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// hears notes a word of the leader's, and waits for the next one. A timer says when the leader is
// missed, as a clock may be set back, and a replica that took the leader to be there for longer
// than others do would refuse them its vote.
func (r *replica) hears(env *protocol.Env[smr.Message]) {
	r.leaderAt, r.hasLeader = env.Now, true
	env.After(r.patience(), missedTimer{})
	r.awaitLeader(env)
}

// leaderIsThere reports whether the replica leads, or has heard the leader lately: at rest, the
// leader's host.
func (r *replica) leaderIsThere(now time.Duration) bool {
	if r.led || !r.Resting.Is() {
		return r.led || r.hasLeader
	}
	_, heard := r.Resting.Heard(now)
	return heard
}

// awaitLeader starts the wait for a leader's next word anew.
func (r *replica) awaitLeader(env *protocol.Env[smr.Message]) {
	switch {
	case r.core.leads():
	case r.first() && r.core.leader() == 0:
		// The others answer it as soon as they are admitted, and stand themselves later than that.
		env.After(r.Tempo.Times(1), electionTimer{})
	default:
		r.awaitLeaderFrom(env, env.Now)
	}
}

// first reports whether this replica is to lead a group that nobody has led yet.
func (r *replica) first() bool { return r.Cfg.Leader == r.Cfg.ID && r.core.hard.term <= 1 }

// awaitLeaderFrom is awaitLeader if its last word came then.
func (r *replica) awaitLeaderFrom(env *protocol.Env[smr.Message], at time.Duration) {
	// Two that stand for election at once take the votes from each other. So each has a turn of its
	// own, a round trip after the one before, and chance only breaks the tie between clocks.
	turn := r.Tempo.Times(float64(r.turn()))
	env.After(at-env.Now+r.patience()+turn+time.Duration(env.Rand.Int64N(int64(r.Tempo.Times(0.5)+1))), electionTimer{})
}

// turn returns how many members come before this one when a leader is missed: those that follow the
// old leader, or, if that is not known, another one first in each term.
func (r *replica) turn() int {
	members := r.State.Members()
	index := func(id protocol.ID) int {
		return slices.IndexFunc(members, func(m smr.Member) bool { return m.ID == id })
	}
	n, self := len(members), index(r.Cfg.ID)
	if self < 0 {
		return n
	}
	if lead := index(r.core.leader()); lead >= 0 {
		return (self - lead - 1 + n) % n
	}
	return (self + int(r.core.term()%uint64(n))) % n
}

func (r *replica) onElectionTimer(env *protocol.Env[smr.Message]) {
	if r.core.leads() || r.Resting.Relies(env) {
		return
	}
	if _, member := r.State.Member(r.Cfg.ID); member && r.Admission.Admitted() {
		if r.core.stands() {
			r.Tempo.Missed(env.Now) // the last attempt was in vain
		}
		r.hasLeader = false
		r.core.campaign(env)
	}
	r.awaitLeader(env)
}

func (r *replica) onBeat(env *protocol.Env[smr.Message]) {
	if !r.core.leads() || r.Resting.Skips(env) {
		return
	}
	if peer, ok := r.lostQuorum(env.Now); ok {
		r.Tempo.Missed(env.Now)
		r.core.retire(env, peer)
		return
	}
	r.tendLearners(env.Now)
	r.core.node.Tick()
	r.core.flush(env)
	r.continueSending(env)
	r.Resting.NextBeat(env, r.beat())
}

// lostQuorum reports whether a leader has not heard from a majority for so long that there may be
// another one, and names a peer.
func (r *replica) lostQuorum(now time.Duration) (peer protocol.ID, lost bool) {
	members := r.State.Members()
	alive := 0
	for _, m := range members {
		if m.ID == r.Cfg.ID {
			alive++
			continue
		}
		peer = m.ID
		if at, ok := r.heard[m.ID]; ok && (now-at < r.patience() || now < at) {
			alive++
		}
	}
	return peer, peer != 0 && alive <= len(members)/2
}

// leader returns who leads, as far as is known. One that was removed knows nothing any more but
// members, of whom it names one.
func (r *replica) leader() smr.Member {
	if r.State.Removed(r.Cfg.ID) {
		members := r.State.Members()
		return members[int(r.core.term())%len(members)]
	}
	id := r.core.leader()
	if id == r.Cfg.ID && !r.core.leads() {
		return smr.Member{}
	}
	for _, m := range r.State.Members() {
		if m.ID == id {
			return m
		}
	}
	return smr.Member{ID: id}
}
