package multipaxos

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// restRules are what package kit asks about a group that has nothing to do.
func (r *replica) restRules() kit.RestRules {
	return kit.RestRules{
		Leads: func() bool { return r.role == leader },
		Leader: func() (protocol.ID, uint64) {
			if r.role != follower && r.role != leader {
				return 0, 0
			}
			return r.leader, uint64(r.promised)
		},
		End:  func() (smr.Slot, bool) { return r.log.last(), r.log.last() == r.commit },
		Idle: r.idle, Wakes: wakes, Await: r.awaitBeat, Resume: r.resume, Beat: beatTimer{},
		Patience: func() time.Duration { return r.Tempo.Times(leaderTimeout) },
	}
}

// idle reports whether a leader has nothing to do, and all others have all that it has.
func (r *replica) idle(time.Duration) bool {
	l := &r.lead
	if len(l.learners) > 0 || len(l.queue) > 0 || r.Batch.Waits() || l.changing != 0 || l.reads.Waiting() {
		return false
	}
	return !slices.ContainsFunc(l.peers, func(p *peer) bool { return p.match != l.end || r.Transfers.Of(p.id) != nil })
}

// wakes reports whether a message gives a leader something to do: one of a candidate, or of a
// follower that misses something or refuses.
func wakes(msg smr.Message) bool {
	switch msg.(type) {
	case preVote, prepare, missing, refusal, accept, promise:
		return true
	}
	return false
}

// resume has a leader look for its majority from now on, as when it began to lead.
func (r *replica) resume(env *protocol.Env[smr.Message]) {
	for _, p := range r.lead.peers {
		p.heard = true
	}
	env.After(r.Tempo.Times(leaderTimeout), quorumTimer{})
}

// awaitBeat has a follower wait for its leader's next word, as if the last one had come then.
func (r *replica) awaitBeat(env *protocol.Env[smr.Message], at time.Duration) {
	r.heard.from = 0
	env.After(at-env.Now+r.Tempo.Times(leaderTimeout), leaderTimer{})
}
