package kv

import (
	"time"

	"github.com/foresay/foresay/keyspace"
)

// CopyTo writes the records that a Service would have of a store. Leases were renewed when it says.
func (s *Store) CopyTo(space keyspace.Space, renewed map[LeaseID]time.Duration) {
	t := &spaced{Reader: space, to: space}
	s.memory.items.Scan(func(key string, i item) bool {
		t.setItem(key, i)
		return true
	})
	for _, l := range s.memory.listLeases() {
		t.now = renewed[l.ID]
		t.setLease(l)
		for _, key := range s.memory.keysOf(l.ID) {
			t.tie(key, l.ID, true)
		}
	}
	for _, i := range s.memory.changes.items {
		t.addChange(i)
	}
	if s.head != (head{}) {
		space.Put([]byte{recordHead}, headLayout.Encode(s.head))
	}
}
