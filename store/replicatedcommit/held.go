package replicatedcommit

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// A held is a request for a vote that waits until other transactions leave its keys. To everybody
// else it is a message that is still on its way: it has no locks, nothing of it is on disk, and
// whoever asks about its transaction is answered as if it had not come. That is why waiting is
// safe: the vote is given later, once, by the same rules. A refusal would be a vote too, and final;
// to wait for a moment spares the client another attempt.
type held struct {
	from protocol.ID
	m    prepare
}

// holdTimer ends the wait of a request.
type holdTimer struct{ id store.TxnID }

// holding is what a server holds back.
type holding struct {
	byTxn map[store.TxnID]*held
	byKey map[store.Key][]*held // those that need a key. Invariant: at most kit.MaxQueue, none of them empty
}

// firmHold is how many round trips a firm request waits at most. The decision that it waits for has
// been carried out at the first site; if word of it was lost, it has been asked for again by then.
const firmHold = 4

// mayHold reports whether a vote that would be no at present may wait. What locks and reservations
// refuse may pass; a version that is too old, or too far ahead, does not.
//
// Nobody waits behind a transaction that may be blocked. It would wait in vain, and meanwhile keep
// others from the rest of its keys, so that blocking would spread (DESIGN.md, "Blocking"). A firm
// request does wait: the first site has voted yes on it, so whatever it meets here was decided
// there, and the decision is on its way.
func (s *server) mayHold(env *protocol.Env[message], m prepare, why store.Reason) bool {
	return (why == store.Locked || why == store.Reserved) && (m.Firm || !s.behindBlocked(m.Txn)) && !stale(env, m.Txn)
}

// stale reports whether a transaction is refused whatever becomes of those that have its keys,
// since a value that it read, or is to write, is newer already. Such a one does not wait.
func stale(env *protocol.Env[message], t store.Txn) bool {
	newer := func(a store.Read) bool { return values.At(env, a.Key).Version.After(a.Version) }
	return slices.ContainsFunc(t.Reads, newer) ||
		slices.ContainsFunc(t.Writes, func(w store.Write) bool { return !t.ID.After(values.At(env, w.Key).Version) })
}

// hasRoom reports whether one more request can be held back. If not, it is voted on at once: queues
// are bounded, and a refusal is always allowed.
func (s *server) hasRoom(t store.Txn) bool {
	if len(s.holding.byTxn) >= s.cfg.MaxWaiting {
		return false
	}
	for key := range keys(t) {
		if len(s.holding.byKey[key]) >= kit.MaxQueue {
			return false
		}
	}
	return true
}

// hold has a request wait. Its keys are reserved meanwhile, as if it had been refused: younger
// transactions must not take them from one that waits, time and again.
//
// The timer is not only for lost messages. Each of two transactions may have a yes, and so the
// locks, at one site, while its request waits at the other site for the locks of the other. Nothing
// but the end of the wait breaks that circle.
func (s *server) hold(env *protocol.Env[message], from protocol.ID, m prepare) {
	m.Hold = false // it waits once, so that each request is voted on within a bounded time
	h := &held{from, m}
	s.holding.byTxn[m.Txn.ID] = h
	for key := range keys(m.Txn) {
		s.holding.byKey[key] = append(s.holding.byKey[key], h)
	}
	s.reserveRefused(env, m.Txn)
	wait := s.cfg.RoundTrip
	if m.Firm {
		wait *= firmHold
	}
	env.After(wait, holdTimer{m.Txn.ID})
}

// letGo ends the wait of a transaction's request, and returns it; nil if none waits.
func (s *server) letGo(env *protocol.Env[message], id store.TxnID) *held {
	h := s.holding.byTxn[id]
	if h == nil {
		return nil
	}
	delete(s.holding.byTxn, id)
	for key := range keys(h.m.Txn) {
		left := slices.DeleteFunc(s.holding.byKey[key], func(q *held) bool { return q == h })
		if s.holding.byKey[key] = left; len(left) == 0 {
			delete(s.holding.byKey, key)
		}
	}
	env.Stop(holdTimer{id})
	return h
}

// endHold votes on a transaction that need wait no longer, or may not: yes if its keys are free by
// now, otherwise no.
func (s *server) endHold(env *protocol.Env[message], id store.TxnID) {
	if h := s.letGo(env, id); h != nil {
		s.onPrepare(env, h.from, h.m)
	}
}

// changed notes that a key has a new value, or that somebody has left it.
func (s *server) changed(key store.Key) {
	if len(s.holding.byKey[key])+len(s.waiting[key]) > 0 {
		s.freed = append(s.freed, key)
	}
}

// goOn answers reads, and then votes on requests, that need wait no longer now that keys have
// changed. A vote may change further keys, hence the loop. Requests are looked at in the order of
// their versions. Of those that want the same keys the one with the highest priority goes first, in
// whatever order they are looked at: the others find the keys reserved for it.
func (s *server) goOn(env *protocol.Env[message]) {
	for len(s.freed) > 0 {
		var all []*held
		for _, key := range s.freed {
			s.wake(env, key)
			all = append(all, s.holding.byKey[key]...)
		}
		s.freed = nil
		slices.SortFunc(all, func(a, b *held) int { return a.m.Txn.ID.Compare(b.m.Txn.ID) })
		for _, h := range slices.Compact(all) {
			if why, _ := s.refused(env, h.m.Txn, h.m.Firm); !s.mayHold(env, h.m, why) {
				s.endHold(env, h.m.Txn.ID)
			}
		}
	}
}

// unprepared returns the record of a transaction that is refused, or decided, before the server has
// voted on it. If a request for it waits, that ends: a vote on it now would be a second one. What
// the request says is kept, as nobody else need be asked then what the transaction writes.
func (s *server) unprepared(env *protocol.Env[message], id store.TxnID, shards []uint32) *record {
	r := &record{id: id, state: no, shards: shards}
	if h := s.letGo(env, id); h != nil {
		t := h.m.Txn
		r.known, r.priority, r.reads, r.writes = true, t.Priority, t.Reads, t.Writes
	}
	return r
}

// keys returns what a transaction reads and writes, no key twice.
func keys(t store.Txn) iter.Seq[store.Key] {
	return func(yield func(store.Key) bool) {
		for _, a := range t.Reads {
			if !yield(a.Key) {
				return
			}
		}
		for _, w := range t.Writes {
			_, read := slices.BinarySearchFunc(t.Reads, w.Key, func(a store.Read, key store.Key) int {
				return cmp.Compare(a.Key, key)
			})
			if !read && !yield(w.Key) {
				return
			}
		}
	}
}

func (s *server) checkHeld() error {
	n := 0
	for _, key := range slices.Sorted(maps.Keys(s.holding.byKey)) {
		queue := s.holding.byKey[key]
		n += len(queue)
		if len(queue) == 0 || len(queue) > kit.MaxQueue {
			return fmt.Errorf("replicatedcommit: server %d: %d requests are held back for %q, with a limit of %d", s.cfg.ID,
				len(queue), key, kit.MaxQueue)
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(s.holding.byTxn), store.Version.Compare) {
		h := s.holding.byTxn[id]
		for key := range keys(h.m.Txn) {
			n--
			if !slices.Contains(s.holding.byKey[key], h) {
				return fmt.Errorf("replicatedcommit: server %d: %v is held back, but not for %q", s.cfg.ID, id, key)
			}
		}
		if s.txns[id] != nil { // it would be voted on a second time
			return fmt.Errorf("replicatedcommit: server %d: %v is held back after it was voted on or decided", s.cfg.ID, id)
		}
	}
	if held := len(s.holding.byTxn); n != 0 || held > s.cfg.MaxWaiting || held > 0 && s.behind() || len(s.freed) > 0 {
		return fmt.Errorf("replicatedcommit: server %d: %d requests are held back, with a limit of %d, by a newcomer: %v; "+
			"%d keys too many, %d not looked at",
			s.cfg.ID, held, s.cfg.MaxWaiting, s.behind(), n, len(s.freed))
	}
	return nil
}
