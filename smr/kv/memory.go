package kv

import (
	"maps"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

// memory has the records of a Store.
type memory struct {
	items   btree.Map[string, item]
	leases  map[LeaseID]*tied
	changes changes
	since   *since // what was changed since a moment; nil: nobody wants to know
}

// tied is a lease as it is in memory.
type tied struct {
	ttl      time.Duration
	renewals uint64
	keys     map[string]bool
}

func newTied(l Lease) *tied { return &tied{ttl: l.TTL, renewals: l.Renewals, keys: map[string]bool{}} }

func (t *tied) lease(id LeaseID) Lease {
	return Lease{ID: id, TTL: t.ttl, Renewals: t.renewals, Keys: len(t.keys)}
}

func (m *memory) item(key []byte) (item, bool) { return m.items.Get(string(key)) }

func (m *memory) setItem(key string, i item) {
	m.items.Set(key, i)
	m.since.note(key)
}

func (m *memory) removeItem(key string) (item, bool) {
	before, ok := m.items.Delete(key)
	if ok {
		m.since.note(key)
	}
	return before, ok
}

func (m *memory) scanItems(from []byte, to *listing) {
	m.items.Ascend(string(from), to.item)
}

func (m *memory) lease(id LeaseID) (Lease, bool) {
	t, ok := m.leases[id]
	if !ok {
		return Lease{}, false
	}
	return t.lease(id), true
}

func (m *memory) setLease(l Lease) {
	if t, ok := m.leases[l.ID]; ok {
		t.ttl, t.renewals = l.TTL, l.Renewals
		return
	}
	m.leases[l.ID] = newTied(l)
}

func (m *memory) removeLease(id LeaseID) { delete(m.leases, id) }

func (m *memory) tie(key string, id LeaseID, tied bool) {
	if tied {
		m.leases[id].keys[key] = true
	} else {
		delete(m.leases[id].keys, key)
	}
}

func (m *memory) listLeases() (out []Lease) {
	for _, id := range slices.Sorted(maps.Keys(m.leases)) {
		out = append(out, m.leases[id].lease(id))
	}
	return out
}

func (m *memory) keysOf(id LeaseID) []string { return slices.Sorted(maps.Keys(m.leases[id].keys)) }
