package raft

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// awaitLeader starts the wait for a leader's next word anew.
func (r *replica) awaitLeader(env *protocol.Env[smr.Message]) {
	if r.core.leads() {
		return
	}
	// A span of two round trips keeps replicas from standing for election at once, mostly.
	span := 2 * r.cfg.RoundTrip
	env.After(r.patience()+time.Duration(env.Rand.Int64N(int64(span))), electionTimer{})
}

func (r *replica) onElectionTimer(env *protocol.Env[smr.Message]) {
	if r.core.leads() {
		return
	}
	if _, member := r.state.Member(r.cfg.ID); member && r.adm.Admitted() {
		r.hasLeader = false
		r.core.campaign(env)
	}
	r.awaitLeader(env)
}

func (r *replica) onBeat(env *protocol.Env[smr.Message]) {
	if !r.core.leads() {
		return
	}
	if peer, ok := r.lostQuorum(env.Now); ok {
		r.core.retire(env, peer)
		return
	}
	r.core.node.Tick()
	r.core.flush(env)
	r.continueTransfers(env)
	env.After(r.beat(), beatTimer{})
}

// lostQuorum tells whether a leader has not heard from a majority for so long that there may be another one, and names a peer.
func (r *replica) lostQuorum(now time.Duration) (peer protocol.ID, lost bool) {
	members := r.state.Members()
	alive := 0
	for _, m := range members {
		if m.ID == r.cfg.ID {
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

// leader returns who leads, as far as is known. One that was removed knows nothing any more but members, of whom it names one.
func (r *replica) leader() smr.Member {
	if r.state.Removed(r.cfg.ID) {
		members := r.state.Members()
		return members[int(r.core.term())%len(members)]
	}
	id := r.core.leader()
	if id == r.cfg.ID && !r.core.leads() {
		return smr.Member{}
	}
	for _, m := range r.state.Members() {
		if m.ID == id {
			return m
		}
	}
	return smr.Member{ID: id}
}
