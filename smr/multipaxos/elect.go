package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// candidacy is an attempt to lead. Its zero value is none.
type candidacy struct {
	ballot Ballot // 0: not even asked
	above  Ballot // the next ballot has to be above it
	pre    bool   // asking whether to ask
	votes  quorum.Votes

	low    smr.Slot // phase 1 is about the slots from here on
	pages  []page   // of those who are asked
	best   []Vote   // of the slots from low on: the vote of the highest ballot
	decide smr.Slot // best is decided up to here
}

// page is how far an acceptor has told what it has accepted.
type page struct {
	from protocol.ID
	next smr.Slot
	done bool
}

// onCampaign tries to lead, or tries again.
func (r *Replica) onCampaign(env *protocol.Env[smr.Message]) {
	switch {
	case r.role == follower, r.role == candidate && r.candidacy.pre:
		r.preVote(env)
	case r.role == candidate && env.Now-r.asked < r.Tempo.Times(candidateSpan) && env.Now >= r.asked:
		for _, p := range r.candidacy.pages {
			if !p.done {
				r.prepare(env, p)
			}
		}
		env.After(r.Tempo.Times(1), campaignTimer{})
	case r.role == candidate:
		r.Tempo.Missed(env.Now)
		above := r.candidacy.above
		r.becomeFollower(env, 0)
		r.quiet = true
		r.candidacy.above = above
		env.Stop(leaderTimer{})
		env.After(r.Tempo.Times(campaignSpan*env.Rand.Float64()), campaignTimer{})
	}
}

// preVote asks all members whether they would promise.
func (r *Replica) preVote(env *protocol.Env[smr.Message]) {
	ballot := newBallot(max(r.promised, r.candidacy.above), r.Cfg.ID)
	if r.candidacy.ballot != ballot {
		r.candidacy = candidacy{ballot: ballot, above: r.candidacy.above, pre: true}
	}
	r.role, r.leader = candidate, 0
	env.Stop(leaderTimer{})
	for _, m := range r.State.Members() {
		if m.ID != r.Cfg.ID {
			r.Admission.SendAhead(env, m.ID, PreVote{Ballot: ballot, Commit: r.commit})
		}
	}
	env.After(r.Tempo.Times(retry*(1+env.Rand.Float64())), campaignTimer{})
	r.onPreVoteReply(env, r.Cfg.ID, PreVoteReply{Ballot: ballot, Granted: true})
}

func (r *Replica) onPreVote(env *protocol.Env[smr.Message], from protocol.ID, m PreVote) {
	if r.State.Removed(from) {
		r.Admission.SendAhead(env, from, kit.Removed{})
		return
	}
	// One that lacks what others have thrown away would have to get a snapshot first.
	granted := (r.quiet && r.role != leader || r.role == blank) && m.Ballot > r.promised && m.Commit >= r.log.base
	r.Admission.SendAhead(env, from, PreVoteReply{Ballot: m.Ballot, Granted: granted, Promised: r.promised})
}

func (r *Replica) onPreVoteReply(env *protocol.Env[smr.Message], from protocol.ID, m PreVoteReply) {
	c := &r.candidacy
	if !m.Granted {
		c.above = max(c.above, m.Promised)
		return
	}
	if r.role != candidate || !c.pre || m.Ballot != c.ballot || !c.votes.Add(from) || !r.majority(&c.votes) {
		return
	}
	r.stand(env, c.ballot)
}

// stand begins phase 1 in a ballot.
func (r *Replica) stand(env *protocol.Env[smr.Message], b Ballot) {
	r.candidacy = candidacy{ballot: b, above: r.candidacy.above, low: r.commit + 1, decide: r.commit}
	r.asked = env.Now
	r.askForPromises(env)
	env.After(r.Tempo.Times(1), campaignTimer{})
}

// majority tells whether a majority of the members has voted.
func (r *Replica) majority(v *quorum.Votes) bool {
	members := memberIDs(r.State)
	return v.Among(members) >= quorum.Majority(len(members))
}

func memberIDs(s *kit.State) []protocol.ID {
	var ids []protocol.ID
	for _, m := range s.Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

// askForPromises asks all members that were not asked yet. The replica itself is one of them: its
// promise comes when it is on disk.
func (r *Replica) askForPromises(env *protocol.Env[smr.Message]) {
	c := &r.candidacy
	for _, id := range memberIDs(r.State) {
		if c.page(id) == nil {
			c.pages = append(c.pages, page{from: id, next: c.low})
			r.prepare(env, c.pages[len(c.pages)-1])
		}
	}
}

func (c *candidacy) page(of protocol.ID) *page {
	for i := range c.pages {
		if c.pages[i].from == of {
			return &c.pages[i]
		}
	}
	return nil
}

func (r *Replica) prepare(env *protocol.Env[smr.Message], p page) {
	m := Prepare{Ballot: r.candidacy.ballot, Low: p.next}
	if p.from == r.Cfg.ID {
		r.onPrepare(env, p.from, m)
	} else {
		r.Admission.SendAhead(env, p.from, m)
	}
}

func (r *Replica) onPrepare(env *protocol.Env[smr.Message], from protocol.ID, m Prepare) {
	switch {
	case !owns(from, m.Ballot):
		return
	case r.State.Removed(from):
		r.Admission.SendAhead(env, from, kit.Removed{})
		return
	case m.Ballot < r.promised:
		r.Admission.SendAhead(env, from, Refusal{Promised: r.promised})
		return
	case m.Ballot > r.promised:
		if from != r.Cfg.ID && r.role != blank {
			quiet := r.quiet
			r.becomeFollower(env, 0)
			r.quiet = quiet
		}
		r.adopt(m.Ballot)
		r.log.promise(env, PromiseRecord{m.Ballot, r.commit})
	}
	p := Promise{Ballot: m.Ballot, Low: m.Low, Base: r.log.base, Commit: r.commit, Last: true}
	size := 0
	for s := m.Low; s > r.log.base && s <= r.log.last(); s++ {
		v := r.log.at(s)
		if size += len(v.Entry.Command) + 32; size > kit.MessageBytes && len(p.Slots) > 0 {
			p.Last = false
			break
		}
		p.Slots = append(p.Slots, v)
	}
	r.Admission.Send(env, from, p)
}

func (r *Replica) onPromise(env *protocol.Env[smr.Message], from protocol.ID, m Promise) {
	c := &r.candidacy
	p := c.page(from)
	if r.role != candidate || c.pre || m.Ballot != c.ballot || p == nil || p.done || m.Low != p.next {
		return
	}
	if m.Base >= m.Low {
		return // it has thrown away what the replica lacks: somebody else must lead
	}
	for i, v := range m.Slots {
		c.merge(m.Low+smr.Slot(i), v, m.Commit)
	}
	p.next += smr.Slot(len(m.Slots))
	p.done = m.Last
	r.asked = env.Now
	if !p.done {
		r.prepare(env, *p)
		return
	}
	c.votes.Add(from)
	r.maybeLead(env)
}

// merge takes an acceptor's vote for a slot at most one beyond the last; the vote of the highest
// ballot binds the candidate, or one that is known to be decided, which is no other.
func (c *candidacy) merge(s smr.Slot, v Vote, decided smr.Slot) {
	i := int(s - c.low)
	switch {
	case i > len(c.best):
		return // the pages of one acceptor come in order, so this is not so
	case i == len(c.best):
		c.best = append(c.best, v)
	case s <= decided || v.Ballot > c.best[i].Ballot:
		c.best[i] = v
	}
	if s <= decided && s == c.decide+1 {
		c.decide = s
	}
}

// maybeLead leads if a majority has promised, and the replica's own promise is on disk: one that
// forgot the ballot in a crash would use it again for other commands. What is decided may change
// the members, and with them the majority.
func (r *Replica) maybeLead(env *protocol.Env[smr.Message]) {
	c := &r.candidacy
	for r.majority(&c.votes) {
		if own := c.page(r.Cfg.ID); own == nil || !own.done {
			return
		}
		if c.decide == r.commit {
			r.becomeLeader(env)
			return
		}
		var entries []kit.Entry
		for s := r.commit + 1; s <= c.decide; s++ {
			entries = append(entries, c.best[s-c.low].Entry)
		}
		r.log.accept(env, AcceptRecord{Ballot: c.ballot, First: r.commit + 1, Commit: c.decide, Entries: entries})
		r.decide(env, c.decide)
		if r.role != candidate {
			return // it was removed
		}
		r.askForPromises(env)
	}
}
