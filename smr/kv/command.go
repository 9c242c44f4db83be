package kv

import (
	"fmt"
	"time"
)

type op byte

const (
	opPut op = iota + 1
	opDelete
	opCompareAndSet
	opGrant
	opKeepAlive
	opRevoke
	opExpire
	opLoad
	opGet
	opScan
	opChanges
	opLeases
	opQuota
	opUsage
)

// changes reports whether an operation may change the store.
func (o op) changes() bool { return o < opGet || o == opQuota }

// request is a command or a query.
type request struct {
	op      op
	key     []byte
	value   []byte
	version uint64 // of a key; the renewals of a lease that is to expire; where changes begin
	end     []byte // of a range; empty is none
	limit   uint64
	lease   LeaseID
	ttl     time.Duration
	load    *Load
	quota   Quota
}

// Put returns the command that sets a key's value. Its result has the new version.
func Put(key, value []byte) []byte { return PutLeased(key, value, 0) }

// PutLeased is Put of a key that is removed when the lease ends. The result is NotFound if there is
// no such lease.
func PutLeased(key, value []byte, lease LeaseID) []byte {
	return request{op: opPut, key: key, value: value, lease: lease}.encode()
}

// Delete returns the command that removes a key. Its result is NotFound if there is none.
func Delete(key []byte) []byte { return request{op: opDelete, key: key}.encode() }

// CompareAndSet returns the command that sets a key's value if its version is the given one, 0 for
// a key that is not there. Otherwise the result is Conflict, with the version and value that are
// there.
func CompareAndSet(key []byte, version uint64, value []byte) []byte {
	return CompareAndSetLeased(key, version, value, 0)
}

// CompareAndSetLeased is CompareAndSet of a key that is removed when the lease ends. The result is
// NotFound if there is no such lease.
func CompareAndSetLeased(key []byte, version uint64, value []byte, lease LeaseID) []byte {
	return request{op: opCompareAndSet, key: key, version: version, value: value, lease: lease}.encode()
}

// Get returns the query for a key's value. It can be sent as a command as well.
func Get(key []byte) []byte { return request{op: opGet, key: key}.encode() }

// Scan returns the query for the keys from lo up to, but not including, hi, in their order; an
// empty hi is no end. At most limit keys are returned, 0 for as many as the store gives at once;
// the result's More says that there are others, and its Version is the store's newest.
func Scan(lo, hi []byte, limit int) []byte {
	return request{op: opScan, key: lo, end: hi, limit: uint64(max(limit, 0))}.encode()
}

// Changes returns the query for the changes of the keys from lo up to hi, as in Scan, whose
// versions are higher than after, in order of their versions. The result's Version is the one that
// the next query goes on after. It is Compacted if the store does not remember so far back.
func Changes(lo, hi []byte, after uint64, limit int) []byte {
	return request{op: opChanges, key: lo, end: hi, version: after, limit: uint64(max(limit, 0))}.encode()
}

// KeyOf returns the key that a command or query is about. It returns false if that is not one key,
// or if it is none of this package's.
func KeyOf(command []byte) ([]byte, bool) {
	q, _, err := keyLayout.DecodeFirst(command)
	if err != nil {
		return nil, false
	}
	switch q.op {
	case opPut, opDelete, opCompareAndSet, opGet:
		return q.key, true
	}
	return nil, false
}

func (q request) encode() []byte {
	return requestLayout.Append(make([]byte, 0, 16+len(q.key)+len(q.value)+len(q.end)), q)
}

// Status is how a command or query went.
type Status byte

const (
	// OK says that it did what it says.
	OK Status = iota + 1
	// NotFound says that the key, or the lease, is not there.
	NotFound
	// Conflict says that the key has another version than the command was for.
	Conflict
	// Malformed says that the command or query was none that the store knows; it changed nothing.
	Malformed
	// Compacted says that the store does not remember changes so far back.
	Compacted
	// QuotaExceeded says that the store would hold more than its Quota; the command changed
	// nothing.
	QuotaExceeded
)

func (s Status) String() string {
	switch s {
	case OK:
		return "ok"
	case NotFound:
		return "not found"
	case Conflict:
		return "conflict"
	case Malformed:
		return "malformed"
	case Compacted:
		return "compacted"
	case QuotaExceeded:
		return "quota exceeded"
	}
	return fmt.Sprintf("status %d", byte(s))
}

// An Item is a key with what is there.
type Item struct {
	Key     []byte
	Value   []byte
	Version uint64
	Lease   LeaseID // that the key ends with, 0 for none
	Deleted bool    // among changes: the key was removed
}

// sizeBytes is what a change counts for.
func (i *Item) sizeBytes() int { return len(i.Key) + len(i.Value) }

// Result is what a command or query gives.
type Result struct {
	Status Status
	// of the key: the new one of a change, the one that is there otherwise. Of Grant, the lease's
	// ID. Of queries for several, the store's
	Version uint64
	Value   []byte  // of Get, and of a Conflict; see Result.Usage
	Lease   LeaseID // of Get: what the key ends with
	Items   []Item  // of Scan, in order of their keys; of Changes, in order of their versions
	Leases  []Lease // of Leases, in order of their IDs
	More    bool    // there are more than Items
	Message string  // if Malformed or QuotaExceeded
}

func (r *Result) encode() []byte {
	size := 32 + len(r.Value) + len(r.Message)
	for i := range r.Items {
		size += 16 + r.Items[i].sizeBytes()
	}
	return resultLayout.Append(make([]byte, 0, size), *r)
}

// DecodeResult returns what a Store answered. A Result that is Malformed is no error here: see
// Result.Err.
func DecodeResult(b []byte) (Result, error) { return resultLayout.Decode(b) }

// Err returns an error if the store did not know the command or query, nil otherwise.
func (r Result) Err() error {
	if r.Status == Malformed {
		return fmt.Errorf("kv: the store refused the command: %s", r.Message)
	}
	return nil
}

// Usage returns what a result of SetQuota or GetUsage has.
func (r Result) Usage() (Usage, error) { return usageLayout.Decode(r.Value) }
