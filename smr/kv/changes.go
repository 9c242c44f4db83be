package kv

import (
	"slices"
	"sort"
)

// Bounds of what a store remembers of its changes.
const (
	MaxChanges     = 10_000
	MaxChangeBytes = 4 << 20 // of keys and values
)

// changes are the newest changes of a store, so that who watches keys sees each change and not only
// what is there when it looks. They are part of the state: all replicas remember the same.
type changes struct {
	items     []Item // in order of their versions
	bytes     int    // of keys and values
	forgotten uint64 // the version of the newest change that was forgotten
}

func (c *changes) add(i Item) {
	c.items = append(c.items, i)
	c.bytes += len(i.Key) + len(i.Value)
	for len(c.items) > MaxChanges || c.bytes > MaxChangeBytes && len(c.items) > 1 {
		c.forgetFirst()
	}
}

// forgetFirst forgets the oldest change.
func (c *changes) forgetFirst() {
	c.bytes -= len(c.items[0].Key) + len(c.items[0].Value)
	c.forgotten = c.items[0].Version
	c.items[0] = Item{} // the array behind the slice would keep it
	c.items = c.items[1:]
}

// after returns the changes that are newer than a version.
func (c *changes) after(version uint64) []Item {
	return c.items[sort.Search(len(c.items), func(i int) bool { return c.items[i].Version > version }):]
}

// many tells whether a quarter of what is remembered at most is newer than a version.
func (c *changes) many(version uint64) bool {
	later, size := c.after(version), 0
	if len(later)*4 > MaxChanges {
		return true
	}
	for _, i := range later {
		size += len(i.Key) + len(i.Value)
	}
	return size*4 > MaxChangeBytes
}

func (c *changes) clone() changes {
	return changes{items: slices.Clone(c.items), bytes: c.bytes, forgotten: c.forgotten}
}

func (s *Store) changesAfter(q request) Result {
	if q.version < s.changes.forgotten || q.version > s.last {
		return Result{Status: Compacted, Version: s.last}
	}
	out := Result{Status: OK, Version: s.last}
	limit, size := scanLimit(q.limit), 0
	for _, i := range s.changes.after(q.version) {
		if string(i.Key) < string(q.key) || len(q.end) > 0 && string(i.Key) >= string(q.end) {
			continue
		}
		if len(out.Items) >= limit || size > 0 && size+len(i.Key)+len(i.Value) > maxScanBytes {
			out.More, out.Version = true, out.Items[len(out.Items)-1].Version
			break
		}
		size += len(i.Key) + len(i.Value)
		out.Items = append(out.Items, i)
	}
	return out
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

func (s *Store) changed(i Item) {
	s.changes.add(i)
	if s.notice != nil {
		s.notice(i, false)
	}
}

// replaced says that the store has other contents.
func (s *Store) replaced() {
	if s.notice != nil {
		s.notice(Item{Version: s.last}, true)
	}
}

// ChangedAfter tells whether who has seen a version should look at the keys from lo up to hi, as in
// Scan: they may have changed here since, or a quarter of the changes that the store remembers are
// newer, so that it may forget some of them before that client is heard of again. If the store is
// not as far as the version it tells false.
func (s *Store) ChangedAfter(lo, hi []byte, version uint64) bool {
	if version >= s.last {
		return false
	}
	if s.changes.many(version) {
		return true
	}
	r := s.changesAfter(request{key: lo, end: hi, version: version, limit: 1})
	return r.Status == Compacted || len(r.Items) > 0
}
