package replicatedcommit

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// A server's key space: its values, its transactions, and what it knows of itself and its peers.
const (
	valuePrefix = kit.ValuePrefix
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
	state  txnState // Yes, No, Committed or Aborted
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

// settled reports whether the decision is carried out here.
func (r *record) settled() bool {
	return r.state == aborted || r.state == committed && r.known
}

// tookForOld reports whether the transaction was aborted here since it was forgotten elsewhere, so
// that it may have been committed.
func (r *record) tookForOld() bool { return r.state == aborted && r.reason == store.Old }

// now returns the state as it is told to others.
func (r *record) now() txnState {
	if r.state == committed && !r.known {
		return wanting
	}
	return r.state
}

func txnKey(id store.TxnID) []byte { return store.TxnKey(txnPrefix, id) }

// peerKey returns what is on disk about another server, under a prefix.
func peerKey(prefix string, peer protocol.ID) []byte {
	return binary.BigEndian.AppendUint32([]byte(prefix), uint32(peer))
}

// parsePeerKey returns the server of a peerKey; false: it is another key.
func parsePeerKey(prefix string, key []byte) (protocol.ID, bool) {
	if len(key) != len(prefix)+4 {
		return 0, false
	}
	return protocol.ID(binary.BigEndian.Uint32(key[len(prefix):])), true
}

var numberLayout = wirefmt.NewLayout("replicatedcommit: a number on disk", wirefmt.Uint[uint64])

// readNumber returns the number under a key, 0 if there is none.
func readNumber(env *protocol.Env[message], key string) (uint64, error) {
	b, ok := env.Get([]byte(key))
	if !ok {
		return 0, nil
	}
	n, err := numberLayout.Decode(b)
	if err != nil {
		return 0, fmt.Errorf("the key %q: %w", key, err)
	}
	return n, nil
}

// recordRoom is about what a record takes beside its transaction.
const recordRoom = 40

func (r *record) bytes() []byte {
	t := store.Txn{ID: r.id, Priority: r.priority, Reads: r.reads, Writes: r.writes}
	state := uint64(r.state)
	if r.ownKey {
		state |= ownKeyBit
		t.Reads, t.Writes = nil, nil
	}
	return recordLayout.Append(make([]byte, 0, recordRoom+store.TxnRoom(t)), stored{*r, state, t})
}

// vote returns what is told to others.
func (r *record) vote() vote { return vote{ID: r.id, State: r.now(), Reason: r.reason, Hint: r.hint} }

// stored is a record as it is on disk.
type stored struct {
	record
	flags uint64    // the state, and ownKeyBit
	txn   store.Txn // its ID and priority, and its contents if these have no key of their own
}

var recordLayout = wirefmt.NewLayout("replicatedcommit: a transaction on disk", func(c *wirefmt.Coder, s *stored) {
	if wirefmt.Uint(c, &s.flags); s.flags&^ownKeyBit > uint64(aborted) {
		c.Failf("no such state: %d", s.flags)
	}
	store.ReasonFields(c, &s.reason)
	wirefmt.Uint(c, &s.hint)
	wirefmt.Bool(c, &s.known)
	store.ShardsFields(c, &s.shards)
	store.TxnFields(c, &s.txn)
})

// ownKeyBit goes with the state of a record whose contents have a key of their own.
const ownKeyBit = 1 << 4

// parseRecord returns a transaction without its contents if these have a key of their own.
func parseRecord(b []byte) (*record, error) {
	s, err := recordLayout.Decode(b)
	if err != nil {
		return nil, err
	}
	r := new(record) // of its own: it is kept
	*r = s.record
	r.state, r.ownKey = txnState(s.flags&^ownKeyBit), s.flags&ownKeyBit != 0
	r.id, r.priority, r.reads, r.writes = s.txn.ID, s.txn.Priority, s.txn.Reads, s.txn.Writes
	return r, nil
}

// values are those that this server knows.
const values kit.Values = "replicatedcommit"

func putValue(env *protocol.Env[message], key store.Key, v store.Value) {
	env.Put(values.Key(key), store.EncodeValue(v))
}
