package store

import (
	"cmp"
	"encoding/binary"
	"fmt"
)

// A Key names a value. To protocols the empty key is one like others; package client refuses it.
type Key string

// A ClientID names a client for as long as it runs. Clients draw theirs at random, so that no two
// share one.
type ClientID uint64

// A Version says which of the values that a key has had is meant. Later ones are greater. The zero
// Version is that of a key that was never written.
type Version struct {
	// Time is in nanoseconds, of the client's clock or above all that the client has seen. Nothing
	// but the rate of aborts depends on clocks being right.
	Time   uint64
	Client ClientID
}

// A TxnID names a transaction: it is the version of all that the transaction writes.
type TxnID = Version

// TxnKey returns what a transaction is under on disk: a prefix and its name, by which keys are in
// the order of transactions.
func TxnKey(prefix string, id TxnID) []byte {
	k := append(make([]byte, 0, len(prefix)+txnKeyBytes), prefix...)
	k = binary.BigEndian.AppendUint64(k, id.Time)
	return binary.BigEndian.AppendUint64(k, uint64(id.Client))
}

// txnKeyBytes is how long a name is in a key.
const txnKeyBytes = 16

// ParseTxnKey returns the name in a TxnKey whose prefix has so many bytes, and what comes behind
// it. The key must be one.
func ParseTxnKey(prefix int, key []byte) (id TxnID, rest []byte) {
	k := key[prefix:]
	id.Time, id.Client = binary.BigEndian.Uint64(k), ClientID(binary.BigEndian.Uint64(k[8:]))
	return id, k[txnKeyBytes:]
}

// Compare orders versions: less than 0 if v is before w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Time, w.Time), cmp.Compare(v.Client, w.Client))
}

// After reports whether v is the later one.
func (v Version) After(w Version) bool { return v.Compare(w) > 0 }

// IsZero reports whether v is the version of what was never written.
func (v Version) IsZero() bool { return v == Version{} }

// String returns the time and the client.
func (v Version) String() string { return fmt.Sprintf("%d/%x", v.Time, uint64(v.Client)) }

// A Priority is a transaction's rank among those that want the same keys: the smaller one goes
// first. It is the same at all sites, and that of the first attempt however often the transaction
// is tried, so that the oldest one wins everywhere. The zero Priority is none.
type Priority struct {
	Began  uint64 // Version.Time when the first attempt began
	Client ClientID
}

// Before reports whether p goes before q. None goes before nobody.
func (p Priority) Before(q Priority) bool {
	switch {
	case p.IsZero():
		return false
	case q.IsZero():
		return true
	}
	return cmp.Or(cmp.Compare(p.Began, q.Began), cmp.Compare(p.Client, q.Client)) < 0
}

// IsZero reports whether p is none.
func (p Priority) IsZero() bool { return p == Priority{} }
