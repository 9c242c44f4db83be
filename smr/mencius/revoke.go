package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// candidacy is an attempt to lead a track. Mencius revokes slots of a server that is suspected, one
// Paxos instance after the other; as an owner's slots are one track here, phase 1 is asked once,
// for all positions above those that are known to be decided.
type candidacy struct {
	ballot kit.Ballot
	low    pos // phase 1 is about the positions from here on
	best   []vote
	votes  quorum.Votes
	next   []pos // how far a member has told what it has accepted, in the order of the members; 0: all
	beats  int   // since it began
}

// Times in beats.
const (
	beatEvery    = 0.5 // round trips between two
	patience     = 5   // before a leader is missed
	turn         = 2   // how much later than the next one behind the owner the one after that misses it
	courtesy     = 4   // for which nobody takes a track from a leader that was heard
	candidateFor = 6
	maxTries     = 5 // each attempt after one that was in vain gives twice as much time, up to 2^maxTries
)

// watch looks after the tracks that others lead, and takes back the own one. Members take turns by
// their distance from the owner (rank): if all began at once, each would take the promises from
// under the others.
func (r *replica) watch(env *protocol.Env[smr.Message]) {
	n := len(r.epoch.members)
	waits, _ := r.epoch.at(r.State.Applied() + 1)
	stuck := r.progress.Stands(r.State.Applied()) && r.seen > r.State.Applied()
	for i, l := range r.epoch.tracks {
		l.missing = 0
		l.silent++
		l.rest = max(l.rest-1, 0)
		if stuck && l == waits {
			l.blocked++
		} else {
			l.blocked = 0
		}
		rank := (r.own - i + n) % n
		switch {
		case l.lead != nil:
			l.silent, l.blocked = 0, 0
		case l.cand != nil:
			r.insist(env, l)
		case l.rest > 0:
		case l.owner == r.Cfg.ID, l.suspects(patience + turn*(rank-1)):
			r.campaign(env, l)
		}
	}
}

// campaign begins phase 1 for all positions of a track that are not known to be decided.
func (r *replica) campaign(env *protocol.Env[smr.Message], l *track) {
	c := &candidacy{ballot: kit.NewBallot(max(l.promised, l.above), r.Cfg.ID), low: l.commit + 1}
	l.cand = c
	l.tries = min(l.tries+1, maxTries)
	for range r.epoch.members {
		c.next = append(c.next, c.low)
	}
	r.insist(env, l)
}

// insist asks those who have not told all, and gives up after a while.
func (r *replica) insist(env *protocol.Env[smr.Message], l *track) {
	c := l.cand
	if c.beats >= candidateFor<<l.tries/2 {
		l.above, l.cand = max(l.above, c.ballot), nil
		l.rest = r.pause(env, l)
		return
	}
	if c.beats%2 == 0 {
		for i := range c.next {
			if c.next[i] != 0 && l.cand == c && (i != r.own || r.welcome(c)) {
				r.prepare(env, l, i)
			}
		}
	}
	c.beats++
}

// pause returns how many beats to wait after an attempt that was in vain, so that of several one
// comes through.
func (r *replica) pause(env *protocol.Env[smr.Message], l *track) int {
	return courtesy + env.Rand.IntN(len(r.epoch.members)<<l.tries)
}

// welcome reports whether enough others have promised for the replica to promise too. Before, its
// own promise would only disturb a leader that the others hear.
func (r *replica) welcome(c *candidacy) bool {
	return c.votes.Len() >= quorum.Majority(len(r.epoch.members))-1
}

// prepare asks a member for its promise and for its votes from c.next on.
func (r *replica) prepare(env *protocol.Env[smr.Message], l *track, member int) {
	m := prepare{r.place(l, l.cand.ballot), l.cand.next[member]}
	if to := r.epoch.members[member]; to != r.Cfg.ID {
		r.Admission.SendAhead(env, to, m)
	} else {
		r.onPrepare(env, l, to, m)
	}
}

// onPrepare promises, and tells what was accepted. The promise comes before the first page of
// votes: between two pages the leader of a lower ballot could have something accepted that no page
// shows.
func (r *replica) onPrepare(env *protocol.Env[smr.Message], l *track, from protocol.ID, m prepare) {
	switch {
	case l.leaderOf(m.Ballot) != from || m.Ballot == 0:
		return
	case m.Ballot < l.promised:
		r.Admission.SendAhead(env, from, refusal{r.place(l, l.promised)})
		return
	case m.Ballot > l.promised:
		if from != l.owner && from != r.Cfg.ID && !l.suspects(courtesy) {
			return // its leader is there: who does not hear it can ask this replica
		}
		l.raise(m.Ballot)
		r.promise(env)
	}
	p := promise{place: r.place(l, m.Ballot), Low: m.Low, Base: l.base, Last: true}
	var page kit.Page
	for pos := m.Low; pos > l.base && pos <= l.end(); pos++ {
		v := *l.at(pos)
		if !page.Takes(v.Entry) {
			p.Last = false
			break
		}
		p.Votes = append(p.Votes, v)
	}
	r.Admission.Send(env, from, p)
}

// onPromise collects votes, a page at a time, until a majority has told all.
func (r *replica) onPromise(env *protocol.Env[smr.Message], l *track, member int, m promise) {
	c := l.cand
	if c == nil || m.Ballot != c.ballot || c.next[member] == 0 || m.Low != c.next[member] {
		return
	}
	if m.Base >= m.Low {
		return // it has thrown away what this replica lacks, which has to catch up first
	}
	for i, v := range m.Votes {
		c.merge(m.Low+pos(i), v)
	}
	if !m.Last {
		c.next[member] += pos(len(m.Votes))
		r.prepare(env, l, member)
		return
	}
	c.next[member] = 0
	c.votes.Add(r.epoch.members[member])
	if !c.votes.Has(r.Cfg.ID) && r.welcome(c) && l.promised < c.ballot {
		r.prepare(env, l, r.own)
	}
	// One that forgot its ballot in a crash would use it again, so its own promise is one of them.
	if c.votes.Has(r.Cfg.ID) && c.votes.Len() >= quorum.Majority(len(r.epoch.members)) && l.promised == c.ballot {
		r.becomeLeader(env, l)
	}
}

// merge takes an acceptor's vote for a position at most one beyond the last: the one of the highest
// ballot binds the candidate. That the owner has skipped a position is true in any ballot.
func (c *candidacy) merge(p pos, v vote) {
	switch i := int(p - c.low); {
	case i > len(c.best):
	case i == len(c.best):
		c.best = append(c.best, v)
	case v.Ballot > c.best[i].Ballot:
		c.best[i] = v
	}
}

// becomeLeader proposes what phase 1 has found, in the new ballot, and so makes others accept what
// may have been decided in an earlier one. Above that the track is free.
func (r *replica) becomeLeader(env *protocol.Env[smr.Message], l *track) {
	c := l.cand
	l.cand = nil
	// While phase 1 went on, the replica may have executed and cut positions above c.low.
	votes := c.best[min(len(c.best), int(l.base+1-min(c.low, l.base+1))):]
	for i := range votes {
		votes[i].Ballot = c.ballot
	}
	first := max(c.low, l.base+1)
	r.accept(l, first, votes)
	l.rematch()
	r.leadFrom(env, l, first)
	if l.owner == r.Cfg.ID {
		for _, p := range sortedPos(r.mine) {
			if p <= l.end() && p > l.base {
				r.again(env, p, l.at(p).Entry)
			}
		}
	}
	r.soon(env)
}

// leadFrom makes the replica a track's leader, who sends the others the positions from one on.
func (r *replica) leadFrom(env *protocol.Env[smr.Message], l *track, next pos) {
	l.lead = &leading{}
	for range r.epoch.members {
		l.lead.flows = append(l.lead.flows, kit.NewFlow(next))
	}
	l.tell = tellAll
	if r.active() {
		for i := range r.epoch.members {
			r.pump(env, l, i)
		}
	}
}
