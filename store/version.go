package store

import (
	"cmp"
	"fmt"
)

// A Key names a value. The empty key is a key like others.
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
