package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A waiter is a read of a key that others are about to change.
type waiter struct {
	from     protocol.ID
	ref      uint64
	priority store.Priority
}

// queueFor is how many round trips a read waits for its turn until its client is told to ask again:
// fewer than its reservation lasts, with the way to the client and back.
const queueFor = 2

// onRead answers at once, or when the key is the transaction's to read, but not later than in a
// round trip or, behind older ones, in queueFor of them.
func (s *server) onRead(env *protocol.Env[message], from protocol.ID, m store.ReadRequest) {
	if from == protocol.App || len(m.Key) > store.MaxKeyBytes || s.cfg.Layout.ShardOf(m.Key) != s.place.Index ||
		s.behind() {
		return
	}
	s.reservations.Reserve(env, m.Key, false, m.Priority)
	w := waiter{from, m.Ref, m.Priority}
	if !s.mustWait(env, m.Key, m.Priority) || s.waiters >= s.cfg.MaxWaiting {
		s.answer(env, m.Key, w, false)
		return
	}
	if slices.Contains(s.waiting[m.Key], w) {
		return // it was repeated
	}
	s.waiting[m.Key] = append(s.waiting[m.Key], w)
	s.waiters++
	wait := s.cfg.RoundTrip
	if s.reservations.Behind(env.Now, m.Key, m.Priority) {
		wait *= queueFor
	}
	env.After(wait, waitTimer{m.Key, from, m.Ref})
}

// mustWait reports whether a read has to wait: for a transaction that is about to change the key
// or, if the reader was refused before, for its turn. Older ones that are going to change the key
// would have the reader refused again, whatever it read now.
func (s *server) mustWait(env *protocol.Env[message], key store.Key, p store.Priority) bool {
	l := s.locks[key]
	return l != nil && !l.writer.IsZero() || s.reservations.Behind(env.Now, key, p)
}

func (s *server) answer(env *protocol.Env[message], key store.Key, w waiter, queued bool) {
	l := s.locks[key]
	env.Send(w.from, store.ReadReply{Ref: w.ref, Value: values.At(env, key), Pending: l != nil && !l.writer.IsZero(),
		Hint: s.old, Queued: queued})
}

// wake answers the reads of a key that need wait no longer.
func (s *server) wake(env *protocol.Env[message], key store.Key) {
	left := slices.DeleteFunc(s.waiting[key], func(w waiter) bool {
		if s.mustWait(env, key, w.priority) {
			return false
		}
		s.waiters--
		env.Stop(waitTimer{key, w.from, w.ref})
		s.answer(env, key, w, false)
		return true
	})
	if s.waiting[key] = left; len(left) == 0 {
		delete(s.waiting, key)
	}
}

func (s *server) endWait(env *protocol.Env[message], t waitTimer) {
	i := slices.IndexFunc(s.waiting[t.key], func(w waiter) bool { return w.from == t.from && w.ref == t.ref })
	if i < 0 {
		return
	}
	w := s.waiting[t.key][i]
	s.waiting[t.key] = slices.Delete(s.waiting[t.key], i, i+1)
	if len(s.waiting[t.key]) == 0 {
		delete(s.waiting, t.key)
	}
	s.waiters--
	s.answer(env, t.key, w, s.reservations.Behind(env.Now, t.key, w.priority))
}
