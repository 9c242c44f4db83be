package layered

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// These bound the transactions that wait at a shard, and what they read and write. They are the
// same at all servers, as what they do at a bound is.
const (
	maxQueue      = 256
	maxQueueBytes = 32 << 20
)

// Wound-wait. A transaction that meets others that have voted yes and are not older waits for them,
// and they are wounded: their anchors are asked to abort them, and do so unless they have decided.
// It waits for older ones too, whether they have voted or wait themselves, but for one whose key it
// has read: if that commits, the read is out of date. DESIGN.md says why nobody waits for ever.

// byAge is the order of the queue.
func byAge(a, b *txn) int {
	switch {
	case a.older(b):
		return -1
	case b.older(a):
		return 1
	}
	return a.id.Compare(b.id)
}

// A meeting is what stands in the way of a transaction.
type meeting struct {
	waits  bool
	inVain bool   // what it has read would be out of date when it has waited
	wounds []*txn // the younger ones among those that it waits for
}

// meet returns what stands in the way of a transaction.
func (s *shard) meet(t *txn) (m meeting) {
	reads, writes := map[store.Key]bool{}, map[store.Key]bool{}
	for _, r := range t.reads {
		reads[r.Key] = true
	}
	for _, w := range t.writes {
		writes[w.Key] = true
	}
	meets := func(other *txn) (any bool) {
		stale := slices.ContainsFunc(other.writes, func(w store.Write) bool { return reads[w.Key] })
		any = stale || slices.ContainsFunc(other.writes, func(w store.Write) bool { return writes[w.Key] }) ||
			slices.ContainsFunc(other.reads, func(r store.Read) bool { return writes[r.Key] })
		m.waits = m.waits || any
		m.inVain = m.inVain || stale && other.older(t)
		return any
	}
	if s.locked(t) {
		for _, other := range s.all() {
			if other.state == prepared && meets(other) && !other.older(t) {
				m.wounds = append(m.wounds, other)
			}
		}
	}
	for _, other := range s.queue {
		if other.older(t) {
			meets(other)
		}
	}
	return m
}

// locked reports whether somebody has a lock that does not go together with a transaction's.
func (s *shard) locked(t *txn) bool {
	return slices.ContainsFunc(t.reads, func(r store.Read) bool { return !s.locks[r.Key].writer.IsZero() }) ||
		slices.ContainsFunc(t.writes, func(w store.Write) bool { return s.locks[w.Key] != lock{} })
}

// admit has the shard vote for a transaction, refuse it, or leave it waiting.
func (s *shard) admit(state raft.State, t *txn) result {
	if why := s.stale(state, t); why != store.NoReason {
		return s.end(state, t, false, why)
	}
	switch m := s.meet(t); {
	case m.inVain: // it is not yet decided: who tries again at once, time and again, meets the same
		return s.end(state, t, false, store.Reserved)
	case m.waits:
		return result{State: waiting}
	}
	return s.vote(state, t)
}

// enqueue has a transaction wait. If there is no room, the youngest ones are refused: an older one
// gets its turn, however many are tried again and again. Nobody waits for the youngest, so nobody
// else is woken.
func (s *shard) enqueue(state raft.State, t *txn) (r result, refused []word) {
	at, _ := slices.BinarySearchFunc(s.queue, t, byAge)
	bytes := contentBytes(t)
	for _, other := range s.queue {
		bytes += contentBytes(other)
	}
	for len(s.queue) >= maxQueue || bytes > maxQueueBytes {
		if at == len(s.queue) {
			return s.end(state, t, false, store.Locked), refused
		}
		youngest := s.queue[len(s.queue)-1]
		bytes -= contentBytes(youngest)
		_, words := s.refuse(state, youngest, store.Locked)
		refused, s.freed = append(refused, words...), false
	}
	t.state = waiting
	s.queue = slices.Insert(s.queue, at, t)
	state.Put(store.TxnKey(waitPrefix, t.id), waitLayout.Encode(t))
	return result{State: waiting}, refused
}

func contentBytes(t *txn) int { return store.ContentBytes(t.reads, t.writes) }

// dequeue ends the wait of a transaction.
func (s *shard) dequeue(state raft.State, t *txn) {
	s.queue = slices.DeleteFunc(s.queue, func(other *txn) bool { return other == t })
	state.Delete(store.TxnKey(waitPrefix, t.id))
	s.freed = true
}

// waits returns the transaction of a name that waits, nil if none does.
func (s *shard) waits(id store.TxnID) *txn {
	if i := slices.IndexFunc(s.queue, func(t *txn) bool { return t.id == id }); i >= 0 {
		return s.queue[i]
	}
	return nil
}

// wake looks, in order of age, who need not wait any more. Nobody waits for younger ones that wait,
// so once is enough.
func (s *shard) wake(state raft.State) (woken []word) {
	for _, t := range slices.Clone(s.queue) {
		if r := s.admit(state, t); r.State != waiting {
			s.dequeue(state, t)
			woken = append(woken, word{t.id, r})
		}
	}
	s.freed = false
	return woken
}

// giveUp refuses a transaction that has waited for too long. One that does not wait has what it
// has.
func (s *shard) giveUp(state raft.State, m giveUp) (result, []word) {
	t := s.waits(m.ID)
	if t == nil {
		r, _ := s.known(state, m.ID)
		return r, nil
	}
	return s.refuse(state, t, store.Locked)
}

// refuse ends a transaction that waits.
func (s *shard) refuse(state raft.State, t *txn, why store.Reason) (result, []word) {
	s.dequeue(state, t)
	r := s.end(state, t, false, why)
	return r, []word{{t.id, r}}
}

// loadQueue reads who waits.
func (s *shard) loadQueue(state protocol.Keys) {
	s.queue = nil
	for _, b := range state.Scan([]byte(waitPrefix), []byte{waitPrefix[0] + 1}) {
		s.queue = append(s.queue, read(waitLayout, b))
	}
	slices.SortFunc(s.queue, byAge)
}
