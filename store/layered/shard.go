package layered

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/store"
)

// remembered is how many decided transactions a shard remembers at least. It is the same at all
// servers, as what they remember is.
const remembered = 100_000

// shard is what a group replicates.
type shard struct {
	format *wirefmt.Format[store.Message]
	values map[store.Key]store.Value
	locks  map[store.Key]lock
	txns   map[store.TxnID]*txn
	// past are those of txns that may be forgotten, the one that was decided first first.
	past []store.TxnID
	// old is the time of the latest one that was forgotten. Invariant: no transaction up to it is
	// voted for that is not in txns.
	old     uint64
	applied func(store.Key, store.Value) // nil: nobody
}

// lock is on a key that prepared transactions have read, or one has written.
type lock struct {
	writer  store.TxnID
	readers int
}

// txn is a transaction that the shard has voted for, or knows the end of.
type txn struct {
	id     store.TxnID
	state  state // Invariant: prepared, committed or aborted
	reason store.Reason
	shards []uint32
	reads  []store.Read  // while it is prepared
	writes []store.Write // likewise
	locked bool          // Invariant: it is prepared
	// awaited says that the shard has made the decision, and others may not know it.
	awaited bool
}

func newShard(applied func(store.Key, store.Value)) *shard {
	return &shard{format: format(), values: map[store.Key]store.Value{}, locks: map[store.Key]lock{},
		txns: map[store.TxnID]*txn{}, applied: applied}
}

// Apply implements smr.StateMachine.
func (s *shard) Apply(command []byte) []byte {
	r := result{State: aborted}
	switch m, _ := s.format.Decode(command); m := m.(type) {
	case prepare:
		r = s.prepare(m)
	case decide:
		r = s.decide(m)
	case done:
		r = s.finish(m)
	}
	b, err := s.format.Append(nil, r)
	if err != nil {
		panic(fmt.Sprintf("layered: a result cannot be encoded: %v", err)) // it is of the format
	}
	return b
}

// prepare votes. A no is the transaction's end, here and so everywhere.
func (s *shard) prepare(m prepare) result {
	t := s.txns[m.Txn.ID]
	switch {
	case t != nil:
		return result{t.state, t.reason}
	case m.Txn.ID.Time <= s.old:
		return result{forgotten, store.Old}
	}
	t = &txn{id: m.Txn.ID, shards: m.Shards, reads: m.Txn.Reads, writes: m.Txn.Writes}
	s.txns[t.id] = t
	if why := s.refuses(t); why != store.NoReason {
		return s.end(t, false, why)
	}
	if m.Only {
		return s.end(t, true, store.NoReason)
	}
	s.lock(t)
	return result{State: prepared}
}

// refuses returns why the shard does not vote for a transaction.
func (s *shard) refuses(t *txn) store.Reason {
	for _, r := range t.reads {
		switch {
		case s.values[r.Key].Version != r.Version:
			return store.StaleRead
		case !s.locks[r.Key].writer.IsZero():
			return store.Locked
		}
	}
	for _, w := range t.writes {
		switch l := s.locks[w.Key]; {
		case !t.id.After(s.values[w.Key].Version):
			return store.StaleWrite
		case !l.writer.IsZero() || l.readers > 0:
			return store.Locked
		}
	}
	return store.NoReason
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
func (s *shard) decide(m decide) result {
	t := s.txns[m.ID]
	switch {
	case t == nil && m.ID.Time <= s.old:
		return result{forgotten, store.Old}
	case t == nil:
		// Nobody has the shard's vote, so nobody has decided to commit: from now on it says no.
		t = &txn{id: m.ID, shards: m.Shards}
		s.txns[m.ID] = t
		return s.end(t, false, m.Reason)
	case t.state != prepared:
		return result{t.state, t.reason}
	}
	t.awaited = m.Anchor && m.Commit && len(t.shards) > 1
	return s.end(t, m.Commit, m.Reason)
}

// finish takes note that all shards have carried out what this one decided. The answer says what
// became of the transaction.
func (s *shard) finish(m done) result {
	t := s.txns[m.ID]
	if t == nil {
		return result{forgotten, store.Old}
	}
	if t.awaited {
		t.awaited = false
		s.ended(t)
	}
	return result{t.state, t.reason}
}

// end gives a transaction its end.
func (s *shard) end(t *txn, commit bool, why store.Reason) result {
	t.reason = why
	if t.state = aborted; commit {
		t.state = committed
		for _, w := range t.writes {
			v := store.Value{Version: t.id, Present: !w.Delete, Bytes: w.Bytes}
			s.values[w.Key] = v
			if s.applied != nil {
				s.applied(w.Key, v)
			}
		}
	}
	if t.locked {
		s.count(t, -1)
		t.locked = false
	}
	if t.reads, t.writes = nil, nil; !t.awaited {
		s.ended(t)
	}
	return result{t.state, t.reason}
}

// ended lets a transaction be forgotten when enough others were decided after it.
func (s *shard) ended(t *txn) {
	s.past = append(s.past, t.id)
	if len(s.past) <= remembered {
		return
	}
	s.old = max(s.old, s.past[0].Time)
	delete(s.txns, s.past[0])
	s.past = s.past[1:]
}

// open returns the transactions whose end is not known, or not known to be known everywhere, in
// order.
func (s *shard) open() []*txn {
	var out []*txn
	for _, t := range s.txns { //pure:ok they are sorted
		if t.state == prepared || t.awaited {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b *txn) int { return a.id.Compare(b.id) })
	return out
}

// Read implements smr.StateMachine. Nobody asks: servers look at the values themselves.
func (s *shard) Read([]byte) []byte { return nil }

// Snapshot implements smr.StateMachine.
func (s *shard) Snapshot(w io.Writer) error {
	_, err := w.Write(shardLayout.Encode(s))
	return err
}

// Restore implements smr.StateMachine.
func (s *shard) Restore(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	fresh, err := shardLayout.Decode(b)
	if err != nil {
		return err
	}
	fresh.applied = s.applied
	*s = *fresh
	return nil
}

var shardLayout = wirefmt.NewLayout("layered: a snapshot", shardFields)

// shardFields are those of a snapshot. What is locked follows from what is prepared.
func shardFields(c *wirefmt.Coder, at **shard) {
	if c.Reading() {
		*at = newShard(nil)
	}
	s := *at
	var txns []*txn
	for _, id := range slices.SortedFunc(maps.Keys(s.txns), store.TxnID.Compare) {
		txns = append(txns, s.txns[id])
	}
	wirefmt.Uint(c, &s.old)
	wirefmt.Map(c, &s.values, store.MinAccessBytes, func(c *wirefmt.Coder, key *store.Key, v *store.Value) {
		wirefmt.String(c, key)
		store.ValueFields(c, v)
	})
	wirefmt.List(c, &txns, store.MinAccessBytes, txnFields)
	wirefmt.List(c, &s.past, 2, store.VersionFields)
	if !c.Reading() || c.Err() != nil {
		return
	}
	if s.values == nil {
		s.values = map[store.Key]store.Value{}
	}
	for i, t := range txns {
		if i > 0 && t.id.Compare(txns[i-1].id) <= 0 {
			c.Failf("transaction %v is out of order", t.id)
			return
		}
		s.txns[t.id] = t
		if t.state == prepared {
			s.lock(t)
		}
	}
}

func txnFields(c *wirefmt.Coder, at **txn) {
	if *at == nil {
		*at = &txn{}
	}
	t := *at
	all := store.Txn{ID: t.id, Reads: t.reads, Writes: t.writes}
	store.TxnFields(c, &all)
	if all.Priority != (store.Priority{}) {
		c.Failf("transaction %v has a priority", all.ID)
	}
	t.id, t.reads, t.writes = all.ID, all.Reads, all.Writes
	wirefmt.Enum(c, &t.state, prepared, aborted, "state")
	store.ReasonFields(c, &t.reason)
	store.ShardsFields(c, &t.shards)
	wirefmt.Bool(c, &t.awaited)
}
