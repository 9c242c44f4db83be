package replicatedcommit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A lock is who has voted-for transactions on a key. Locks are held by votes only, from the vote to
// the decision, and nobody takes them away.
type lock struct {
	writer  store.TxnID   // zero: none
	readers []store.TxnID // Invariant: none other than the writer, if there is one
}

func (s *Server) lockOf(key store.Key) *lock {
	l := s.locks[key]
	if l == nil {
		l = &lock{}
		s.locks[key] = l
	}
	return l
}

// lock takes the locks of a transaction that is voted for.
func (s *Server) lock(r *record) {
	for _, w := range r.writes {
		s.lockOf(w.Key).writer = r.id
	}
	for _, a := range r.reads {
		l := s.lockOf(a.Key)
		l.readers = append(l.readers, r.id)
	}
}

// unlock lets go of a transaction's locks, and answers the reads that waited for them.
func (s *Server) unlock(env *protocol.Env[Message], r *record) {
	for _, a := range r.reads {
		if l := s.locks[a.Key]; l != nil {
			l.readers = slices.DeleteFunc(l.readers, func(id store.TxnID) bool { return id == r.id })
			s.dropLock(a.Key, l)
		}
		s.unreserve(env, a.Key, r.priority)
	}
	for _, w := range r.writes {
		if l := s.locks[w.Key]; l != nil && l.writer == r.id {
			l.writer = store.TxnID{}
			s.dropLock(w.Key, l)
		}
		s.unreserve(env, w.Key, r.priority)
	}
}

func (s *Server) dropLock(key store.Key, l *lock) {
	if l.writer.IsZero() && len(l.readers) == 0 {
		delete(s.locks, key)
		s.changed(key)
	}
}

// refused returns why the server does not vote for a transaction, NoReason if it does, and what the
// client's next version must be above.
func (s *Server) refused(env *protocol.Env[Message], t store.Txn, firm bool) (store.Reason, uint64) {
	if s.retirement.retired {
		return store.Fenced, 0
	}
	if !firm && !t.ReadOnly() && s.inQuestion(t) {
		return store.Locked, 0
	}
	latest := uint64(0)
	for _, a := range t.Reads {
		v := value(env, a.Key).Version
		latest = max(latest, v.Time)
		l := s.locks[a.Key]
		switch {
		case v.After(a.Version):
			return store.StaleRead, v.Time
		case l != nil && !l.writer.IsZero():
			return store.Locked, 0
		case !firm && s.reservedBefore(env, a.Key, false, t.Priority) && !t.ReadOnly():
			return store.Reserved, 0
		}
	}
	for _, w := range t.Writes {
		v := value(env, w.Key).Version
		latest = max(latest, v.Time)
		l := s.locks[w.Key]
		switch {
		case !t.ID.After(v):
			return store.StaleWrite, v.Time
		case l != nil:
			return store.Locked, 0
		case !firm && s.reservedBefore(env, w.Key, true, t.Priority):
			return store.Reserved, 0
		}
	}
	if !t.ReadOnly() && t.ID.Time > max(max(uint64(max(env.Now, 0)), s.old)+uint64(s.cfg.MaxAhead), latest+aheadStep) {
		return store.Ahead, 0
	}
	return store.NoReason, 0
}

// aheadStep is how far a version may be above those of its keys when these are too far ahead
// themselves: their keys can be written, by clients that see them. Votes follow one another more
// slowly than that, so writes do not drag versions away from the clock.
const aheadStep = uint64(time.Microsecond)
