package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A waiter is a read of a key that a transaction without a decision writes.
type waiter struct {
	from protocol.ID
	ref  uint64
}

// onRead answers at once, or when the key's writer is decided, but not later than in a round trip.
func (s *Server) onRead(env *protocol.Env[Message], from protocol.ID, m ReadRequest) {
	if from == protocol.App || len(m.Key) > store.MaxKeyBytes || s.cfg.Layout.shardOf(m.Key) != s.place.index || s.behind() {
		return
	}
	s.reserve(env, m.Key, false, m.Priority)
	l := s.locks[m.Key]
	if l == nil || l.writer.IsZero() || s.waiters >= s.cfg.MaxWaiting {
		s.answer(env, m.Key, waiter{from, m.Ref})
		return
	}
	w := waiter{from, m.Ref}
	if slices.Contains(s.waiting[m.Key], w) {
		return // it was repeated
	}
	s.waiting[m.Key] = append(s.waiting[m.Key], w)
	s.waiters++
	env.After(s.cfg.RoundTrip, waitTimer{m.Key, from, m.Ref})
}

func (s *Server) answer(env *protocol.Env[Message], key store.Key, w waiter) {
	l := s.locks[key]
	env.Send(w.from, ReadReply{Ref: w.ref, Value: value(env, key), Pending: l != nil && !l.writer.IsZero(), Hint: s.old})
}

func (s *Server) wake(env *protocol.Env[Message], key store.Key) {
	all := s.waiting[key]
	delete(s.waiting, key)
	s.waiters -= len(all)
	for _, w := range all {
		env.Stop(waitTimer{key, w.from, w.ref})
		s.answer(env, key, w)
	}
}

func (s *Server) endWait(env *protocol.Env[Message], t waitTimer) {
	w := waiter{t.from, t.ref}
	i := slices.Index(s.waiting[t.key], w)
	if i < 0 {
		return
	}
	s.waiting[t.key] = slices.Delete(s.waiting[t.key], i, i+1)
	if len(s.waiting[t.key]) == 0 {
		delete(s.waiting, t.key)
	}
	s.waiters--
	s.answer(env, t.key, w)
}
