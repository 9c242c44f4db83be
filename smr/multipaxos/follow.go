package multipaxos

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// becomeFollower makes the replica follow a leader, or nobody yet if it is 0, and wait for word of
// it.
func (r *Replica) becomeFollower(env *protocol.Env[smr.Message], of protocol.ID) {
	if r.role == leader {
		r.stopLeading(env)
	}
	r.candidacy = candidacy{}
	r.role, r.leader = follower, of
	r.quiet = false
	env.Stop(campaignTimer{})
	env.After(r.Tempo.Times(leaderTimeout), leaderTimer{})
	r.reset = env.Now
}

// hearLeader notes that the leader is there. Timers are not set anew for each of many messages.
func (r *Replica) hearLeader(env *protocol.Env[smr.Message], from protocol.ID) {
	if gap := env.Now - r.heard.at; r.heard.from == from {
		// if it is long, its heartbeats are behind something large
		r.Tempo.Saw(env.Now, time.Duration(float64(gap)/heartbeat))
	}
	r.heard.from, r.heard.at = from, env.Now
	if r.role == blank {
		r.leader = from // it has no timers
		return
	}
	since := env.Now - r.reset
	if r.role != follower || r.leader != from || r.quiet || since < 0 || since >= r.Times(heartbeat/2) {
		r.becomeFollower(env, from)
	}
}

// onQuiet ends the time in which the replica believes in its leader.
func (r *Replica) onQuiet(env *protocol.Env[smr.Message]) {
	if r.role != follower || r.followsHost(env) {
		return
	}
	r.quiet, r.leader = true, 0
	env.After(r.Tempo.Times(campaignSpan*env.Rand.Float64()), campaignTimer{})
}

// adopt promises a higher ballot. The record of it is the caller's affair.
func (r *Replica) adopt(b Ballot) {
	r.promised = b
	r.rematch()
}

// owns tells whether a ballot is a replica's.
func owns(id protocol.ID, b Ballot) bool { return id != protocol.App && protocol.ID(uint32(b)) == id }

func (r *Replica) onAccept(env *protocol.Env[smr.Message], from protocol.ID, m Accept) {
	switch {
	case !owns(from, m.Ballot) || from == r.Cfg.ID || m.First == 0:
		return
	case m.Ballot < r.promised:
		r.Admission.SendAhead(env, from, Refusal{Promised: r.promised})
		return
	case m.Ballot > r.promised:
		r.adopt(m.Ballot)
		r.log.promise(env, PromiseRecord{m.Ballot, r.commit})
	}
	r.hearLeader(env, from)
	if len(m.Entries) == 0 && m.Round > 0 {
		r.Admission.SendAhead(env, from, Follows{Ballot: m.Ballot, Round: m.Round})
	}
	if r.Cfg.Join && r.State.Applied() == 0 {
		r.miss(env, from, m.Ballot, 0)
		return
	}
	if m.First > r.matched+1 {
		r.miss(env, from, m.Ballot, r.matched+1)
		return
	}
	r.take(env, m)
	r.Admission.Send(env, from, Accepted{Ballot: m.Ballot, Match: r.matched})
}

// take accepts what is new in a message of the leader's, and learns what is decided.
func (r *Replica) take(env *protocol.Env[smr.Message], m Accept) {
	had := r.matched + 1 - m.First
	end := max(r.matched, m.First+smr.Slot(len(m.Entries))-1)
	commit := max(r.commit, min(m.Commit, end))
	if had < smr.Slot(len(m.Entries)) {
		r.log.accept(env, AcceptRecord{Ballot: m.Ballot, First: r.matched + 1, Commit: commit, Entries: m.Entries[had:]})
		r.matched = end
	}
	r.decide(env, commit)
}

// miss asks for what lies before a message that came too early. Of several such in a row one asks.
func (r *Replica) miss(env *protocol.Env[smr.Message], from protocol.ID, b Ballot, want smr.Slot) {
	m := Missing{Ballot: b, Want: want}
	since := env.Now - r.asked
	if m == r.missing && since >= 0 && since < r.Tempo.Times(1) {
		return
	}
	r.missing, r.asked = m, env.Now
	r.Admission.SendAhead(env, from, m)
}

// Broken asks the leader for what it may have sent in vain.
func (r *Replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if r.role == follower && from == r.leader && !r.Admission.Refused() {
		r.Admission.SendAhead(env, from, Missing{Ballot: r.promised, Want: r.matched + 1})
	}
}

// decide applies what is decided up to a slot.
func (r *Replica) decide(env *protocol.Env[smr.Message], to smr.Slot) {
	for r.commit < to {
		r.commit++
		e := r.log.at(r.commit).Entry
		reply := r.State.Apply(r.commit, e)
		r.log.disk.Executed()
		if r.role == leader {
			r.Desk.Applied(env, e, reply)
		}
		if e.Kind == kit.ChangeMembers && reply.Outcome == smr.Committed {
			r.MembersChanged(env)
		}
	}
	r.matched = max(r.matched, r.commit)
	r.maybeSnapshot(env)
}

func (r *Replica) onRefusal(env *protocol.Env[smr.Message], m Refusal) {
	if m.Promised <= r.promised {
		return
	}
	// Somebody is ahead: the next attempt is above it. It is no promise, as nobody asked for one.
	r.candidacy.above = max(r.candidacy.above, m.Promised)
	if r.role == leader || r.role == candidate {
		above := r.candidacy.above
		r.becomeFollower(env, 0)
		r.candidacy.above = above
	}
}
