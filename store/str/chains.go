package str

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// chain are a client's transactions that are committed locally and not final [STR §6.7].
type chain struct {
	ahead int    // of which the client knows
	waits []*txn // of which it is told when there is room
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
	of := c.chains[t.client]
	if of == nil {
		of = &chain{}
		c.chains[t.client] = of
	}
	if t.ahead = of.ahead < c.degree.chain(); t.ahead {
		of.ahead++
		of.waits = slices.DeleteFunc(of.waits, func(x *txn) bool { return x == t })
	} else if !slices.Contains(of.waits, t) {
		of.waits = append(of.waits, t)
	}
	return t.ahead
}

// leaves takes a transaction that has ended out of its client's chain: others have room then.
func (c *coordinator) leaves(env *protocol.Env[store.Message], t *txn) {
	of := c.chains[t.client]
	if of == nil || !t.early {
		return
	}
	of.waits = slices.DeleteFunc(of.waits, func(x *txn) bool { return x == t })
	if t.ahead {
		t.ahead = false
		of.ahead--
	}
	c.tellNext(env, t.client)
}

// tellNext tells a client of as many local commits as there is room for.
func (c *coordinator) tellNext(env *protocol.Env[store.Message], client protocol.ID) {
	of := c.chains[client]
	for len(of.waits) > 0 && of.ahead < c.degree.chain() {
		t := of.waits[0]
		of.waits = of.waits[1:]
		c.tellLocal(env, t)
	}
	if of.ahead+len(of.waits) == 0 {
		delete(c.chains, client)
	}
}

// setDegree changes how far transactions build on what is not final, from now on.
func (c *coordinator) setDegree(env *protocol.Env[store.Message], d degree) {
	c.degree = d
	for _, client := range slices.Sorted(maps.Keys(c.chains)) {
		c.tellNext(env, client)
	}
}
