package layered

import (
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// The keys of a shard's state. Those of transactions end with the transaction, those of the order
// in which transactions may be forgotten with a number.
const (
	valuePrefix = kit.ValuePrefix
	openPrefix  = "o" // a transaction that is prepared, or whose end others may not know
	waitPrefix  = "w" // a transaction that waits
	endedPrefix = "t" // one that may be forgotten
	orderPrefix = "p"
	booksKey    = "books"
)

// values are those that the shard has.
const values kit.Values = "layered"

func orderKey(n uint64) []byte { return binary.BigEndian.AppendUint64([]byte(orderPrefix), n) }

// books are what a shard knows of the transactions that it has forgotten, or may forget.
type books struct {
	// old is the time of the latest one that was forgotten. Invariant: no transaction up to it is
	// voted for that is not remembered.
	old uint64
	// Those that may be forgotten have the numbers from first up to, not including, next, the one
	// that was decided first the lowest.
	first, next uint64
}

var (
	booksLayout = wirefmt.NewLayout("layered: what is forgotten", func(c *wirefmt.Coder, b *books) {
		wirefmt.Uint(c, &b.old)
		wirefmt.Uint(c, &b.first)
		wirefmt.Uint(c, &b.next)
	})
	waitLayout  = wirefmt.NewLayout("layered: a transaction that waits", waitFields)
	openLayout  = wirefmt.NewLayout("layered: an open transaction", txnFields)
	endedLayout = wirefmt.NewLayout("layered: the end of a transaction", func(c *wirefmt.Coder, r *result) {
		wirefmt.Enum(c, &r.State, committed, aborted, "state")
		store.ReasonFields(c, &r.Reason)
	})
	idLayout = wirefmt.NewLayout("layered: a transaction's name", store.VersionFields)
)

func txnFields(c *wirefmt.Coder, at **txn) {
	if *at == nil {
		*at = &txn{}
	}
	t := *at
	contentFields(c, t)
	wirefmt.Enum(c, &t.state, prepared, aborted, "state")
	store.ReasonFields(c, &t.reason)
	store.ShardsFields(c, &t.shards)
	wirefmt.Bool(c, &t.awaited)
}

// waitFields are those of one that waits.
func waitFields(c *wirefmt.Coder, at **txn) {
	if *at == nil {
		*at = &txn{state: waiting}
	}
	contentFields(c, *at)
	store.ShardsFields(c, &(*at).shards)
	wirefmt.Bool(c, &(*at).only)
}

// contentFields are those of what a transaction does, and its age.
func contentFields(c *wirefmt.Coder, t *txn) {
	all := store.Txn{ID: t.id, Priority: t.priority, Reads: t.reads, Writes: t.writes}
	store.TxnFields(c, &all)
	t.id, t.priority, t.reads, t.writes = all.ID, all.Priority, all.Reads, all.Writes
}

// read decodes what is on disk, which is right: runners stop at the panic.
func read[T any](l *wirefmt.Layout[T], b []byte) T {
	v, err := l.Decode(b)
	if err != nil {
		panic(fmt.Sprintf("layered: on disk: %v", err))
	}
	return v
}
