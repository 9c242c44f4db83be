package domino

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// decide has the acceptors accept a decision. A coordinator's decisions are numbered, and acceptors
// take them in order, so one number says which ones an acceptor has.
func (r *replica) decide(env *protocol.Env[smr.Message], m closeSlots) {
	c := &r.coord
	c.sent.add(m)
	c.busy[m.Track] = c.sent.last()
	for _, id := range r.group {
		r.pump(env, id)
	}
}

// pump sends an acceptor the decisions that it was not sent. Those up to Base are not kept any
// more: they are about slots up to Through, which this replica has executed, and an acceptor that
// lacks them has to get what was executed first.
func (r *replica) pump(env *protocol.Env[smr.Message], id protocol.ID) {
	c := &r.coord
	f := c.flows[id]
	f.Skip(c.sent.base)
	for f.Next() <= c.sent.last() && !f.Full(r.Cfg.MaxUnderwayBytes) {
		m := accept{
			Ballot: c.ballot, Generation: r.State.Generation(), Base: c.sent.base, Through: c.sent.through, First: f.Next(),
		}
		size := 0
		for _, d := range c.sent.from(m.First) {
			n := 0
			for _, i := range d.Items {
				n += i.sizeBytes()
			}
			if size+n > kit.MessageBytes && len(m.Closes) > 0 {
				break
			}
			m.Closes = append(m.Closes, d)
			size += n
		}
		f.Sent(env.Now, m.First+uint64(len(m.Closes))-1, len(m.Closes), size)
		r.Admission.Send(env, id, m)
	}
}

// again has an acceptor sent again what may be lost.
func (c *coordinator) again(r *replica, p *peer) {
	if f := c.flows[p.id]; f != nil && c.phase == leading {
		f.rewind()
	}
}

// tickFlows sends again what acceptors have not acknowledged. It forgets decisions that were
// executed once all live acceptors have them, or once there are too many: one that is silent does
// not make memory grow.
func (r *replica) tickFlows(env *protocol.Env[smr.Message]) {
	c := &r.coord
	least := c.sent.last()
	for _, id := range r.group {
		f := c.flows[id]
		f.tick()
		r.pump(env, id)
		if r.alive(id) {
			least = min(least, f.has)
		}
	}
	for len(c.sent.tail) > 0 && c.sent.tail[0].High <= r.learner.executed &&
		(c.sent.base < least || len(c.sent.tail) > maxTail || c.sent.size > r.tailBytes()) {
		c.sent.drop(c.sent.tail[0].High)
	}
}

// onAccept accepts decisions of a coordinator. As in Paxos, a higher ballot needs no promise
// before. The sequence begins anew with each ballot, and has no gaps here: News tells its
// coordinator one number, and that number counts as a vote for each decision up to it.
//
// A decision that is ahead of its turn is dropped, and comes again. An acceptor that took the first
// and the third and told "three" would vote for the second as well. With one such acceptor more, a
// majority would seem to have a decision that is on no disk but the coordinator's.
func (r *replica) onAccept(env *protocol.Env[smr.Message], from protocol.ID, m accept) {
	a := &r.acceptor
	switch {
	case m.Ballot.Owner() != from:
		return
	case m.Ballot < a.promised:
		r.Admission.Send(env, from, refusal{Promised: a.promised})
		return
	case m.Ballot > a.promised:
		a.promise(env, m.Ballot)
		r.stepDown()
	}
	a.generation = m.Generation
	if m.Base > a.count {
		if r.learner.executed < m.Through {
			r.fetch(env, from)
			return
		}
		// What is missing is about slots that are executed here too, so there is nothing left to
		// vote on.
		a.count, a.begun = m.Base, nil
	}
	for i, d := range m.Closes {
		if m.First+uint64(i) != a.count+1 || d.Low > d.High || d.High > maxSlot {
			continue
		}
		a.count++
		a.begun = append(a.begun, d)
		a.acceptClose(env, m.Ballot, d)
	}
	r.soon(env)
}

// onAccepted notes how many of the coordinator's decisions a member has accepted, and learns those
// that a majority has. News waits for the member's disk, so what it says is a vote. The number is
// of the ballot that the member has promised: a count of a lower ballot is not compared with it.
//
// Each ballot has its own sequence, so a fifth decision of ballot 1 has nothing to do with the
// fifth of ballot 2. To add up counts of both would find majorities for what neither ballot
// decided.
func (r *replica) onAccepted(env *protocol.Env[smr.Message], p *peer, m news) {
	if m.Promised > p.promised {
		p.promised, p.accepted = m.Promised, m.Accepted
	} else if m.Promised == p.promised {
		p.accepted = max(p.accepted, m.Accepted)
	}
	if r.coord.phase == leading && m.Promised > r.coord.ballot {
		// it accepts nothing more, and perhaps nothing is sent that it could refuse
		r.onRefusal(env, refusal{Promised: m.Promised})
	}
	if f := r.coord.flows[p.id]; f != nil && r.coord.phase == leading && m.Promised == r.coord.ballot {
		f.acked(m.Accepted)
		r.pump(env, p.id)
	}
	r.learnCloses()
}

// learnCloses learns the coordinator's decisions that a majority has accepted, by the k-th largest
// of the counts. Only counts of the ballot that this replica has promised are taken, since it knows
// no other ballot's decisions. And the majority must be one of the members for whom the ballot was
// prepared: a replica that has not executed a change of the members yet, or has executed one more,
// would count a majority that is none.
func (r *replica) learnCloses() {
	a := &r.acceptor
	if len(a.begun) == 0 || a.generation != r.State.Generation() {
		return
	}
	counts := make([]uint64, 0, maxMembers)
	for _, id := range r.group {
		n := uint64(0)
		if p := r.peers[id]; p.promised == a.promised {
			n = p.accepted
		}
		counts = append(counts, n)
	}
	upTo := min(quorum.KthLargest(counts, r.rule.classic), a.count)
	first := a.count - uint64(len(a.begun)) + 1
	for ; len(a.begun) > 0 && first <= upTo; first++ {
		r.know(a.begun[0])
		a.begun = a.begun[1:]
	}
}
