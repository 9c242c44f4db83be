package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// reserveRefused reserves what a transaction needs that this server refuses. It does not if a
// transaction that may be blocked is in its way: others that need the rest of what it needs would
// wait with it, and others for these.
func (s *server) reserveRefused(env *protocol.Env[message], t store.Txn) {
	if s.behindBlocked(t) {
		return
	}
	s.reserveAll(env, t.Reads, t.Writes, t.Priority)
}

// behindBlocked reports whether a transaction meets the lock of one that has been asked about,
// since it was not decided for long, or a key that is in question.
func (s *server) behindBlocked(t store.Txn) bool {
	blocked := func(id store.TxnID) bool {
		r := s.txns[id]
		return r != nil && r.waits > 0
	}
	if s.inQuestion(t) {
		return true
	}
	for _, a := range t.Reads {
		if l := s.locks[a.Key]; l != nil && blocked(l.writer) {
			return true
		}
	}
	for _, w := range t.Writes {
		if l := s.locks[w.Key]; l != nil && (blocked(l.writer) || slices.ContainsFunc(l.readers, blocked)) {
			return true
		}
	}
	return false
}

// reserveAll reserves what a transaction needs that was refused.
func (s *server) reserveAll(env *protocol.Env[message], reads []store.Read, writes []store.Write, p store.Priority) {
	for _, w := range writes {
		s.reservations.Reserve(env, w.Key, true, p)
	}
	for _, a := range reads {
		s.reservations.Reserve(env, a.Key, false, p)
	}
}

// unreserveAll gives back what a transaction that is done had reserved.
func (s *server) unreserveAll(env *protocol.Env[message], reads []store.Read, writes []store.Write, p store.Priority) {
	for _, a := range reads {
		s.reservations.Release(env, a.Key, p)
	}
	for _, w := range writes {
		s.reservations.Release(env, w.Key, p)
	}
}
