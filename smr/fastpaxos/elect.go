package fastpaxos

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// candidacy is an attempt to coordinate.
type candidacy struct {
	era     kit.Ballot
	classic bool
	low     smr.Slot // phase 1 is about the slots from here on
	found   map[smr.Slot][]vote
	last    smr.Slot // of found
	votes   quorum.Votes
	next    map[protocol.ID]smr.Slot // how far a member has told its votes; 0: all
	asked   map[protocol.ID]int      // the beat in which it was asked last
	beats   int                      // since it began
	heard   int                      // the beat in which somebody told more
}

// Times in beats.
const (
	beatEvery    = 0.5 // round trips between two
	patience     = 5   // before a coordinator is missed
	turn         = 2   // how much later than one member the next one misses it
	courtesy     = 4   // for which nobody takes over from a coordinator that was heard
	candidateFor = 6
	askAgain     = 2
	maxTries     = 5 // each attempt after one that was in vain gives twice as much time, up to 2^maxTries
)

// watch stands for coordinator if there is none, or if this replica was and does not know any more
// what it knew.
func (r *replica) watch(env *protocol.Env[smr.Message]) {
	r.silent++
	r.rest = max(r.rest-1, 0)
	if r.lead != nil {
		r.silent = 0
	}
	members := r.State.MemberIDs()
	rank := slices.Index(members, r.Cfg.ID)
	lead := max(slices.Index(members, r.Cfg.Leader), 0)
	rank = (rank - lead + len(members)) % len(members)
	wait := patience + turn*rank
	if r.promised == 0 && rank == 0 {
		wait = 1 // a new group has no coordinator that could be disturbed
	}
	switch {
	case r.cand != nil:
		r.insist(env)
	case r.lead == nil && r.rest == 0 && r.silent >= wait:
		r.campaign(env, false)
	}
}

// campaign begins phase 1 for all slots that are not applied. Slots that are applied need none:
// this replica knows what was chosen there, and whoever has applied more than it is caught up with
// first (onPromise).
func (r *replica) campaign(env *protocol.Env[smr.Message], classic bool) {
	c := &candidacy{
		era: kit.NewBallot(max(r.promised, r.above), r.Cfg.ID), classic: classic, low: r.State.Applied() + 1,
		found: map[smr.Slot][]vote{}, next: map[protocol.ID]smr.Slot{}, asked: map[protocol.ID]int{},
	}
	r.cand = c
	r.tries = min(r.tries+1, maxTries)
	for _, id := range r.State.MemberIDs() {
		c.next[id] = c.low
	}
	r.insist(env)
}

// insist asks those who have not told all, and gives up when nobody has told more for a while:
// large votes take many messages and much longer than a round trip.
func (r *replica) insist(env *protocol.Env[smr.Message]) {
	c := r.cand
	if c.beats-c.heard >= candidateFor<<r.tries/2 {
		r.above = max(r.above, c.era)
		r.abandon()
		r.pause(env)
		return
	}
	c.beats++
	for _, id := range r.State.MemberIDs() {
		asked := c.asked[id] > 0 && c.beats-c.asked[id] < askAgain // the answer may be on its way
		if r.cand == c && c.next[id] != 0 && !asked && (id != r.Cfg.ID || r.welcome(c)) {
			r.prepare(env, id)
		}
	}
}

// abandon ends an attempt.
func (r *replica) abandon() {
	r.cand = nil
	if r.carry != nil {
		r.carry = nil
		r.Desk.Reset() // clients ask again
	}
}

// pause waits after an attempt that was in vain, so that of several one comes through.
func (r *replica) pause(env *protocol.Env[smr.Message]) {
	r.rest = courtesy + env.Rand.IntN(len(r.State.MemberIDs())<<r.tries)
}

// welcome reports whether enough others have promised for the replica to promise too. Before, its
// own promise would only disturb a coordinator that the others hear.
func (r *replica) welcome(c *candidacy) bool {
	return c.votes.Among(r.State.MemberIDs()) >= quorum.Majority(len(r.State.Members()))-1
}

// prepare asks a member for the next part of its votes. Others may be asked before the replica's
// own promise is on its disk: after a crash that forgets the promise it may ask in this era again,
// but it has proposed nothing in it, since its own promise has to be among a majority's.
func (r *replica) prepare(env *protocol.Env[smr.Message], id protocol.ID) {
	m := prepare{r.head(r.cand.era), r.cand.next[id]}
	r.cand.asked[id] = r.cand.beats
	if id != r.Cfg.ID {
		r.Admission.SendAhead(env, id, m)
	} else {
		r.onPrepare(env, id, m)
	}
}

// onPrepare is phase 1b: a promise to vote in no lower era any more, and the votes so far, a part
// at a time. Whatever a lower era chooses, or has chosen, has votes among those of any majority
// that has promised: enough of them in a fast round (choose), one in a classic round.
func (r *replica) onPrepare(env *protocol.Env[smr.Message], from protocol.ID, m prepare) {
	switch {
	case m.Era == 0 || m.Era.Owner() != from:
		return
	case m.Era < r.promised:
		r.Admission.SendAhead(env, from, refusal{r.head(r.promised)})
		return
	case m.Era > r.promised:
		if from != r.Cfg.ID && from != r.promised.Owner() && r.silent < courtesy && r.promised != 0 {
			// The coordinator was heard a moment ago: a candidate that does not hear it must not depose it.
			return
		}
		r.raise(env, m.Era)
	case m.Low > r.told && from != r.Cfg.ID: // it gets on: many votes take many messages
		r.silent, r.rest = 0, max(r.rest, courtesy)
	}
	r.told = max(r.told, m.Low)
	p := promise{head: r.head(m.Era), Low: m.Low, Applied: r.State.Applied()}
	var page kit.Page
	for s := max(m.Low, r.base+1); s <= r.base+smr.Slot(len(r.cells)); s++ {
		c := r.cell(s)
		if c.vote.Entry.Kind == 0 {
			continue
		}
		if !page.Takes(c.vote.Entry) {
			p.Next = s
			break
		}
		p.Votes = append(p.Votes, c.vote)
	}
	// Send, not SendAhead: if a crash undid a promise that was told, the replica could vote in a lower
	// era after all, and complete a quorum there of which the new coordinator has not heard.
	r.Admission.Send(env, from, p)
}

// onPromise collects the votes of one member, whose promise counts when the last part is here:
// until then it may have votes that bind the candidate.
func (r *replica) onPromise(env *protocol.Env[smr.Message], from protocol.ID, m promise) {
	c := r.cand
	if c == nil || m.Era != c.era || c.next[from] == 0 || m.Low != c.next[from] || m.Next != 0 && m.Next <= m.Low {
		return
	}
	if m.Applied > r.State.Applied() {
		// It may know other members, or have forgotten what this replica lacks.
		r.above = max(r.above, c.era)
		r.abandon()
		r.Admission.Send(env, from, r.fetch())
		r.rest = courtesy / 2
		return
	}
	for _, v := range m.Votes {
		if v.Slot >= c.low && v.Slot <= c.low+2*window && v.Entry.Kind != 0 {
			c.found[v.Slot] = append(c.found[v.Slot], v)
			c.last = max(c.last, v.Slot)
		}
	}
	c.next[from], c.heard = m.Next, c.beats
	if m.Next != 0 {
		r.prepare(env, from)
		return
	}
	c.votes.Add(from)
	if !c.votes.Has(r.Cfg.ID) && r.welcome(c) && r.promised < c.era {
		r.prepare(env, r.Cfg.ID)
	}
	// One that forgot its era in a crash would use it again, so its own promise is one of them.
	if members := r.State.MemberIDs(); c.votes.Has(r.Cfg.ID) && c.votes.Among(members) >= quorum.Majority(len(members)) &&
		r.promised == c.era {
		r.becomeCoordinator(env)
	}
}

// becomeCoordinator proposes what phase 1 has found, in the classic rounds of the new era, and then
// opens the slots behind, or gives them out.
func (r *replica) becomeCoordinator(env *protocol.Env[smr.Message]) {
	c := r.cand
	r.cand = nil
	l := &leading{
		era: c.era, start: max(c.last, r.State.Applied()), end: r.State.Applied(), classic: c.classic,
		tallies: map[smr.Slot]*tally{}, proposed: map[wish]smr.Slot{},
	}
	if r.carry != nil {
		l.wants, l.reads = r.carry.wants, r.carry.reads
	}
	r.lead, r.carry = l, nil
	n := len(r.State.Members())
	// These slots have no fast round in the new era: acceptors open those above start only. So the
	// coordinator alone proposes in them, one entry in each, and a majority of votes for it chooses
	// it. A slot for which no vote was found gets an entry that does nothing, as what is above cannot
	// be applied before it.
	for s := r.State.Applied() + 1; s <= c.last; s++ {
		l.end = s
		e := kit.Entry{Kind: kit.NoOp}
		if found := choose(c.found[s], c.votes.Len(), n); found.entry.Kind != 0 {
			e = found.entry
		}
		r.proposeIn(s, e)
		if e.Kind == kit.ChangeMembers {
			// Its coordinator proposed nothing above before it was applied, and then somebody of
			// this majority would know that. What is above was not chosen.
			l.classic, l.changing = true, s
			break
		}
	}
	l.start = max(l.end, r.State.Applied())
	l.reads.Again(l.start) // what was chosen by votes of earlier eras is not above
	r.open = 0
	if !l.classic {
		r.open, r.openFor = l.start+1, r.State.Generation()
	}
	r.silent = 0
	r.beat(env)
	if l.reads.Next() {
		r.sendPoll(env)
	}
	r.propose(env, 0)
	r.execute(env)
}

// onRefusal gives up, as somebody has promised a higher era. The candidate of that one may never
// ask this replica, so a refusal is how it learns of it.
func (r *replica) onRefusal(env *protocol.Env[smr.Message], m refusal) {
	if m.Era <= r.promised || r.cand != nil && m.Era == r.cand.era {
		return // of the replica's own next era it need not be told
	}
	r.above = max(r.above, m.Era)
	r.abandon()
	r.stopLeading()
	r.pause(env)
}
