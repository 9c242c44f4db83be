package layered

import (
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// remembered is how many decided transactions a shard remembers at least. It is the same at all
// servers, as what they remember is.
const remembered = 100_000

// shard is what a group agrees on: a raft.Machine. Values and decided transactions are in the state
// only; what is open, and so what is locked, is in memory too.
type shard struct {
	format *wirefmt.Format[store.Message]
	open   map[store.TxnID]*txn
	locks  map[store.Key]lock
	books  books
	queue  []*txn // that wait, the oldest first. Invariant: none of them is open.
	freed  bool   // since the last command somebody has left whom others may have waited for
	// results are of the commands that were carried out since somebody took them.
	results   []effect
	remembers uint64                       // as remembered says
	applied   func(store.Key, store.Value) // nil: nobody
}

// effect is what a command has done: what the shard knows of its transaction, and what it has said
// to those that had waited.
type effect struct {
	result
	woken []word
}

// word is what the shard says to a transaction that had waited.
type word struct {
	id store.TxnID
	result
}

// lock is on a key that prepared transactions have read, or one has written.
type lock struct {
	writer  store.TxnID
	readers int
}

// txn is a transaction that the shard has voted for, or whose end it knows and others may not.
type txn struct {
	id     store.TxnID
	state  state // Invariant: prepared, committed, aborted or, in the queue alone, waiting
	reason store.Reason
	shards []uint32
	reads  []store.Read  // while it waits or is prepared
	writes []store.Write // likewise
	// priority is the age that it was sent with.
	priority store.Priority
	only     bool // it has no other part; while it waits
	locked   bool // Invariant: it is prepared
	// awaited says that the shard has made the decision, and others may not know it.
	awaited bool
}

// age is what goes before, if it is less: that of a transaction's first attempt.
func (t *txn) age() store.Priority {
	if t.priority.IsZero() {
		return store.Priority{Began: t.id.Time, Client: t.id.Client}
	}
	return t.priority
}

// older reports whether a transaction began before another one. Attempts of the same are as old.
func (t *txn) older(than *txn) bool { return t.age().Before(than.age()) }

func newShard(applied func(store.Key, store.Value)) *shard {
	return &shard{format: commandFormat(), open: map[store.TxnID]*txn{}, locks: map[store.Key]lock{},
		remembers: remembered, applied: applied}
}

// Load implements raft.Machine.
func (s *shard) Load(state protocol.Keys) {
	s.open, s.locks, s.books = map[store.TxnID]*txn{}, map[store.Key]lock{}, books{}
	if b, ok := state.Get([]byte(booksKey)); ok {
		s.books = read(booksLayout, b)
	}
	s.loadQueue(state)
	for _, b := range state.Scan([]byte(openPrefix), []byte{openPrefix[0] + 1}) {
		t := read(openLayout, b)
		s.open[t.id] = t
		if t.state == prepared {
			s.lock(t)
		}
	}
}

// Apply implements raft.Machine.
func (s *shard) Apply(state raft.State, _ raft.Position, command []byte) {
	e := effect{result: result{State: aborted}}
	switch m, _ := s.format.Decode(command); m := m.(type) {
	case prepare:
		e.result, e.woken = s.prepare(state, m)
	case decide:
		e.result, e.woken = s.decide(state, m)
	case done:
		e.result = s.finish(state, m)
	case giveUp:
		e.result, e.woken = s.giveUp(state, m)
	}
	if s.freed {
		e.woken = append(e.woken, s.wake(state)...)
	}
	s.results = append(s.results, e)
}

// known returns what the shard knows of a transaction.
func (s *shard) known(state protocol.Keys, id store.TxnID) (r result, ok bool) {
	if t := s.open[id]; t != nil {
		return result{t.state, t.reason}, true
	}
	if s.waits(id) != nil {
		return result{State: waiting}, true
	}
	if b, ok := state.Get(store.TxnKey(endedPrefix, id)); ok {
		return read(endedLayout, b), true
	}
	return result{forgotten, store.Old}, id.Time <= s.books.old
}

// prepare votes, or has the transaction wait. A no is its end, here and so everywhere.
func (s *shard) prepare(state raft.State, m prepare) (result, []word) {
	if r, ok := s.known(state, m.Txn.ID); ok {
		return r, nil
	}
	t := &txn{id: m.Txn.ID, priority: m.Txn.Priority, shards: m.Shards, reads: m.Txn.Reads, writes: m.Txn.Writes,
		only: m.Only}
	if !m.Waits {
		t.priority = store.Priority{}
		if why := s.refuses(state, t); why != store.NoReason {
			return s.end(state, t, false, why), nil
		}
		return s.vote(state, t), nil
	}
	if r := s.admit(state, t); r.State != waiting {
		return r, nil
	}
	return s.enqueue(state, t)
}

// vote votes for a transaction, which is its commit if it has no other part.
func (s *shard) vote(state raft.State, t *txn) result {
	if t.only {
		return s.end(state, t, true, store.NoReason)
	}
	t.state = prepared
	s.lock(t)
	s.keep(state, t)
	return result{State: prepared}
}

// keep writes a transaction that is open.
func (s *shard) keep(state raft.State, t *txn) {
	s.open[t.id] = t
	state.Put(store.TxnKey(openPrefix, t.id), openLayout.Encode(t))
}

// refuses returns why the shard does not vote for a transaction that does not wait: the first thing
// that is in its way, in the order of its keys. Versions in which nobody waited have refused it for
// that, and those that have not carried it out yet have to say the same.
func (s *shard) refuses(state protocol.Keys, t *txn) store.Reason {
	for _, r := range t.reads {
		switch {
		case values.At(state, r.Key).Version != r.Version:
			return store.StaleRead
		case !s.locks[r.Key].writer.IsZero():
			return store.Locked
		}
	}
	for _, w := range t.writes {
		switch {
		case !t.id.After(values.At(state, w.Key).Version):
			return store.StaleWrite
		case s.locks[w.Key] != lock{}:
			return store.Locked
		}
	}
	return store.NoReason
}

// stale returns why the shard will never vote for a transaction.
func (s *shard) stale(state protocol.Keys, t *txn) store.Reason {
	for _, r := range t.reads {
		if values.At(state, r.Key).Version != r.Version {
			return store.StaleRead
		}
	}
	for _, w := range t.writes {
		if !t.id.After(values.At(state, w.Key).Version) {
			return store.StaleWrite
		}
	}
	return store.NoReason
}

// check says whether a transaction that writes nothing is committed by what there is.
func (s *shard) check(state protocol.Keys, t store.Txn) result {
	all := &txn{id: t.ID, reads: t.Reads}
	if why := s.stale(state, all); why != store.NoReason {
		return result{aborted, why}
	}
	if s.locked(all) {
		return result{aborted, store.Locked}
	}
	return result{State: committed}
}

// lock locks the keys of a transaction that is prepared.
func (s *shard) lock(t *txn) {
	s.count(t, 1)
	t.locked = true
}

// count adds the locks of a transaction, or takes them away.
func (s *shard) count(t *txn, n int) {
	put := func(k store.Key, l lock) {
		if l == (lock{}) {
			delete(s.locks, k)
		} else {
			s.locks[k] = l
		}
	}
	for _, r := range t.reads {
		l := s.locks[r.Key]
		l.readers += n
		put(r.Key, l)
	}
	for _, w := range t.writes {
		l := s.locks[w.Key]
		if l.writer = (store.TxnID{}); n > 0 {
			l.writer = t.id
		}
		put(w.Key, l)
	}
}

// decide carries out a decision, or makes it. What was decided first stands.
func (s *shard) decide(state raft.State, m decide) (result, []word) {
	r, ok := s.known(state, m.ID)
	switch {
	case !ok:
		// Nobody has the shard's vote, so nobody has decided to commit: from now on it says no.
		return s.end(state, &txn{id: m.ID, shards: m.Shards}, false, m.Reason), nil
	case r.State == waiting: // likewise
		return s.refuse(state, s.waits(m.ID), m.Reason)
	case r.State != prepared:
		return r, nil
	}
	t := s.open[m.ID]
	t.awaited = m.Anchor && m.Commit && len(t.shards) > 1
	return s.end(state, t, m.Commit, m.Reason), nil
}

// finish takes note that all shards have carried out what this one decided. The answer says what
// became of the transaction.
func (s *shard) finish(state raft.State, m done) result {
	r, ok := s.known(state, m.ID)
	if !ok {
		return result{forgotten, store.Old}
	}
	if t := s.open[m.ID]; t != nil && t.awaited {
		t.awaited = false
		s.ended(state, t)
	}
	return r
}

// end gives a transaction its end.
func (s *shard) end(state raft.State, t *txn, commit bool, why store.Reason) result {
	t.reason = why
	if t.state = aborted; commit {
		t.state = committed
		for _, w := range t.writes {
			v := store.Value{Version: t.id, Present: !w.Delete, Bytes: w.Bytes}
			state.Put(values.Key(w.Key), store.EncodeValue(v))
			if s.applied != nil {
				s.applied(w.Key, v)
			}
		}
	}
	if t.locked {
		s.count(t, -1)
		t.locked, s.freed = false, true
	}
	if t.reads, t.writes = nil, nil; t.awaited {
		s.keep(state, t)
	} else {
		s.ended(state, t)
	}
	return result{t.state, t.reason}
}

// ended lets a transaction be forgotten when enough others were decided after it.
func (s *shard) ended(state raft.State, t *txn) {
	if s.open[t.id] != nil {
		delete(s.open, t.id)
		state.Delete(store.TxnKey(openPrefix, t.id))
	}
	state.Put(store.TxnKey(endedPrefix, t.id), endedLayout.Encode(result{t.state, t.reason}))
	b := &s.books
	state.Put(orderKey(b.next), idLayout.Encode(t.id))
	b.next++
	if b.next-b.first > s.remembers {
		first, _ := state.Get(orderKey(b.first))
		id := read(idLayout, first)
		b.old = max(b.old, id.Time)
		state.Delete(store.TxnKey(endedPrefix, id))
		state.Delete(orderKey(b.first))
		b.first++
	}
	state.Put([]byte(booksKey), booksLayout.Encode(*b))
}

// all returns the transactions whose end is not known, or not known to be known everywhere, in
// order.
func (s *shard) all() []*txn {
	var out []*txn
	for _, t := range s.open { //pure:ok they are sorted
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *txn) int { return a.id.Compare(b.id) })
	return out
}

// size returns how many transactions the shard remembers.
func (s *shard) size() int { return len(s.open) + len(s.queue) + int(s.books.next-s.books.first) }
