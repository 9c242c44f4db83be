package str

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A link is a transaction's place in the chains of its client: those which the client makes one
// after the other, each taking the ones before it for committed [STR §6.4]. Transactions of one
// client that do not follow each other are in different chains.
type link struct {
	ahead bool // the client has word of the local commit
	// stands are those that it follows, directly or through others, and that have not ended; bears are
	// those that follow it.
	stands, bears map[store.TxnID]*txn
}

// chained has a transaction follow another one, and what that one follows.
func (t *txn) chained(x *txn) {
	if t.stands == nil {
		t.stands = map[store.TxnID]*txn{}
	}
	t.stands[x.id] = x
	maps.Copy(t.stands, x.stands)
	for _, on := range t.stands { //pure:ok each is another one's
		if on.bears == nil {
			on.bears = map[store.TxnID]*txn{}
		}
		on.bears[t.id] = t
	}
}

// joins reports whether a transaction's client may have word of the local commit. What nobody may
// read before it is final, as it was committed locally while that was off, stays so.
func (c *coordinator) joins(t *txn) bool {
	if t.ahead || !c.mode.speculates {
		return true
	}
	if len(t.writes) > 0 && t.bound <= t.at {
		return false
	}
	t.ahead = len(t.stands) < c.degree.chain()
	return t.ahead
}

// leaves takes a transaction that has ended out of its chains: others have room then.
func (c *coordinator) leaves(env *protocol.Env[store.Message], t *txn) {
	for _, on := range t.stands { //pure:ok each is another one's
		delete(on.bears, t.id)
	}
	bears := slices.SortedFunc(maps.Values(t.bears), func(a, b *txn) int { return a.id.Compare(b.id) })
	t.stands, t.bears = nil, nil
	for _, x := range bears {
		delete(x.stands, t.id)
	}
	for _, x := range bears {
		c.tellNext(env, x)
	}
}

// tellNext tells a transaction's client of its local commit, if it waits for that.
func (c *coordinator) tellNext(env *protocol.Env[store.Message], t *txn) {
	if !t.ahead {
		c.tellLocal(env, t)
	}
}

// setDegree changes how far transactions build on what is not final, from now on.
func (c *coordinator) setDegree(env *protocol.Env[store.Message], d degree) {
	more := d.chain() > c.degree.chain()
	if c.degree = d; !more {
		return
	}
	for _, t := range slices.SortedFunc(maps.Values(c.txns), func(a, b *txn) int { return a.id.Compare(b.id) }) {
		c.tellNext(env, t)
	}
}
