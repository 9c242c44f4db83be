package str

import (
	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/store"
)

// An event is what happens to a transaction: tests judge by events what no client can see.
type event struct {
	what happening
	at   *coordinator // nil: at a shard
	t    *txn         // its
	on   *txn         // of what depends: what it depends on
	read *reading     // of a read that is delivered

	// Of a commit that a shard carries out.
	id     store.TxnID
	commit clock.Stamp
	writes []store.Write
}

// happening is what an event is.
type happening uint8

const (
	hasBegun      happening = iota
	readsFrom               // its snapshot has what another one has written, which is not final
	writesOver              // it is certified on top of another one
	follows                 // its client has taken another one for committed
	isDelivered             // the client gets what was read, once the step has all of it
	isLocal                 // it is committed locally
	isAgreed                // its first shard is asked for its end, so nobody reads what it writes
	isFinal                 // it is committed
	isAborted               // or given up
	wasCarriedOut           // a shard has written what it writes
)

// saw counts what has happened, and says so to whoever wants to know.
func (c *coordinator) saw(e event) {
	c.tally.count(e)
	if c.mode.seen != nil {
		e.at = c
		c.mode.seen(e)
	}
}
