package str

import (
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// speculation is what is known of a transaction whose client goes on when it is committed locally
// [STR §4]: the paper's speculative commits, as far as a coordinator has a part in them.
type speculation struct {
	early bool // the client wants word of the local commit
	// limits are, of some that the transaction depends on, what their commit must not be above, where
	// that is below its own snapshot: what it follows has read them in an earlier one.
	limits map[store.TxnID]clock.Stamp
	// held says that the client stands on what is not known to be right, so that the transaction must
	// not be committed for good; staged, that this is what is on record.
	held, staged bool
	// waits says that it is held because the client may give up, which nobody else need know.
	waits bool
	since time.Duration // when the commit was asked for
	link
	// confirmed is where members have the entry which says that the client was right, and leading what
	// the leader says.
	confirmed map[protocol.ID]raft.Position
	leading   confirmed
}

const (
	// heldTrips is for how many round trips what a client stands on may be unknown, lest one that
	// hangs keep its keys (S21).
	heldTrips = 64
	// stillTrips is how many round trips there are at least between two words that a transaction is
	// still on its way.
	stillTrips = 3
)

// speculates takes what the client of a transaction wants beside the commit; nil: nothing. It
// returns false if something that the client took for committed is not, or is later than the
// transaction's snapshot: the client went on from there, so this one depends on it [STR: inFD].
func (c *coordinator) speculates(env *protocol.Env[store.Message], t *txn, s *store.SpeculateRequest) bool {
	if s == nil || !c.mode.early {
		return true
	}
	t.early, t.held, t.waits, t.since = true, s.Held || s.Waits, !s.Held, env.Now
	for _, id := range s.After {
		if !c.follow(t, id) {
			return false
		}
	}
	return true
}

// follow has a transaction depend on another one that its client took for committed. What has only
// read stands for what it has read.
func (c *coordinator) follow(t *txn, id store.TxnID) bool {
	x := c.txns[id]
	d, past := c.past.of[id]
	switch {
	case x == nil && past, x != nil && x.decided != nil:
		if x != nil {
			d = *x.decided
		}
		return d.Verdict == store.Committed && (clock.Stamp(d.Version.Time) <= t.at || !c.mode.speculates)
	case x == nil || x.stage == over || x.at > t.at:
		return false
	case x.stage == locally:
		if x.local > t.at {
			return false
		}
		t.chained(x)
		c.depend(t, x)
		c.saw(event{what: follows, t: t, on: x})
		return true
	case !x.commits || len(x.writes) > 0 || x.held && !x.waits:
		return false
	}
	t.chained(x)
	for id, on := range x.on { //pure:ok sets are added to
		c.depend(t, on)
		c.saw(event{what: follows, t: t, on: on})
		if t.limits == nil {
			t.limits = map[store.TxnID]clock.Stamp{}
		}
		t.limits[id] = min(t.limitOf(id), x.limitOf(id))
	}
	return true
}

// limitOf returns what the commit of a transaction that this one depends on must not be above.
func (t *txn) limitOf(id store.TxnID) clock.Stamp {
	if at, ok := t.limits[id]; ok {
		return at
	}
	return t.at
}

// isLocal reports whether a transaction is committed locally: of one that only reads, whether it
// has read, so that it is final as soon as the others are.
func (t *txn) isLocal() bool {
	return t.stage == locally || t.stage == running && t.commits && len(t.writes)+len(t.blocked) == 0
}

// tellLocal tells a transaction's clients of its local commit.
func (c *coordinator) tellLocal(env *protocol.Env[store.Message], t *txn) {
	if !t.early || !t.isLocal() || !c.joins(t) {
		return
	}
	for _, id := range t.clients {
		env.Send(id, store.Speculated{ID: t.id, At: uint64(max(t.local, t.at))})
	}
	t.clients = nil
}

// speculatesOn takes what a client says again of a transaction that is on its way: it has heard of
// the local commit, or it was right about what it stands on.
func (c *coordinator) speculatesOn(env *protocol.Env[store.Message], t *txn, s *store.SpeculateRequest) {
	switch {
	case s != nil && !s.Told:
		c.tellLocal(env, t)
	case s == nil && t.held:
		t.held = false
		c.maybeEndRead(env, t)
		c.confirm(env, t)
		c.maybeFinal(env, t)
	}
}

// confirm has the first shard take down that a transaction's client was right, if that has it on
// record that this is not known. That is done beside its certification, mostly.
func (c *coordinator) confirm(env *protocol.Env[store.Message], t *txn) {
	if t.stage == locally && t.staged && !t.held && !t.agreed {
		c.calls.Ask(env, kit.GroupCall{Shard: t.shards[0], ID: t.id, Command: confirm{t.id}})
	}
}

// onConfirmed takes a member's word that the first shard's log says that the client was right. A
// majority's makes it so, some time before the group has carried it out.
func (c *coordinator) onConfirmed(env *protocol.Env[store.Message], from protocol.ID, m confirmed) {
	t := c.txns[m.ID]
	p, ok := c.places[from]
	if t == nil || !ok || uint32(p.Index) != m.Shard || t.stage != locally || !t.staged || t.held || t.agreed ||
		m.Shard != t.shards[0] {
		return
	}
	if t.confirmed == nil {
		t.confirmed = map[protocol.ID]raft.Position{}
	}
	if t.confirmed[from] = m.At; len(m.Members) > 0 {
		t.leading = m
	}
	if isStored(t.leading.Members, t.leading.At, func(id protocol.ID) raft.Position { return t.confirmed[id] }) {
		t.staged = false
		c.maybeFinal(env, t)
	}
}

// stillLocal tells the clients of a transaction now and then that it is still on its way: they
// wait for no longer than others do, and ask again.
func (c *coordinator) stillLocal(env *protocol.Env[store.Message], t *txn) {
	if env.Now-t.heard >= stillTrips*c.cfg.RoundTrip {
		c.tellLocal(env, t)
	}
}

// lapsed reports whether the client of a transaction that is held is gone, or does not find out
// whether it was right.
func (c *coordinator) lapsed(env *protocol.Env[store.Message], t *txn) bool {
	return t.held && t.stage != over && !t.agreed &&
		(env.Now-t.heard > silentTrips*c.cfg.RoundTrip || env.Now-t.since > heldTrips*c.cfg.RoundTrip)
}

// onAbandon ends a transaction that its client does not want any more, as long as nobody may know
// that it is committed.
func (c *coordinator) onAbandon(env *protocol.Env[store.Message], from protocol.ID, m store.AbandonRequest) {
	t := c.txns[m.ID]
	switch {
	case t == nil || t.client != from:
	case t.early && !t.agreed:
		c.abort(env, t, store.Lapsed)
	case t.stage == running && !t.commits:
		c.end(env, t)
	}
}
