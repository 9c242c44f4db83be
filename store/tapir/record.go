package tapir

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// A server's key space: its values, the latest reads of keys, what is on record of transactions and
// what these read and write, which is written once, and what the server knows of itself and others.
const (
	valuePrefix = kit.ValuePrefix
	readPrefix  = "r"
	txnPrefix   = "t"
	partPrefix  = "p"
	diskPrefix  = "d" // of other servers
	owedPrefix  = "o" // servers that have to copy
	selfKey     = "m-self"
	oldKey      = "m-old"
	viewKey     = "m-view"
)

// record is what a server has on record of a transaction. On disk it is without the fields at the
// end, and its part has a key of its own.
type record struct {
	id       store.TxnID
	shards   []uint32
	has      bool // the part is here. Invariant: if prepared or committed, until all have carried it out
	part     store.Txn
	promised ballot // Invariant: accepted and votedAt are not later
	vote     vote
	votedAt  ballot       // zero: the vote is for no fast quorum
	reason   store.Reason // of a no, or an abort
	hint     uint64       // of retry
	accepted ballot
	yes      bool // the result that is accepted. Invariant: false if none is
	end      end
	lost     bool // begun when it was so old that it may have been carried out and forgotten
	done     bool // all servers have carried it out, but for those that are owed it

	since time.Duration // when it was begun, or given to a coordinator to finish
	tries int           // how often it was given to one
}

// holds reports whether the transaction may be committed as far as this server is concerned, so
// that no conflicting one may be.
func (r *record) holds() bool { return r.end == undecided && r.vote == prepared }

// shadows reports whether it is aborted, and somebody may not know that it does not hold: see
// server.shadow.
func (r *record) shadows() bool { return r.end == aborted && r.vote == prepared && r.has && !r.done }

// forgot reports whether the server may have carried a transaction out and forgotten it.
func (r *record) forgot() bool { return r.end != committed && r.lost || r.soft() }

// soft reports whether the transaction is aborted for no more than that somebody has forgotten it.
func (r *record) soft() bool { return r.end == aborted && r.reason == store.Old }

var recordLayout = wirefmt.NewLayout("tapir: a transaction on disk", func(c *wirefmt.Coder, r *record) {
	store.VersionFields(c, &r.id)
	store.ShardsFields(c, &r.shards)
	wirefmt.Bool(c, &r.has)
	ballotFields(c, &r.promised)
	wirefmt.Enum(c, &r.vote, unvoted, refused, "vote")
	ballotFields(c, &r.votedAt)
	store.ReasonFields(c, &r.reason)
	wirefmt.Uint(c, &r.hint)
	ballotFields(c, &r.accepted)
	wirefmt.Bool(c, &r.yes)
	wirefmt.Enum(c, &r.end, undecided, aborted, "end")
	wirefmt.Bool(c, &r.lost)
	wirefmt.Bool(c, &r.done)
})

// viewState is what is on disk of the view.
type viewState struct {
	view, normal viewNumber
	members      []protocol.ID // of normal
}

var (
	viewLayout = wirefmt.NewLayout("tapir: the view on disk", func(c *wirefmt.Coder, v *viewState) {
		wirefmt.Uint(c, &v.view)
		wirefmt.Uint(c, &v.normal)
		wirefmt.List(c, &v.members, 1, wirefmt.Uint32)
	})
	versionLayout = wirefmt.NewLayout("tapir: a version on disk", store.VersionFields)
	numberLayout  = wirefmt.NewLayout("tapir: a number on disk", wirefmt.Uint[uint64])
)

func serverKey(prefix string, id protocol.ID) []byte {
	return binary.BigEndian.AppendUint32([]byte(prefix), uint32(id))
}

// within returns the end of the keys that begin with a prefix of one letter.
func within(prefix string) []byte { return []byte{prefix[0] + 1} }

// decoded returns what is on disk. Runners stop at what cannot be read.
func decoded[T any](l *wirefmt.Layout[T], b []byte) T {
	v, err := l.Decode(b)
	if err != nil {
		panic(fmt.Sprintf("tapir: %v", err))
	}
	return v
}

func stored[T any](env *protocol.Env[store.Message], key string, l *wirefmt.Layout[T]) (v T, ok bool) {
	b, ok := env.Get([]byte(key))
	if !ok {
		return v, false
	}
	return decoded(l, b), true
}

func (s *server) save(env *protocol.Env[store.Message], r *record) {
	env.Put(store.TxnKey(txnPrefix, r.id), recordLayout.Encode(*r))
}

// take keeps the part of a transaction, if it is not here yet.
func (s *server) take(env *protocol.Env[store.Message], r *record, has bool, part store.Txn) {
	if has && !r.has && s.fitsPart(part) {
		r.has, r.part = true, part
		env.Put(store.TxnKey(partPrefix, r.id), store.EncodeTxn(part))
	}
}

// dropPart forgets what a transaction reads and writes.
func (s *server) dropPart(env *protocol.Env[store.Message], r *record) {
	if r.has {
		r.has, r.part = false, store.Txn{}
		env.Delete(store.TxnKey(partPrefix, r.id))
	}
}

// fits reports whether shards name a transaction that this server has a part of.
func (s *server) fits(id store.TxnID, shards []uint32) bool {
	return !id.IsZero() && s.cfg.Layout.ValidShards(shards) && slices.Contains(shards, uint32(s.place.Index))
}

// fitsPart reports whether a part is valid and this shard's.
func (s *server) fitsPart(part store.Txn) bool {
	if part.Validate() != nil || len(part.Reads)+len(part.Writes) == 0 {
		return false
	}
	foreign := func(k store.Key) bool { return s.cfg.Layout.ShardOf(k) != s.place.Index }
	return !slices.ContainsFunc(part.Reads, func(r store.Read) bool { return foreign(r.Key) }) &&
		!slices.ContainsFunc(part.Writes, func(w store.Write) bool { return foreign(w.Key) })
}

// values are those that this server knows.
const values kit.Values = "tapir"

// putValue writes a value, unless a later one is there.
func (s *server) putValue(env *protocol.Env[store.Message], key store.Key, v store.Value) {
	if v.Version.After(values.At(env, key).Version) {
		env.Put(values.Key(key), store.EncodeValue(v))
	}
	if s.cfg.Applied != nil {
		s.cfg.Applied(key, v)
	}
}
