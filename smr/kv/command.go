package kv

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
)

// formatVersion is the first byte of commands, queries and results.
const formatVersion = 2

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

// changes tells whether an operation may change the store.
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
	r := wirefmt.NewReader(command)
	version, o, key := r.Byte(), op(r.Byte()), r.Bytes()
	if r.Err() != nil || version != formatVersion {
		return nil, false
	}
	switch o {
	case opPut, opDelete, opCompareAndSet, opGet:
		return key, true
	}
	return nil, false
}

func (q request) encode() []byte {
	w := wirefmt.Writer{Buf: make([]byte, 0, 16+len(q.key)+len(q.value)+len(q.end))}
	w.Buf = append(w.Buf, formatVersion, byte(q.op))
	w.Bytes(q.key)
	switch q.op {
	case opPut:
		w.Bytes(q.value)
		w.Uint(uint64(q.lease))
	case opCompareAndSet:
		w.Uint(q.version)
		w.Bytes(q.value)
		w.Uint(uint64(q.lease))
	case opGrant:
		w.Int(int64(q.ttl))
	case opKeepAlive, opRevoke:
		w.Uint(uint64(q.lease))
	case opExpire:
		w.Uint(uint64(q.lease))
		w.Uint(q.version)
	case opLoad:
		q.load.write(&w)
	case opScan:
		w.Bytes(q.end)
		w.Uint(q.limit)
	case opChanges:
		w.Bytes(q.end)
		w.Uint(q.version)
		w.Uint(q.limit)
	case opQuota:
		w.Uint(q.quota.Bytes)
		w.Uint(q.quota.Keys)
	}
	return w.Buf
}

// decodeRequest returns what a command or query says, which may hold a part of it.
func decodeRequest(b []byte) (request, error) {
	r := wirefmt.NewSharingReader(b)
	if v := r.Byte(); r.Err() == nil && v != formatVersion {
		return request{}, fmt.Errorf("kv: command of version %d, this program knows version %d", v, formatVersion)
	}
	q := request{op: op(r.Byte()), key: r.Bytes()}
	switch q.op {
	case opPut:
		q.value, q.lease = r.Bytes(), LeaseID(r.Uint())
	case opDelete, opGet, opLeases, opUsage:
	case opCompareAndSet:
		q.version, q.value, q.lease = r.Uint(), r.Bytes(), LeaseID(r.Uint())
	case opGrant:
		q.ttl = time.Duration(r.Int())
	case opKeepAlive, opRevoke:
		q.lease = LeaseID(r.Uint())
	case opExpire:
		q.lease, q.version = LeaseID(r.Uint()), r.Uint()
	case opLoad:
		q.load = readLoad(r)
	case opScan:
		q.end, q.limit = r.Bytes(), r.Uint()
	case opChanges:
		q.end, q.version, q.limit = r.Bytes(), r.Uint(), r.Uint()
	case opQuota:
		q.quota = Quota{Bytes: r.Uint(), Keys: r.Uint()}
	default:
		r.Failf("there is no operation %d", q.op)
	}
	if err := r.Close(); err != nil {
		return request{}, fmt.Errorf("kv: command: %w", err)
	}
	return q, nil
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

func (i Item) write(w *wirefmt.Writer) {
	w.Bytes(i.Key)
	w.Bytes(i.Value)
	w.Uint(i.Version)
	w.Uint(uint64(i.Lease))
	w.Bool(i.Deleted)
}

func readItem(r *wirefmt.Reader) Item {
	return Item{Key: r.Bytes(), Value: r.Bytes(), Version: r.Uint(), Lease: LeaseID(r.Uint()), Deleted: r.Bool()}
}

// itemBytes is how long an Item is at least, as bytes.
const itemBytes = 5

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

func (r Result) encode() []byte {
	w := wirefmt.Writer{Buf: []byte{formatVersion, byte(r.Status)}}
	w.Uint(r.Version)
	w.Bytes(r.Value)
	w.Uint(uint64(r.Lease))
	w.List(len(r.Items))
	for _, i := range r.Items {
		i.write(&w)
	}
	w.List(len(r.Leases))
	for _, l := range r.Leases {
		l.write(&w)
	}
	w.Bool(r.More)
	w.String(r.Message)
	return w.Buf
}

// DecodeResult returns what a Store answered. A Result that is Malformed is no error here: see
// Result.Err.
func DecodeResult(b []byte) (Result, error) {
	r := wirefmt.NewReader(b)
	if v := r.Byte(); r.Err() == nil && v != formatVersion {
		return Result{}, fmt.Errorf("kv: result of version %d, this program knows version %d", v, formatVersion)
	}
	out := Result{Status: Status(r.Byte()), Version: r.Uint(), Value: r.Bytes(), Lease: LeaseID(r.Uint())}
	if out.Status < OK || out.Status > QuotaExceeded {
		r.Failf("there is no status %d", byte(out.Status))
	}
	for range r.List(itemBytes) {
		out.Items = append(out.Items, readItem(r))
	}
	for range r.List(leaseBytes) {
		out.Leases = append(out.Leases, readLease(r))
	}
	out.More, out.Message = r.Bool(), r.String()
	if err := r.Close(); err != nil {
		return Result{}, fmt.Errorf("kv: result: %w", err)
	}
	return out, nil
}

// Err returns an error if the store did not know the command or query, nil otherwise.
func (r Result) Err() error {
	if r.Status == Malformed {
		return fmt.Errorf("kv: the store refused the command: %s", r.Message)
	}
	return nil
}
