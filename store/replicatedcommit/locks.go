package replicatedcommit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A lock is which transactions that were voted for use a key. Locks are held by yes votes only,
// from the vote until the decision is applied here, across crashes, and nobody takes them away. The
// proof of serializability rests on that: of two committed transactions that conflict, some site
// voted yes on both, and it voted on the second after it had applied the first (DESIGN.md, "Why it
// is strictly serializable", 3).
//
// If a lock could time out, a site that has voted for T1, which adds one to x, would vote for T2,
// which has read the old x and adds one too. With that site in both majorities both commit, and one
// of the two updates is lost.
type lock struct {
	writer  store.TxnID   // zero: none
	readers []store.TxnID // Invariant: none other than the writer, if there is one
}

func (s *server) lockOf(key store.Key) *lock {
	l := s.locks[key]
	if l == nil {
		l = &lock{}
		s.locks[key] = l
	}
	return l
}

// lock takes the locks of a transaction that is voted for. Reads are locked too: until it is
// decided nobody may replace what it read.
//
// T1 reads x and writes y, T2 reads y and writes x. If only writes were locked, a site could vote
// for both, and each would have read what the other replaces: no serial order has that result.
func (s *server) lock(r *record) {
	for _, w := range r.writes {
		s.lockOf(w.Key).writer = r.id
	}
	for _, a := range r.reads {
		l := s.lockOf(a.Key)
		l.readers = append(l.readers, r.id)
	}
}

// unlock lets go of a transaction's locks. Reads and requests that waited for them go on in goOn.
func (s *server) unlock(env *protocol.Env[message], r *record) {
	for _, a := range r.reads {
		if l := s.locks[a.Key]; l != nil {
			l.readers = slices.DeleteFunc(l.readers, func(id store.TxnID) bool { return id == r.id })
			s.dropLock(a.Key, l)
		}
		s.reservations.Release(env, a.Key, r.priority)
	}
	for _, w := range r.writes {
		if l := s.locks[w.Key]; l != nil && l.writer == r.id {
			l.writer = store.TxnID{}
			s.dropLock(w.Key, l)
		}
		s.reservations.Release(env, w.Key, r.priority)
	}
}

func (s *server) dropLock(key store.Key, l *lock) {
	if l.writer.IsZero() && len(l.readers) == 0 {
		delete(s.locks, key)
		s.changed(key)
	}
}

// refused returns why the server does not vote for a transaction, NoReason if it does, and what the
// client's next version must be above. Versions and locks are needed for safety. Reservations and
// keys in question are not: they say who goes first and keep blocking from spreading, and servers
// may differ in them. A firm request is not subject to these two, since the first site has voted
// yes on it already, and a no here could block it.
func (s *server) refused(env *protocol.Env[message], t store.Txn, firm bool) (store.Reason, uint64) {
	if s.retirement.retired {
		return store.Fenced, 0
	}
	if !firm && !t.ReadOnly() && s.inQuestion(t) {
		return store.Locked, 0
	}
	latest := uint64(0)
	for _, a := range t.Reads {
		v := values.At(env, a.Key).Version
		latest = max(latest, v.Time)
		l := s.locks[a.Key]
		// What was read must be current when the vote is given, and no undecided transaction may be
		// about to replace it (R2). A version here that is older than the one that was read is no
		// reason to refuse: this site is only behind.
		switch {
		case v.After(a.Version):
			return store.StaleRead, v.Time
		case l != nil && !l.writer.IsZero():
			return store.Locked, 0
		case !firm && s.reservations.Before(env.Now, a.Key, false, t.Priority) && !t.ReadOnly():
			return store.Reserved, 0
		}
	}
	for _, w := range t.Writes {
		v := values.At(env, w.Key).Version
		latest = max(latest, v.Time)
		l := s.locks[w.Key]
		// Values are applied by version, so a write whose version is not above the key's would be
		// lost (R1). Any lock is in the way: of a writer, or of a reader that must not have its
		// value replaced before it is decided.
		switch {
		case !t.ID.After(v):
			return store.StaleWrite, v.Time
		case l != nil:
			return store.Locked, 0
		case !firm && s.reservations.Before(env.Now, w.Key, true, t.Priority):
			return store.Reserved, 0
		}
	}
	// A client whose clock runs far ahead must not drag versions with it (DESIGN.md, "Versions").
	if !t.ReadOnly() && t.ID.Time > max(max(uint64(max(env.Now, 0)), s.old)+uint64(s.cfg.MaxAhead), latest+aheadStep) {
		return store.Ahead, 0
	}
	return store.NoReason, 0
}

// aheadStep is how far a version may be above those of its keys if these are too far ahead of the
// clock themselves, so that such keys can still be written by clients that see their versions.
// Votes on a key follow one another more slowly than that, so the clock catches up.
const aheadStep = uint64(time.Microsecond)
