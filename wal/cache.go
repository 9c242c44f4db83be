package wal

import "slices"

// readCache keeps what was read of one node's key space, and what was written to the same keys
// since, up to a number of bytes: a read of the database takes microseconds, even of a block that
// is in memory. It has two generations: what is read goes to the young one, and when that has half
// of the bytes it becomes the old one, which is dropped. It is not for concurrent use.
type readCache struct {
	young, old map[string]write
	youngBytes int
}

// cachedOverheadBytes is what an entry takes besides its bytes, roughly.
const cachedOverheadBytes = 128

func (c *readCache) get(key []byte, limit int) (write, bool) {
	if w, ok := c.young[string(key)]; ok {
		return w, true
	}
	w, ok := c.old[string(key)]
	if ok {
		c.put(w, limit)
	}
	return w, ok
}

// put adds an entry, whose slices are the cache's from then on.
func (c *readCache) put(w write, limit int) {
	size := len(w.key) + len(w.value) + cachedOverheadBytes
	delete(c.old, string(w.key))
	if size > limit/8 {
		delete(c.young, string(w.key))
		return
	}
	if c.young == nil {
		c.young = map[string]write{}
	}
	c.young[string(w.key)] = w
	if c.youngBytes += size; c.youngBytes > limit/2 {
		c.young, c.old, c.youngBytes = nil, c.young, 0
	}
}

// wrote follows a write.
func (c *readCache) wrote(o op, limit int) {
	if _, ok := c.young[string(o.key)]; !ok {
		if _, ok := c.old[string(o.key)]; !ok {
			return
		}
	}
	// Copies, as what is written may be a part of something larger.
	c.put(write{key: slices.Clone(o.key), value: slices.Clone(o.value), deleted: o.kind == opDelete}, limit)
}

// readCacheLimit returns how many bytes each node's cache may have.
func (s *Store) readCacheLimit() int {
	return s.opts.ReadCacheBytes / max(1, int(s.nodeCount.Load()))
}
