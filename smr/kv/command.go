package kv

import (
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
)

// formatVersion is the first byte of commands, queries and results; of snapshots too.
const formatVersion = 1

type op byte

const (
	opPut op = iota + 1
	opDelete
	opCompareAndSet
	opGet
	opScan
)

// request is a command or a query.
type request struct {
	op      op
	key     []byte
	value   []byte
	version uint64
	end     []byte // of a scan; empty is none
	limit   uint64
}

// Put returns the command that sets a key's value. Its result has the new version.
func Put(key, value []byte) []byte { return request{op: opPut, key: key, value: value}.encode() }

// Delete returns the command that removes a key. Its result is NotFound if there is none.
func Delete(key []byte) []byte { return request{op: opDelete, key: key}.encode() }

// CompareAndSet returns the command that sets a key's value if its version is the given one, 0 for a key that is not there. Otherwise the result is
// Conflict, with the version and value that are there.
func CompareAndSet(key []byte, version uint64, value []byte) []byte {
	return request{op: opCompareAndSet, key: key, version: version, value: value}.encode()
}

// Get returns the query for a key's value. It can be sent as a command as well.
func Get(key []byte) []byte { return request{op: opGet, key: key}.encode() }

// Scan returns the query for the keys from lo up to, but not including, hi, in their order; an empty hi is no end. At most limit keys are
// returned, 0 for as many as the store gives at once; the result's More says that there are others.
func Scan(lo, hi []byte, limit int) []byte {
	return request{op: opScan, key: lo, end: hi, limit: uint64(max(limit, 0))}.encode()
}

func (q request) encode() []byte {
	w := wirefmt.Writer{Buf: make([]byte, 0, 16+len(q.key)+len(q.value)+len(q.end))}
	w.Buf = append(w.Buf, formatVersion, byte(q.op))
	w.Bytes(q.key)
	switch q.op {
	case opPut:
		w.Bytes(q.value)
	case opCompareAndSet:
		w.Uint(q.version)
		w.Bytes(q.value)
	case opScan:
		w.Bytes(q.end)
		w.Uint(q.limit)
	}
	return w.Buf
}

func decodeRequest(b []byte) (request, error) {
	r := wirefmt.NewReader(b)
	if v := r.Byte(); r.Err() == nil && v != formatVersion {
		return request{}, fmt.Errorf("kv: command of version %d, this program knows version %d", v, formatVersion)
	}
	q := request{op: op(r.Byte()), key: r.Bytes()}
	switch q.op {
	case opPut:
		q.value = r.Bytes()
	case opDelete, opGet:
	case opCompareAndSet:
		q.version, q.value = r.Uint(), r.Bytes()
	case opScan:
		q.end, q.limit = r.Bytes(), r.Uint()
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
	// NotFound says that the key is not there.
	NotFound
	// Conflict says that the key has another version than the command was for.
	Conflict
	// Malformed says that the command or query was none that the store knows; it changed nothing.
	Malformed
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
	}
	return fmt.Sprintf("status %d", byte(s))
}

// An Item is a key with what is there.
type Item struct {
	Key     []byte
	Value   []byte
	Version uint64
}

// Result is what a command or query gives.
type Result struct {
	Status  Status
	Version uint64 // of the key: the new one of a change, the one that is there otherwise
	Value   []byte // of Get, and of a Conflict
	Items   []Item // of Scan, in order of their keys
	More    bool   // Scan found more than Items
	Message string // if Malformed
}

func (r Result) encode() []byte {
	w := wirefmt.Writer{Buf: []byte{formatVersion, byte(r.Status)}}
	w.Uint(r.Version)
	w.Bytes(r.Value)
	w.List(len(r.Items))
	for _, i := range r.Items {
		w.Bytes(i.Key)
		w.Bytes(i.Value)
		w.Uint(i.Version)
	}
	w.Bool(r.More)
	w.String(r.Message)
	return w.Buf
}

// DecodeResult returns what a Store answered. A Result that is Malformed is no error here: see Result.Err.
func DecodeResult(b []byte) (Result, error) {
	r := wirefmt.NewReader(b)
	if v := r.Byte(); r.Err() == nil && v != formatVersion {
		return Result{}, fmt.Errorf("kv: result of version %d, this program knows version %d", v, formatVersion)
	}
	out := Result{Status: Status(r.Byte()), Version: r.Uint(), Value: r.Bytes()}
	if out.Status < OK || out.Status > Malformed {
		r.Failf("there is no status %d", byte(out.Status))
	}
	for range r.List(3) {
		out.Items = append(out.Items, Item{Key: r.Bytes(), Value: r.Bytes(), Version: r.Uint()})
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
