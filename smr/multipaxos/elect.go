package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// candidacy is an attempt to lead, in two steps. The pre-vote asks whether an attempt would be
// welcome, so that a replica that was cut off does not depose a leader that works. Phase 1 then
// asks a majority to promise the ballot and to tell their votes. Its zero value is no attempt.
type candidacy struct {
	ballot kit.Ballot   // 0: none chosen yet
	above  kit.Ballot   // the highest ballot that others said they had promised; the next one is above it
	pre    bool         // in the pre-vote
	agreed quorum.Votes // who has granted the pre-vote, or promised

	low       smr.Slot   // phase 1 covers the slots from here on
	promisers []promiser // one for each acceptor that was asked
	best      []vote     // for each slot from low on, the vote of the highest ballot so far
	decide    smr.Slot   // the votes in best up to this slot are known to be decided
}

// promiser is how much of its log an acceptor has told the candidate. Its promise counts when the
// last of it is here: until then the acceptor may have votes that bind the candidate.
type promiser struct {
	from protocol.ID
	next smr.Slot
	done bool
}

// onCampaign tries to lead, or tries again.
func (r *replica) onCampaign(env *protocol.Env[smr.Message]) {
	switch {
	case r.role == follower, r.role == candidate && r.candidacy.pre:
		r.sendPreVotes(env)
	case r.role == candidate && env.Now-r.gotOn < r.Tempo.Times(candidateSpan) && env.Now >= r.gotOn:
		// Promises are still coming in, or the messages were lost. The ballot stays the same: those
		// who have promised it need not do so again. A gotOn ahead of now is of a clock that was set
		// back since: how long ago that is nobody knows, so it counts as too long.
		for _, p := range r.candidacy.promisers {
			if !p.done {
				r.sendPrepare(env, p)
			}
		}
		env.After(r.Tempo.Times(1), campaignTimer{})
	case r.role == candidate:
		// No majority in time. Another pre-vote, after a random wait, rather than a higher ballot
		// at once: two candidates that outbid each other would keep each other from leading.
		r.Tempo.Missed(env.Now)
		above := r.candidacy.above
		r.becomeFollower(env, 0)
		r.quiet = true
		r.candidacy.above = above
		env.Stop(leaderTimer{})
		env.After(r.Tempo.Times(campaignSpan*env.Rand.Float64()), campaignTimer{})
	}
}

// sendPreVotes asks all members whether they would promise. Asking again in the same ballot keeps
// the answers that have come.
func (r *replica) sendPreVotes(env *protocol.Env[smr.Message]) {
	ballot := kit.NewBallot(max(r.promised, r.candidacy.above), r.Cfg.ID)
	if r.candidacy.ballot != ballot {
		r.candidacy = candidacy{ballot: ballot, above: r.candidacy.above, pre: true}
	}
	r.role, r.leader = candidate, 0
	env.Stop(leaderTimer{})
	for _, m := range r.State.Members() {
		if m.ID != r.Cfg.ID {
			r.Admission.SendAhead(env, m.ID, preVote{Ballot: ballot, Commit: r.commit})
		}
	}
	env.After(r.Tempo.Times(retry*(1+env.Rand.Float64())), campaignTimer{})
	r.onPreVoteReply(env, r.Cfg.ID, preVoteReply{Ballot: ballot, Granted: true})
}

func (r *replica) onPreVote(env *protocol.Env[smr.Message], from protocol.ID, m preVote) {
	if r.State.Removed(from) {
		r.Admission.SendAhead(env, from, kit.Removed{})
		return
	}
	// A replica that hears a leader says no. One that waits to be added has no timer by which to
	// miss a leader, so it never objects. A candidate that lacks slots which this log has discarded
	// could not use this replica's promise (see onPromise): it needs a snapshot first.
	granted := (r.quiet && r.role != leader || r.role == blank) && m.Ballot > r.promised && m.Commit >= r.log.base
	r.Admission.SendAhead(env, from, preVoteReply{Ballot: m.Ballot, Granted: granted, Promised: r.promised})
}

func (r *replica) onPreVoteReply(env *protocol.Env[smr.Message], from protocol.ID, m preVoteReply) {
	c := &r.candidacy
	if !m.Granted {
		// Without this a replica whose ballots are too low would be refused for ever: a pre-vote
		// raises nobody's promise.
		c.above = max(c.above, m.Promised)
		return
	}
	if r.role != candidate || !c.pre || m.Ballot != c.ballot || !c.agreed.Add(from) || !r.majority(&c.agreed) {
		return
	}
	r.stand(env, c.ballot)
}

// stand begins phase 1 in a ballot. Slots up to commit need none: this replica knows their values.
func (r *replica) stand(env *protocol.Env[smr.Message], b kit.Ballot) {
	r.candidacy = candidacy{ballot: b, above: r.candidacy.above, low: r.commit + 1, decide: r.commit}
	r.gotOn = env.Now
	r.askForPromises(env)
	env.After(r.Tempo.Times(1), campaignTimer{})
}

// majority reports whether a majority of the members has voted.
func (r *replica) majority(v *quorum.Votes) bool {
	members := r.State.MemberIDs()
	return v.Among(members) >= quorum.Majority(len(members))
}

// askForPromises asks all members that were not asked yet. The replica itself is one of them: its
// own promise arrives, as a message to itself, when it is on disk.
func (r *replica) askForPromises(env *protocol.Env[smr.Message]) {
	c := &r.candidacy
	for _, id := range r.State.MemberIDs() {
		if c.promiser(id) == nil {
			c.promisers = append(c.promisers, promiser{from: id, next: c.low})
			r.sendPrepare(env, c.promisers[len(c.promisers)-1])
		}
	}
}

func (c *candidacy) promiser(id protocol.ID) *promiser {
	for i := range c.promisers {
		if c.promisers[i].from == id {
			return &c.promisers[i]
		}
	}
	return nil
}

// sendPrepare asks an acceptor for the next part of its votes. The message to others need not wait
// for the candidate's own promise to be on disk. If a crash forgets that promise, the candidate may
// ask in the same ballot again, but it has proposed nothing in it: see maybeLead.
func (r *replica) sendPrepare(env *protocol.Env[smr.Message], p promiser) {
	m := prepare{Ballot: r.candidacy.ballot, Low: p.next}
	if p.from == r.Cfg.ID {
		r.onPrepare(env, p.from, m)
	} else {
		r.Admission.SendAhead(env, p.from, m)
	}
}

// onPrepare is phase 1b: a promise to accept nothing in lower ballots any more, and this replica's
// votes so far. The two together are what makes phase 1 safe: whatever a lower ballot decides, or
// has decided, has a vote among those of any majority that promised.
func (r *replica) onPrepare(env *protocol.Env[smr.Message], from protocol.ID, m prepare) {
	switch {
	case !owns(from, m.Ballot):
		return // a ballot is its owner's alone: else two replicas could lead in it
	case r.State.Removed(from):
		r.Admission.SendAhead(env, from, kit.Removed{})
		return
	case m.Ballot < r.promised:
		r.Admission.SendAhead(env, from, refusal{Promised: r.promised})
		return
	case m.Ballot > r.promised:
		if from != r.Cfg.ID && r.role != blank {
			// A leader or candidate of a lower ballot is one no more. A candidate is not a leader
			// yet: a replica whose leader is silent keeps missing it, so it still grants pre-votes
			// to others if this candidate fails.
			quiet := r.quiet
			r.becomeFollower(env, 0)
			r.quiet = quiet
		}
		r.raise(m.Ballot)
		r.log.promise(env, promiseRecord{m.Ballot, r.commit})
	}
	// An equal ballot is answered too: the candidate asks for the next part, or the answer was
	// lost.
	p := promise{Ballot: m.Ballot, Low: m.Low, Base: r.log.base, Commit: r.commit, Last: true}
	var message kit.Page
	for s := m.Low; s > r.log.base && s <= r.log.last(); s++ {
		v := r.log.at(s)
		if !message.Takes(v.Entry) {
			p.Last = false
			break
		}
		p.Slots = append(p.Slots, v)
	}
	// Send, not SendAhead. If a crash undid a promise that was told, this replica could go on to
	// vote in a lower ballot, and complete a majority there that the new leader has not heard of.
	r.Admission.Send(env, from, p)
}

// onPromise collects the votes of one acceptor, a part at a time. Parts are taken in order only,
// and once: best has no gaps because no acceptor's log has one.
func (r *replica) onPromise(env *protocol.Env[smr.Message], from protocol.ID, m promise) {
	c := &r.candidacy
	p := c.promiser(from)
	if r.role != candidate || c.pre || m.Ballot != c.ballot || p == nil || p.done || m.Low != p.next {
		return
	}
	if m.Base >= m.Low {
		// It has discarded slots that this replica lacks. They are decided, but the promise does
		// not say how, and a leader that counted it would propose other entries there. So this
		// promise counts for nothing: with too many of them, somebody else must lead.
		return
	}
	for i, v := range m.Slots {
		c.merge(m.Low+smr.Slot(i), v, m.Commit)
	}
	p.next += smr.Slot(len(m.Slots))
	p.done = m.Last
	r.gotOn = env.Now
	if !p.done {
		r.sendPrepare(env, *p)
		return
	}
	c.agreed.Add(from)
	r.maybeLead(env)
}

// merge takes an acceptor's vote for a slot at most one beyond the last. The vote of the highest
// ballot binds the candidate: if a lower ballot has decided the slot, each ballot after it has
// proposed that entry again [Paxos Made Simple §2.2]. A vote that its acceptor knows to be decided
// binds as well, whatever its ballot: a vote of a higher one can only be for the same entry.
func (c *candidacy) merge(s smr.Slot, v vote, decided smr.Slot) {
	i := int(s - c.low)
	switch {
	case i > len(c.best):
		return // cannot be from a right acceptor, whose promises come in order and have no gaps
	case i == len(c.best):
		c.best = append(c.best, v)
	case s <= decided || v.Ballot > c.best[i].Ballot:
		c.best[i] = v
	}
	if s <= decided && s == c.decide+1 { // acceptors know of decisions by number, so of all below too
		c.decide = s
	}
}

// maybeLead leads once a majority has promised, this replica among them. Paxos would do with any
// majority, but a candidate whose own promise is not on disk may forget the ballot in a crash, and
// use it a second time for other commands.
//
// Before it leads it applies what phase 1 found to be decided. That may change the members, and
// with them the majority that has to promise: hence the loop.
func (r *replica) maybeLead(env *protocol.Env[smr.Message]) {
	c := &r.candidacy
	for r.majority(&c.agreed) {
		if own := c.promiser(r.Cfg.ID); own == nil || !own.done {
			return
		}
		if c.decide == r.commit {
			r.becomeLeader(env)
			return
		}
		// Votes in this ballot for entries that are decided are safe: no ballot can propose others
		// in their slots. They replace votes of lower ballots, which may have been for other
		// entries.
		var entries []kit.Entry
		for s := r.commit + 1; s <= c.decide; s++ {
			entries = append(entries, c.best[s-c.low].Entry)
		}
		r.log.write(env, acceptRecord{Ballot: c.ballot, First: r.commit + 1, Commit: c.decide, Entries: entries})
		r.decide(env, c.decide)
		if r.role != candidate {
			return // it was removed
		}
		r.askForPromises(env)
	}
}
