package kv

import (
	"errors"
	"fmt"
)

// A Load is a part of a backup, which is loaded into an empty store in parts, in order of their
// versions. A key keeps its version, and a lease its ID. Until the last part is loaded the store
// refuses all other changes, and the time of leases does not begin.
type Load struct {
	// After is the store's newest version before, To the one that it has then. A store that has
	// another one answers with a Conflict, so a part that is sent twice is loaded once.
	After, To uint64
	Leases    []Lease // in order of their IDs
	Items     []Item  // in order of their versions
	Last      bool
}

// Check returns an error if the part does not fit an empty store whose version is After.
func (l Load) Check() error {
	if why := New().unfit(&l); why != "" {
		return errors.New(why)
	}
	return nil
}

// Encode returns the command that loads the part. Its result is OK, a Conflict with the version
// that is there, or Malformed if the part does not fit.
func (l Load) Encode() []byte { return request{op: opLoad, load: &l}.encode() }

func (m *machine) loadPart(l *Load) Result {
	if m.last != l.After || m.last != 0 && !m.loading {
		return Result{Status: Conflict, Version: m.last}
	}
	if why := m.unfit(l); why != "" {
		return Result{Status: Malformed, Message: why}
	}
	if why := m.overQuota(l.size(), len(l.Items)); why != "" {
		return Result{Status: QuotaExceeded, Message: why}
	}
	for _, lease := range l.Leases {
		m.leased++
		m.leases.setLease(Lease{ID: lease.ID, TTL: lease.TTL, Renewals: lease.Renewals})
	}
	for _, i := range l.Items {
		key := string(i.Key)
		m.items.setItem(key, item{i.Value, i.Version, i.Lease})
		m.bytes += int64(len(key) + len(i.Value))
		m.keys++
		m.tie(key, 0, i.Lease)
	}
	m.last, m.forgotten = l.To, l.To // a backup has no changes
	if m.loading = !l.Last; l.Last {
		for _, lease := range m.leases.listLeases() {
			m.leases.setLease(lease) // their time begins
		}
	}
	m.tellAll()
	m.replaced()
	return Result{Status: OK, Version: m.last}
}

// unfit returns why a part cannot be loaded, "" if it can. Nothing was changed.
func (m *machine) unfit(l *Load) string {
	before, leases := l.After, map[LeaseID]bool{}
	for _, lease := range l.Leases {
		if uint64(lease.ID) <= before || uint64(lease.ID) > l.To || lease.TTL < MinTTL || lease.TTL > MaxTTL {
			return fmt.Sprintf("lease %d is out of order or out of range", lease.ID)
		}
		before, leases[lease.ID] = uint64(lease.ID), true
	}
	if m.leased+len(leases) > MaxLeases {
		return fmt.Sprintf("there would be more than %d leases", MaxLeases)
	}
	before = l.After
	keys := map[string]bool{}
	for _, i := range l.Items {
		_, there := m.items.item(i.Key)
		_, leased := m.leases.lease(i.Lease)
		switch {
		case i.Version <= before || i.Version > l.To || i.Deleted:
			return fmt.Sprintf("the key %q is out of order, or its version %d out of range", i.Key, i.Version)
		case there || keys[string(i.Key)]:
			return fmt.Sprintf("the key %q is there already", i.Key)
		case i.Lease != 0 && !leased && !leases[i.Lease]:
			return fmt.Sprintf("the key %q ends with lease %d, which is not there", i.Key, i.Lease)
		}
		before, keys[string(i.Key)] = i.Version, true
	}
	return ""
}

// size returns how many bytes the keys and values have.
func (l *Load) size() int {
	n := 0
	for _, i := range l.Items {
		n += len(i.Key) + len(i.Value)
	}
	return n
}
