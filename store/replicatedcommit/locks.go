package replicatedcommit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A lock is who has voted-for transactions on a key. Locks are held by votes only, from the vote to the decision, and nobody takes them away.
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
	if s.cfg.skip.has(ruleReadLocks) {
		return
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
			s.wake(env, w.Key)
		}
		s.unreserve(env, w.Key, r.priority)
	}
}

func (s *Server) dropLock(key store.Key, l *lock) {
	if l.writer.IsZero() && len(l.readers) == 0 {
		delete(s.locks, key)
	}
}

// refused returns why the server does not vote for a transaction, NoReason if it does, and what the client's next version must be above.
func (s *Server) refused(env *protocol.Env[Message], t store.Txn, firm bool) (store.Reason, uint64) {
	latest := uint64(0)
	for _, a := range t.Reads {
		v := value(env, a.Key).Version
		latest = max(latest, v.Time)
		l := s.locks[a.Key]
		switch {
		case v.After(a.Version) && !s.cfg.skip.has(ruleValidateReads) && !(a.Version.IsZero() && s.cfg.skip.has(ruleAbsentReads)):
			return store.StaleRead, v.Time
		case l != nil && !l.writer.IsZero():
			return store.Locked, 0
		case !firm && s.reservedBefore(env, a.Key, t.Priority) && !t.ReadOnly():
			return store.Reserved, 0
		}
	}
	for _, w := range t.Writes {
		v := value(env, w.Key).Version
		latest = max(latest, v.Time)
		l := s.locks[w.Key]
		switch {
		case !t.ID.After(v) && !s.cfg.skip.has(ruleVersionOrder):
			return store.StaleWrite, v.Time
		case l != nil:
			return store.Locked, 0
		case !firm && s.reservedBefore(env, w.Key, t.Priority):
			return store.Reserved, 0
		}
	}
	if !t.ReadOnly() && t.ID.Time > max(max(uint64(max(env.Now, 0)), s.old)+uint64(s.cfg.MaxAhead), latest+aheadStep) {
		return store.Ahead, 0
	}
	return store.NoReason, 0
}

// aheadStep is how far a version may be above those of its keys when these are too far ahead themselves: their keys can be written, by clients that see them. Votes
// follow one another more slowly than that, so writes do not drag versions away from the clock.
const aheadStep = uint64(time.Microsecond)

// fresh returns a priority, or none if no transaction that is still tried can have it: nobody goes before all others, time and again.
func (s *Server) fresh(env *protocol.Env[Message], p store.Priority) store.Priority {
	now := max(env.Now, 0)
	if p.Began < uint64(max(now-s.cfg.Retain, 0)) || p.Began > uint64(now)+uint64(s.cfg.MaxAhead) {
		return store.Priority{}
	}
	return p
}

// reservedBefore tells whether a transaction that goes before one of a priority wants the key.
func (s *Server) reservedBefore(env *protocol.Env[Message], key store.Key, p store.Priority) bool {
	q, ok := s.reservations[key]
	return ok && q != p && q.Before(s.fresh(env, p))
}

// reserve keeps a key for a transaction that was refused before, unless an older one has it. It is a hint that ends by itself, not a lock.
func (s *Server) reserve(env *protocol.Env[Message], key store.Key, p store.Priority) {
	q, ok := s.reservations[key]
	p = s.fresh(env, p)
	if s.cfg.skip.has(rulePriority) || p.IsZero() || ok && q.Before(p) || !ok && len(s.reservations) >= s.cfg.MaxWaiting {
		return
	}
	s.reservations[key] = p
	env.After(3*s.cfg.RoundTrip, reserveTimer{key})
}

// unreserveAll gives back what a transaction that is done had reserved.
func (s *Server) unreserveAll(env *protocol.Env[Message], reads []store.Read, writes []store.Write, p store.Priority) {
	for _, a := range reads {
		s.unreserve(env, a.Key, p)
	}
	for _, w := range writes {
		s.unreserve(env, w.Key, p)
	}
}

func (s *Server) unreserve(env *protocol.Env[Message], key store.Key, p store.Priority) {
	if q, ok := s.reservations[key]; ok && q == p {
		delete(s.reservations, key)
		env.Stop(reserveTimer{key})
	}
}
