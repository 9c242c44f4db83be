package replicatedcommit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A reservation keeps a key from transactions that are younger than one that was refused. It is a
// hint that ends by itself, not a lock: all it does is to have the server vote no. Those of a key
// are a queue, the oldest first: when it is done, the next one need not have been refused once more
// to be next.
type reservation struct {
	priority store.Priority
	writes   bool // else the transaction only reads the key, and other reads are no harm to it
	until    time.Duration
}

const (
	reserveFor = 3   // round trips, in which a transaction that was refused is tried again
	maxQueue   = 256 // reservations of one key
)

// fresh returns a priority, or none if no transaction that is still tried can have it: nobody goes
// before all others, time and again.
func (s *server) fresh(env *protocol.Env[message], p store.Priority) store.Priority {
	now := max(env.Now, 0)
	if p.Began < uint64(max(now-s.cfg.Retain, 0)) || p.Began > uint64(now)+uint64(s.cfg.MaxAhead) {
		return store.Priority{}
	}
	return p
}

// lasts tells whether a reservation has not ended. One that would last for longer than any was made
// before the clock was set back.
func (s *server) lasts(env *protocol.Env[message], q reservation) bool {
	return q.until > env.Now && q.until <= env.Now+reserveFor*s.cfg.RoundTrip
}

// reservedBefore tells whether a transaction that goes before one of a priority wants the key, in a
// way that does not go together with it.
func (s *server) reservedBefore(env *protocol.Env[message], key store.Key, write bool, p store.Priority) bool {
	mine := s.fresh(env, p)
	for _, q := range s.reservations[key] {
		if !q.priority.Before(mine) {
			return false
		}
		if q.priority != p && s.lasts(env, q) && (q.writes || write) {
			return true
		}
	}
	return false
}

// reserve puts a transaction into a key's queue, or has it stay there longer.
func (s *server) reserve(env *protocol.Env[message], key store.Key, write bool, p store.Priority) {
	if p = s.fresh(env, p); p.IsZero() {
		return
	}
	s.keep(env, key, func(q reservation) bool { return s.lasts(env, q) })
	queue := s.reservations[key]
	until := env.Now + reserveFor*s.cfg.RoundTrip
	i, found := slices.BinarySearchFunc(queue, p, func(q reservation, p store.Priority) int {
		switch {
		case q.priority == p:
			return 0
		case q.priority.Before(p):
			return -1
		}
		return 1
	})
	switch {
	case found:
		queue[i].writes, queue[i].until = queue[i].writes || write, until
	case s.reserved >= s.cfg.MaxWaiting || i == maxQueue:
		return
	default:
		if len(queue) == maxQueue { // the youngest makes room
			queue = queue[:maxQueue-1]
			s.reserved--
		}
		s.reservations[key] = slices.Insert(queue, i, reservation{p, write, until})
		s.reserved++
	}
	env.After(reserveFor*s.cfg.RoundTrip, reserveTimer{key})
}

// keep leaves those of a key's reservations for which a function says so.
func (s *server) keep(env *protocol.Env[message], key store.Key, stays func(reservation) bool) {
	queue := s.reservations[key]
	left := slices.DeleteFunc(queue, func(q reservation) bool { return !stays(q) })
	s.reserved -= len(queue) - len(left)
	if len(left) < len(queue) {
		s.changed(key)
	}
	if len(left) == 0 {
		delete(s.reservations, key)
		env.Stop(reserveTimer{key})
		return
	}
	s.reservations[key] = left
}

// reserveRefused reserves what a transaction needs that this server refuses. It does not if a
// transaction that may be blocked is in its way: others that need the rest of what it needs would
// wait with it, and others for these.
func (s *server) reserveRefused(env *protocol.Env[message], t store.Txn) {
	if s.behindBlocked(t) {
		return
	}
	s.reserveAll(env, t.Reads, t.Writes, t.Priority)
}

// behindBlocked tells whether a transaction meets the lock of one that has been asked about, since
// it was not decided for long, or a key that is in question.
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
		s.reserve(env, w.Key, true, p)
	}
	for _, a := range reads {
		s.reserve(env, a.Key, false, p)
	}
}

// unreserveAll gives back what a transaction that is done had reserved.
func (s *server) unreserveAll(env *protocol.Env[message], reads []store.Read, writes []store.Write, p store.Priority) {
	for _, a := range reads {
		s.unreserve(env, a.Key, p)
	}
	for _, w := range writes {
		s.unreserve(env, w.Key, p)
	}
}

func (s *server) unreserve(env *protocol.Env[message], key store.Key, p store.Priority) {
	if len(s.reservations[key]) > 0 {
		s.keep(env, key, func(q reservation) bool { return q.priority != p })
	}
}
