package kv

import (
	"fmt"
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

func (m *machine) grant(q request) Result {
	if q.ttl < MinTTL || q.ttl > MaxTTL {
		return Result{Status: Malformed, Message: fmt.Sprintf("a lease lasts %v to %v, not %v", MinTTL, MaxTTL, q.ttl)}
	}
	if m.leased >= MaxLeases {
		return Result{Status: Malformed, Message: fmt.Sprintf("there are %d leases, which is as many as there can be",
			MaxLeases)}
	}
	m.last++
	l := Lease{ID: LeaseID(m.last), TTL: q.ttl}
	m.leased++
	m.leases.setLease(l)
	m.tell(l, false)
	return Result{Status: OK, Version: uint64(l.ID)}
}

func (m *machine) keepAlive(q request) Result {
	l, ok := m.leases.lease(q.lease)
	if !ok {
		return Result{Status: NotFound}
	}
	l.Renewals++
	m.leases.setLease(l)
	m.tell(l, false)
	return Result{Status: OK}
}

// expire ends a lease for whoever watches it by a clock. Where time is agreed on, that of others
// counts for nothing: a lease that is still there has not run out.
func (m *machine) expire(q request) Result {
	if l, ok := m.leases.lease(q.lease); ok && (l.Renewals != q.version || m.timed) {
		return Result{Status: Conflict, Version: l.Renewals}
	}
	return m.revoke(q)
}

func (m *machine) revoke(q request) Result {
	if _, ok := m.leases.lease(q.lease); !ok {
		return Result{Status: NotFound}
	}
	for _, key := range m.leases.keysOf(q.lease) {
		m.remove(request{key: []byte(key)})
	}
	m.leased--
	m.leases.removeLease(q.lease)
	m.tell(Lease{ID: q.lease}, true)
	return Result{Status: OK}
}

// tie has a key end with a lease, and not with the one that it had before. 0 is none.
func (m *machine) tie(key string, before, after LeaseID) {
	if before == after {
		return
	}
	if before != 0 {
		m.leases.tie(key, before, false)
	}
	if after != 0 {
		m.leases.tie(key, after, true)
	}
}

func (m *machine) showLeases() Result {
	return Result{Status: OK, Version: m.last, Leases: m.leases.listLeases()}
}

// ObserveLeases has f called with each lease that is granted, renewed, restored or ended, when that
// is executed here, by the goroutine that executes it; f must not wait. Leases that are there
// already are told at once. Call it before the store is used.
func (s *Store) ObserveLeases(f func(l Lease, ended bool)) {
	s.observe = f
	s.tellAll()
}

func (m *machine) tell(l Lease, ended bool) {
	if m.observe != nil && !m.loading {
		m.observe(l, ended)
	}
}

func (m *machine) tellAll() {
	for _, l := range m.leases.listLeases() {
		m.tell(l, false)
	}
}
