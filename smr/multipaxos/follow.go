package multipaxos

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// becomeFollower makes the replica follow a leader, or nobody yet if it is 0, and wait for word of
// it.
func (r *replica) becomeFollower(env *protocol.Env[smr.Message], of protocol.ID) {
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
func (r *replica) hearLeader(env *protocol.Env[smr.Message], from protocol.ID) {
	if gap := env.Now - r.heard.at; r.heard.from == from {
		// if it is long, its beats are behind something large
		r.Tempo.Saw(env.Now, time.Duration(float64(gap)/beatEvery))
	}
	r.heard.from, r.heard.at = from, env.Now
	if r.role == blank {
		r.leader = from // it has no timers
		return
	}
	since := env.Now - r.reset // below 0 if the clock was set back: then the timer is set anew
	if r.role != follower || r.leader != from || r.quiet || since < 0 || since >= r.Times(beatEvery/2) {
		r.becomeFollower(env, from)
	}
}

// onQuiet gives up on a leader that was not heard for leaderTimeout. The random wait that follows
// keeps replicas that miss the same leader from standing all at once.
func (r *replica) onQuiet(env *protocol.Env[smr.Message]) {
	if r.role != follower || r.Resting.Relies(env) {
		return
	}
	r.quiet, r.leader = true, 0
	env.After(r.Tempo.Times(campaignSpan*env.Rand.Float64()), campaignTimer{})
}

// raise promises a higher ballot; the caller writes it down. matched is about the promised ballot's
// leader, so it is found anew: votes of the old ballot say nothing about the new leader's entries.
func (r *replica) raise(b kit.Ballot) {
	r.promised = b
	r.rematch()
}

// owns reports whether a ballot is a replica's.
func owns(id protocol.ID, b kit.Ballot) bool { return id != protocol.App && b.Owner() == id }

// onAccept is phase 2b. A replica may vote in a ballot that it did not promise in phase 1:
// accepting a higher ballot promises it.
func (r *replica) onAccept(env *protocol.Env[smr.Message], from protocol.ID, m accept) {
	switch {
	case !owns(from, m.Ballot) || from == r.Cfg.ID || m.First == 0:
		return
	case m.Ballot < r.promised:
		r.Admission.SendAhead(env, from, refusal{Promised: r.promised})
		return
	case m.Ballot > r.promised:
		r.raise(m.Ballot)
		// It is written even if the message is a beat, or leaves a gap, and so brings no vote:
		// the answers below are answers in this ballot, and whoever gave them must refuse lower
		// ballots, even after a crash (TestImpliedPromiseIsOnDisk).
		r.log.promise(env, promiseRecord{m.Ballot, r.commit})
	}
	r.hearLeader(env, from)
	if len(m.Entries) == 0 && m.Round > 0 {
		// The polled may leave ahead of that record. It says that no higher ballot was promised here
		// when the question came, and that stays true if a crash forgets this one. So a leader of a
		// higher ballot that gets this replica's promise decides only after the question was asked.
		// That no lower ballot decides anything more holds by the majority that promised this one
		// in phase 1, on their disks.
		r.Admission.SendAhead(env, from, polled{Ballot: m.Ballot, Round: m.Round})
	}
	// A replica to be added has no state: even with all slots it would lack the members with whom
	// the group began, which stand in no slot. So it asks for a snapshot.
	if r.Cfg.Join && r.State.Applied() == 0 {
		r.miss(env, from, m.Ballot, 0)
		return
	}
	if m.First > r.matched+1 {
		r.miss(env, from, m.Ballot, r.matched+1)
		return
	}
	r.take(env, m)
	// Send, not SendAhead: the leader counts this as a vote. If a crash could undo it, a later
	// phase 1 might not find an entry that was decided and acknowledged.
	r.Admission.Send(env, from, accepted{Ballot: m.Ballot, Match: r.matched})
}

// take accepts what is new in a message of the leader's, which begins at most one slot beyond
// matched, and learns what is decided. Up to matched the replica has the leader's entries already.
//
// It believes the leader's commit up to end only, as far as its log is the leader's. Above that it
// may have votes of earlier ballots for other entries, which are not what was decided. Raft has the
// same rule: min(leaderCommit, index of last new entry).
//
// Because a message is taken only if it leaves no gap, whoever has voted for a slot in a ballot has
// voted in that ballot for each slot below it too, or knew it to be decided. becomeLeader rests on
// this.
func (r *replica) take(env *protocol.Env[smr.Message], m accept) {
	had := r.matched + 1 - m.First
	end := max(r.matched, m.First+smr.Slot(len(m.Entries))-1)
	commit := max(r.commit, min(m.Commit, end))
	if had < smr.Slot(len(m.Entries)) {
		r.log.write(env, acceptRecord{Ballot: m.Ballot, First: r.matched + 1, Commit: commit, Entries: m.Entries[had:]})
		r.matched = end
	}
	r.decide(env, commit)
}

// miss asks for what lies before a message that came too early. Several messages behind one gap
// lead to one question, since the answer to it brings all of them again.
func (r *replica) miss(env *protocol.Env[smr.Message], from protocol.ID, b kit.Ballot, want smr.Slot) {
	m := missing{Ballot: b, Want: want}
	since := env.Now - r.missingAt // below 0 if the clock was set back: rather asked twice than never
	if m == r.missing && since >= 0 && since < r.Tempo.Times(1) {
		return
	}
	r.missing, r.missingAt = m, env.Now
	r.Admission.SendAhead(env, from, m)
}

// Broken asks the leader for what may have been lost with a connection to it. Waiting for the next
// message to show the gap would take up to a beat.
func (r *replica) Broken(env *protocol.Env[smr.Message], from protocol.ID) {
	if r.role == follower && from == r.leader && !r.Admission.Refused() {
		r.Admission.SendAhead(env, from, missing{Ballot: r.promised, Want: r.matched + 1})
	}
}

// decide applies what is decided up to a slot.
func (r *replica) decide(env *protocol.Env[smr.Message], to smr.Slot) {
	for r.commit < to {
		r.commit++
		e := r.log.at(r.commit).Entry
		reply := r.State.Apply(r.commit, e)
		r.log.journal.Executed()
		if r.role == leader {
			r.Desk.Applied(env, e, reply)
		}
		if e.Kind == kit.ChangeMembers && reply.Outcome == smr.Committed {
			r.MembersChanged(env)
		}
	}
	r.matched = max(r.matched, r.commit)
	r.log.journal.MaybeSave(env, nil)
}

func (r *replica) onRefusal(env *protocol.Env[smr.Message], m refusal) {
	if m.Promised <= r.promised {
		return
	}
	// Somebody is ahead, so the next attempt is above that. This replica does not promise that
	// ballot: its owner has not asked this one.
	r.candidacy.above = max(r.candidacy.above, m.Promised)
	if r.role == leader || r.role == candidate {
		above := r.candidacy.above
		r.becomeFollower(env, 0)
		r.candidacy.above = above
	}
}
