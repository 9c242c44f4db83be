package carousel

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// again asks whoever has not answered, for the first time too: a partition's leader and, from the
// second time on, all its members, as the leader may be another one. Whoever is not it says who is,
// before a coordinator gives up waiting for a vote: transactions that begin later go to the right
// one at once. What a client that still reads has begun goes on as long as that says so, and is its
// coordinator's to end then.
func (a *agent) again(env *protocol.Env[store.Message], c *call) {
	gone := c.txn == nil && env.Now-c.heard > heartbeats*a.cfg.RoundTrip
	if gone || c.txn != nil && c.tries == maxTries {
		delete(a.calls, c.id) // the client has asked another agent by now, or asks this one again
		return
	}
	env.After(againAfter*a.cfg.RoundTrip, againTimer{c.id})
	if c.txn == nil && c.view == nil && c.tries > 0 && (c.ended != nil || !c.waits()) {
		return // it has all that it asked for, or will not get it; heartbeats go on
	}
	if c.tries > 0 {
		a.missed(c)
	}
	if c.tries++; c.tries > 1 && c.view != nil && c.view.stage == byClosed {
		a.leaveClosed(env, c) // who was the nearest is silent
	}
	a.ask(env, c, func(shard uint32) []protocol.ID {
		if c.tries > 1 {
			return a.where.members[shard]
		}
		return a.leaders(shard)
	})
}

// leaders names the one that is taken for a partition's leader, or all members while that one is
// silent.
func (a *agent) leaders(shard uint32) []protocol.ID { return a.where.whom(shard, a.silent[shard]) }

// missed notes which partitions have not said what a transaction reads.
func (a *agent) missed(c *call) {
	for _, p := range c.parts {
		if c.left[p.ref.Shard] || c.txn == nil && c.view == nil && !c.hasAll(p.reads) {
			a.silent[p.ref.Shard] = true
		}
	}
}

func (a *agent) coord(c *call) uint32 { return coordOf(c.id, len(a.where.leads)) }

// ask asks partitions, as participants and as the coordinator: of each the members that are named.
func (a *agent) ask(env *protocol.Env[store.Message], c *call, whom func(shard uint32) []protocol.ID) {
	if c.view != nil {
		a.askView(env, c, whom)
		return
	}
	// What was declared is prepared by now, or else asked for again later.
	a.prepareAll(env, c, func(p callPart) bool { return c.txn == nil || c.tries > 1 || !p.early }, whom)
	coordinators := whom(a.coord(c))
	switch {
	case len(coordinators) == 0:
	case c.txn == nil:
		for _, to := range coordinators {
			env.Send(to, c.began())
		}
	default:
		m := commitRequest{ID: c.id, commitRecord: commitRecord{Reads: c.txn.Reads, Writes: c.txn.Writes}}
		for _, p := range c.parts {
			m.Parts = append(m.Parts, p.ref)
		}
		for _, to := range coordinators {
			env.Send(to, m)
		}
	}
}

// prepareAll asks partitions to prepare the parts for which a function says so. On the first try
// all of these requests have the time at which they should have arrived everywhere.
func (a *agent) prepareAll(env *protocol.Env[store.Message], c *call, which func(callPart) bool,
	whom func(shard uint32) []protocol.ID) {
	var parts []callPart
	for _, p := range c.parts {
		if which(p) && len(whom(p.ref.Shard)) > 0 {
			parts = append(parts, p)
		}
	}
	var at time.Duration
	if c.tries <= 1 {
		var held time.Duration
		at, held = a.arrives(env, parts)
		c.held = max(c.held, held)
	}
	for _, p := range parts {
		a.prepare(env, c, p, whom(p.ref.Shard), at)
	}
}

// prepare asks those who may lead a partition, and on the fast path all its members, to prepare a
// part.
func (a *agent) prepare(env *protocol.Env[store.Message], c *call, p callPart, leaders []protocol.ID,
	at time.Duration) {
	m := prepareRequest{Part: partID{c.id, p.ref.Step}, Coord: a.coord(c), Reads: p.reads, Writes: p.writes, Leader: true,
		Values: c.txn == nil && len(p.reads) > 0}
	if c.tries <= 1 { // else the leader may be one that knows nothing of these
		m.Stood, m.Arrives, m.Priority = p.stood, at, c.priority()
	}
	for _, to := range leaders {
		env.Send(to, m)
	}
	if !a.fast {
		return
	}
	m.Leader, m.Stood = false, nil
	for _, id := range a.where.members[p.ref.Shard] {
		if !slices.Contains(leaders, id) {
			env.Send(id, m)
		}
	}
}

// onMoved asks who leads a partition in place of a server that was taken for the leader. All that
// is under way there was asked in vain. If nobody leads yet, as an election is on, the agent asks
// again before long.
func (a *agent) onMoved(env *protocol.Env[store.Message], from protocol.ID, m moved) {
	news := a.where.correct(m)
	c := a.calls[m.ID]
	switch {
	case news:
		delete(a.silent, m.Shard)
		for _, id := range slices.SortedFunc(maps.Keys(a.calls), store.TxnID.Compare) {
			a.askLeader(env, a.calls[id], m.Shard)
		}
	case c == nil || !a.where.isMember(m.Shard, from):
	case c.tries <= 1 && from != a.where.leader(m.Shard) && !a.silent[m.Shard]:
		a.askLeader(env, c, m.Shard)
	case m.Leader == 0 && c.ended == nil:
		env.After(a.cfg.RoundTrip, againTimer{c.id})
	}
}

// leads takes note of a leader's word.
func (a *agent) leads(from protocol.ID, shard uint32) {
	if from == a.where.leader(shard) {
		delete(a.silent, shard)
	}
}

// askLeader asks the leader of a partition again for all that a transaction has there.
func (a *agent) askLeader(env *protocol.Env[store.Message], c *call, shard uint32) {
	if c.ended != nil {
		return
	}
	only := func(k uint32) []protocol.ID {
		if k != shard {
			return nil
		}
		return a.leaders(k)
	}
	if c.view == nil && c.txn != nil && c.tries <= 1 { // else ask does so
		a.prepareAll(env, c, func(p callPart) bool { return p.early }, only)
	}
	a.ask(env, c, only)
}
