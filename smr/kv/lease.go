package kv

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A LeaseID names a lease. 0 is none.
type LeaseID uint64

// A Lease is something that keys can be tied to. It ends, and its keys are removed, when nobody has
// renewed it for its TTL.
//
// A state machine has no clock, so the store itself ends no lease. It counts renewals, and whoever
// runs the store watches them by a clock: when a lease has had the same number of renewals for its
// TTL, it proposes [Expire] with that number. The command does nothing if the lease was renewed
// meanwhile, so several may watch, and a late one does no harm. A lease can end late, never early:
// a renewal counts from its execution, which is after it was sent.
type Lease struct {
	ID       LeaseID
	TTL      time.Duration
	Renewals uint64
	Keys     int // how many keys end with it
}

// Bounds of leases.
const (
	// MinTTL and MaxTTL bound how long a lease lasts that is not renewed.
	MinTTL = time.Second
	MaxTTL = 24 * time.Hour
	// MaxLeases bounds how many leases a store has.
	MaxLeases = 10_000
)

// Grant returns the command that makes a lease, which ends when it was not renewed for ttl. The
// result's Version is its ID.
func Grant(ttl time.Duration) []byte { return request{op: opGrant, ttl: ttl}.encode() }

// KeepAlive returns the command that renews a lease. Its result is NotFound if the lease has ended.
func KeepAlive(lease LeaseID) []byte { return request{op: opKeepAlive, lease: lease}.encode() }

// Revoke returns the command that ends a lease and removes its keys. Its result is NotFound if the
// lease has ended.
func Revoke(lease LeaseID) []byte { return request{op: opRevoke, lease: lease}.encode() }

// Expire returns the command that ends a lease if it was renewed that often, and not since.
// Otherwise its result is Conflict.
func Expire(lease LeaseID, renewals uint64) []byte {
	return request{op: opExpire, lease: lease, version: renewals}.encode()
}

// Leases returns the query for all leases.
func Leases() []byte { return request{op: opLeases}.encode() }

// tied is a lease as the store has it.
type tied struct {
	ttl      time.Duration
	renewals uint64
	keys     map[string]bool
}

func (t *tied) lease(id LeaseID) Lease {
	return Lease{ID: id, TTL: t.ttl, Renewals: t.renewals, Keys: len(t.keys)}
}

func (s *Store) grant(q request) Result {
	if q.ttl < MinTTL || q.ttl > MaxTTL {
		return Result{Status: Malformed, Message: fmt.Sprintf("a lease lasts %v to %v, not %v", MinTTL, MaxTTL, q.ttl)}
	}
	if len(s.leases) >= MaxLeases {
		return Result{Status: Malformed, Message: fmt.Sprintf("there are %d leases, which is as many as there can be",
			MaxLeases)}
	}
	s.last++
	id := LeaseID(s.last)
	s.leases[id] = &tied{ttl: q.ttl, keys: map[string]bool{}}
	s.tell(s.leases[id].lease(id), false)
	return Result{Status: OK, Version: uint64(id)}
}

func (s *Store) keepAlive(q request) Result {
	l, ok := s.leases[q.lease]
	if !ok {
		return Result{Status: NotFound}
	}
	l.renewals++
	s.tell(l.lease(q.lease), false)
	return Result{Status: OK}
}

func (s *Store) expire(q request) Result {
	if l, ok := s.leases[q.lease]; ok && l.renewals != q.version {
		return Result{Status: Conflict, Version: l.renewals}
	}
	return s.revoke(q)
}

func (s *Store) revoke(q request) Result {
	l, ok := s.leases[q.lease]
	if !ok {
		return Result{Status: NotFound}
	}
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		s.delete(request{key: []byte(key)})
	}
	delete(s.leases, q.lease)
	s.tell(Lease{ID: q.lease}, true)
	return Result{Status: OK}
}

// tie has a key end with a lease, and not with the one that it had before. 0 is none.
func (s *Store) tie(key string, before, after LeaseID) {
	if l, ok := s.leases[before]; ok {
		delete(l.keys, key)
	}
	if l, ok := s.leases[after]; ok {
		l.keys[key] = true
	}
}

func (s *Store) listLeases() Result {
	out := Result{Status: OK, Version: s.last}
	for _, id := range slices.Sorted(maps.Keys(s.leases)) {
		out.Leases = append(out.Leases, s.leases[id].lease(id))
	}
	return out
}

// ObserveLeases has f called with each lease that is granted, renewed, restored or ended, when that
// is executed here, by the goroutine that executes it; f must not wait. Leases that are there
// already are told at once. Call it before the store is used.
func (s *Store) ObserveLeases(f func(l Lease, ended bool)) {
	s.observe = f
	s.tellAll()
}

func (s *Store) tell(l Lease, ended bool) {
	if s.observe != nil && !s.loading {
		s.observe(l, ended)
	}
}

func (s *Store) tellAll() {
	for _, l := range s.listLeases().Leases {
		s.tell(l, false)
	}
}
