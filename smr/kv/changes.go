package kv

import (
	"bytes"
	"maps"
	"slices"
	"sort"
)

// Bounds of what a store remembers of its changes.
const (
	MaxChanges     = 10_000
	MaxChangeBytes = 4 << 20 // of keys and values
)

// remember adds to the newest changes of a store, so that who watches keys sees each change and not
// only what is there when it looks. They are part of the state: all replicas remember the same.
func (m *machine) remember(i *Item) {
	m.newest.addChange(*i)
	m.changed++
	m.changedBytes += i.sizeBytes()
	for m.changed > MaxChanges || m.changedBytes > MaxChangeBytes && m.changed > 1 {
		m.forgetOldest()
	}
}

func (m *machine) forgetOldest() {
	first := m.newest.removeOldest(m.forgotten)
	m.changed--
	m.changedBytes -= first.sizeBytes()
	m.forgotten = first.Version
}

// changes are the newest changes of a store in memory, a changeTable.
type changes struct {
	items []Item            // in order of their versions
	gone  map[string]uint64 // of each key that one of them deleted, the version of the newest that did
	// The last recent ones are a quarter of what can be remembered at most, and one more would be
	// above that: the change of version early.
	recent, recentBytes int
	early               uint64
}

func (c *changes) addChange(i Item) {
	if i.Deleted {
		if c.gone == nil {
			c.gone = map[string]uint64{}
		}
		c.gone[string(i.Key)] = i.Version
	}
	c.items = append(c.items, i)
	c.recent++
	c.recentBytes += i.sizeBytes()
	for c.recent*4 > MaxChanges || c.recentBytes*4 > MaxChangeBytes {
		c.growEarly()
	}
}

// growEarly takes the oldest of the recent changes for an early one.
func (c *changes) growEarly() {
	i := &c.items[len(c.items)-c.recent]
	c.early = i.Version
	c.recent--
	c.recentBytes -= i.sizeBytes()
}

func (c *changes) removeOldest(uint64) Item {
	if c.recent == len(c.items) {
		c.growEarly()
	}
	first := c.items[0]
	if first.Deleted && c.gone[string(first.Key)] == first.Version {
		delete(c.gone, string(first.Key))
	}
	c.items[0] = Item{} // the array behind the slice would keep it
	c.items = c.items[1:]
	return first
}

func (c *changes) changesAfter(version uint64, to *listing) {
	items := c.after(version)
	for i := range items {
		if !to.change(&items[i]) {
			return
		}
	}
}

// after returns the changes that are newer than a version.
func (c *changes) after(version uint64) []Item {
	return c.items[sort.Search(len(c.items), func(i int) bool { return c.items[i].Version > version }):]
}

func (c *changes) clone() changes {
	out := *c
	out.items, out.gone = slices.Clone(c.items), maps.Clone(c.gone)
	return out
}

func (m *machine) showChanges(q request) Result {
	if q.version < m.forgotten || q.version > m.last {
		return Result{Status: Compacted, Version: m.last}
	}
	l := m.listing(q)
	m.newest.changesAfter(q.version, l)
	return l.out
}

// scanLimit returns how many keys a query gets that asked for so many.
func scanLimit(asked uint64) int {
	if asked == 0 || asked > maxScanItems {
		return maxScanItems
	}
	return int(asked)
}

// ObserveChanges has f called with each change of a key when it is executed here, by the goroutine
// that executes it; f must not wait. With all, other contents have taken the place of the store's:
// any key may have changed. Call it before the store is used.
func (s *Store) ObserveChanges(f func(i Item, all bool)) { s.notice = f }

func (m *machine) change(i *Item) {
	m.remember(i)
	if m.notice != nil {
		m.notice(*i, false)
	}
}

// replaced says that the store has other contents.
func (m *machine) replaced() {
	if m.notice != nil {
		m.notice(Item{Version: m.last}, true)
	}
}

// ChangedAfter reports whether who has seen a version should look at the keys from lo up to hi, as
// in Scan: they may have changed here since, or a quarter of the changes that the store remembers
// are newer, so that it may forget some of them before that client is heard of again. If the store
// is not as far as the version it tells false. It looks one key up, and goes through the changes
// since that version for more.
func (s *Store) ChangedAfter(lo, hi []byte, version uint64) bool {
	if version >= s.last {
		return false
	}
	changes := &s.memory.changes
	if version < max(changes.early, s.forgotten) {
		return true
	}
	if len(hi) == len(lo)+1 && hi[len(lo)] == 0 && bytes.HasPrefix(hi, lo) {
		if i, ok := s.memory.item(lo); ok {
			return i.version > version
		}
		return changes.gone[string(lo)] > version
	}
	r := s.showChanges(request{key: lo, end: hi, version: version, limit: 1})
	return r.Status == Compacted || len(r.Items) > 0
}
