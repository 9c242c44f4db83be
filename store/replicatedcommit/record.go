package replicatedcommit

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A server's key space: its values, its transactions, and what it knows of itself and its peers.
const (
	valuePrefix = "v"
	txnPrefix   = "t"
	peerPrefix  = "p"
	selfKey     = "self"
	markKey     = "mark"
	oldKey      = "old"
	doneKey     = "done"
	epochKey    = "epoch"
	// contentsPrefix is before the keys of what large transactions read and write.
	contentsPrefix = "c"
	syncKey        = "sync" // there while a newcomer copies
	sourcePrefix   = "source"
	debtPrefix     = "debt"
	catchUpKey     = "owed" // there while a server copies what it is owed
)

// A record is what a server remembers of a transaction, on disk as in memory.
type record struct {
	id     store.TxnID
	state  State // Yes, No, Committed or Aborted
	reason store.Reason
	hint   uint64
	// known says that the transaction's part is here. It is not if the server was asked, or told
	// the decision, before it was prepared.
	known    bool
	shards   []uint32
	priority store.Priority
	reads    []store.Read
	writes   []store.Write
	ownKey   bool // reads and writes have a key of their own on disk

	// In memory only.
	waits      int           // how often it was asked about
	voted      time.Duration // when the server voted yes; 0: it did not, or has been started since
	done       bool          // all servers have carried out the decision, or are owed it
	found      bool          // it was on disk at the start, and not known to be done
	questioned bool          // its keys are in question
	shed       bool          // reads and writes are on disk only
	olds       int           // sites that have forgotten what it writes, as bits
	// but are servers that have not been heard to have carried out the decision, if done.
	// Invariant: there is a debt to each that covers the transaction.
	but []protocol.ID
}

// settled tells whether the decision is carried out here.
func (r *record) settled() bool {
	return r.state == Aborted || r.state == Committed && r.known
}

// tookForOld tells whether the transaction was aborted here since it was forgotten elsewhere, so
// that it may have been committed.
func (r *record) tookForOld() bool { return r.state == Aborted && r.reason == store.Old }

// now returns the state as it is told to others.
func (r *record) now() State {
	if r.state == Committed && !r.known {
		return Wanting
	}
	return r.state
}

func txnKey(id store.TxnID) []byte {
	k := append(make([]byte, 0, len(txnPrefix)+16), txnPrefix...)
	k = binary.BigEndian.AppendUint64(k, id.Time)
	return binary.BigEndian.AppendUint64(k, uint64(id.Client))
}

// About what a record takes without its contents, and a value or a key beside its bytes.
const (
	recordRoom = 80
	accessRoom = 24
)

func (r *record) bytes() []byte {
	t := store.Txn{ID: r.id, Priority: r.priority, Reads: r.reads, Writes: r.writes}
	state := uint64(r.state)
	if r.ownKey {
		state |= ownKeyBit
		t.Reads, t.Writes = nil, nil
	}
	w := wirefmt.Writer{Buf: make([]byte, 0, recordRoom+store.ContentBytes(t.Reads, t.Writes)+
		accessRoom*(len(t.Reads)+len(t.Writes)))}
	r.fields(w.Coder(), &state, &t)
	return w.Buf
}

// fields are those of a record on disk, apart from its state and its contents.
func (r *record) fields(c *wirefmt.Coder, state *uint64, t *store.Txn) {
	wirefmt.Uint(c, state)
	store.ReasonFields(c, &r.reason)
	wirefmt.Uint(c, &r.hint)
	wirefmt.Bool(c, &r.known)
	store.ShardsFields(c, &r.shards)
	store.TxnFields(c, t)
}

// ownKeyBit goes with the state of a record whose contents have a key of their own.
const ownKeyBit = 1 << 4

// parseRecord returns a transaction without its contents if these have a key of their own.
func parseRecord(b []byte) (*record, error) {
	rd := wirefmt.NewReader(b)
	var state uint64
	var t store.Txn
	r := &record{}
	r.fields(rd.Coder(), &state, &t)
	if state&^ownKeyBit > uint64(Aborted) {
		rd.Failf("no such state: %d", state)
	}
	r.state, r.ownKey = State(state&^ownKeyBit), state&ownKeyBit != 0
	r.id, r.priority, r.reads, r.writes = t.ID, t.Priority, t.Reads, t.Writes
	if err := rd.Close(); err != nil {
		return nil, fmt.Errorf("replicatedcommit: a transaction on disk: %w", err)
	}
	return r, nil
}

// value returns what is under a key, as far as this server knows.
func value(env *protocol.Env[Message], key store.Key) store.Value {
	b, ok := env.Get([]byte(valuePrefix + string(key)))
	if !ok {
		return store.Value{}
	}
	return parseValue(key, b)
}

func parseValue(key store.Key, b []byte) store.Value {
	r := wirefmt.NewReader(b)
	var v store.Value
	store.ValueFields(r.Coder(), &v)
	if err := r.Close(); err != nil {
		panic(fmt.Sprintf("replicatedcommit: the value of %q on disk: %v", key, err)) // which runners stop at
	}
	return v
}

func putValue(env *protocol.Env[Message], key store.Key, v store.Value) {
	w := wirefmt.Writer{Buf: make([]byte, 0, accessRoom+len(v.Bytes))}
	store.ValueFields(w.Coder(), &v)
	env.Put([]byte(valuePrefix+string(key)), w.Buf)
}
