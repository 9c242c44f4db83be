package view

import (
	"bytes"
	"iter"

	"github.com/tidwall/btree"

	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// cache is what a client knows of the server's records: those in certain ranges of keys, and that
// there are no others there. It is the base of the client's layers, and the file system as the
// client believes it to be on the server.
type cache struct {
	records btree.Map[string, []byte]
	// known has the ranges, by where they begin, with where they end. Invariant: they do not touch.
	known btree.Map[string, string]
	// missed is what was asked for and is not known, since it was last emptied.
	missed []specfs.Want
	// tick counts what others have changed, or may have.
	tick uint64
	// moved has what was changed in this way, while there are epochs that may have used it.
	moved []movedRange
}

// movedRange is a range of keys whose records others have changed.
type movedRange struct {
	specfs.Want
	tick uint64
}

// maxMoved bounds cache.moved. What is more counts as all keys.
const maxMoved = 1024

// point returns the range of one key.
func point(key []byte) specfs.Want {
	return specfs.Want{Lo: bytes.Clone(key), Hi: append(bytes.Clone(key), 0)}
}

// Get is part of keyspace.Reader.
func (c *cache) Get(key []byte) ([]byte, bool) {
	if c.endOf(string(key)) == "" {
		c.missed = append(c.missed, point(key))
		return nil, false
	}
	return c.records.Get(string(key))
}

// Scan is part of keyspace.Reader.
func (c *cache) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	if _, ok := tree.Object(lo); ok {
		c.missed = append(c.missed, c.unknown(specfs.Want{Lo: lo, Hi: hi})...)
	}
	return func(yield func([]byte, []byte) bool) {
		c.records.Copy().Ascend(string(lo), func(k string, v []byte) bool {
			return (hi == nil || k < string(hi)) && yield([]byte(k), v)
		})
	}
}

// endOf returns where the known range ends that a key is in, "" if it is in none.
func (c *cache) endOf(key string) (end string) {
	c.known.Descend(key, func(_, hi string) bool {
		if hi > key {
			end = hi
		}
		return false
	})
	return end
}

// unknown returns what is not known of a range.
func (c *cache) unknown(w specfs.Want) (wants []specfs.Want) {
	at, hi := string(w.Lo), string(w.Hi)
	for at < hi {
		if end := c.endOf(at); end != "" {
			at = end
			continue
		}
		next := hi
		c.known.Ascend(at, func(lo, _ string) bool {
			next = min(next, lo)
			return false
		})
		wants = append(wants, specfs.Want{Lo: []byte(at), Hi: []byte(next)})
		at = next
	}
	return wants
}

// cover notes that a range is known. What is in it is what there is in records.
func (c *cache) cover(w specfs.Want) {
	lo, hi := string(w.Lo), string(w.Hi)
	c.known.Descend(lo, func(l, h string) bool {
		if h >= lo {
			lo, hi = l, max(h, hi)
		}
		return false
	})
	for {
		next, end, ok := "", "", false
		c.known.Ascend(lo, func(l, h string) bool {
			next, end, ok = l, h, l <= hi
			return false
		})
		if !ok {
			break
		}
		c.known.Delete(next)
		hi = max(hi, end)
	}
	c.known.Set(lo, hi)
}

// uncover notes that a range is not known, and forgets what is in it.
func (c *cache) uncover(w specfs.Want) {
	lo, hi := string(w.Lo), string(w.Hi)
	var gone []string
	c.records.Ascend(lo, func(k string, _ []byte) bool {
		if k < hi {
			gone = append(gone, k)
		}
		return k < hi
	})
	for _, k := range gone {
		c.records.Delete(k)
	}
	if end := c.endOf(lo); end != "" {
		begin := lo
		c.known.Descend(lo, func(l, _ string) bool { begin = l; return false })
		c.known.Delete(begin)
		if begin < lo {
			c.known.Set(begin, lo)
		}
		if end > hi {
			c.known.Set(hi, end)
			return
		}
	}
	for {
		next, end, ok := "", "", false
		c.known.Ascend(lo, func(l, h string) bool {
			next, end, ok = l, h, l < hi
			return false
		})
		if !ok {
			return
		}
		c.known.Delete(next)
		if end > hi {
			c.known.Set(hi, end)
		}
	}
}

// move notes that others have changed a range.
func (c *cache) move(w specfs.Want) {
	c.tick++
	if len(c.moved) >= maxMoved {
		c.moved = []movedRange{{specfs.Want{Hi: []byte{0xff}}, c.tick}}
		return
	}
	c.moved = append(c.moved, movedRange{w, c.tick})
}

// since reports whether others may have changed a record after a tick.
func (c *cache) since(tick uint64, key string) bool {
	for _, m := range c.moved {
		if m.tick > tick && string(m.Lo) <= key && key < string(m.Hi) {
			return true
		}
	}
	return false
}

// forget notes that a part has changed, and nothing else is known of it.
func (c *cache) forget(p specfs.Part) {
	for _, w := range tree.Records(p) {
		c.uncover(w)
		c.move(w)
	}
}

// learn takes what the server says.
func (c *cache) learn(f specfs.Fact) {
	w := specfs.Want{Lo: f.Lo, Hi: f.Hi}
	if len(c.unknown(w)) > 0 || !c.same(f) {
		c.uncover(w)
		c.move(w)
		for _, r := range f.Records {
			c.records.Set(string(r.Key), r.Value)
		}
		c.cover(w)
	}
}

// same reports whether a fact is known.
func (c *cache) same(f specfs.Fact) bool {
	rest, same := f.Records, true
	c.records.Ascend(string(f.Lo), func(k string, v []byte) bool {
		if k >= string(f.Hi) {
			return false
		}
		same = len(rest) > 0 && string(rest[0].Key) == k && bytes.Equal(rest[0].Value, v)
		rest = rest[min(1, len(rest)):]
		return same
	})
	return same && len(rest) == 0
}

// clear forgets everything.
func (c *cache) clear() {
	c.records.Clear()
	c.known.Clear()
	c.move(specfs.Want{Hi: []byte{0xff}})
}

// settling takes what an epoch has changed that is on the server now. Records that others may have
// changed since the epoch began are forgotten instead: the epoch did not see that.
type settling struct {
	*cache
	since   uint64
	version func(specfs.Version) specfs.Version
}

// Put is part of keyspace.Space.
func (s settling) Put(key, value []byte) {
	if s.cache.since(s.since, string(key)) {
		s.uncover(point(key))
		return
	}
	s.records.Set(string(key), tree.Restamp(key, value, s.version))
	s.cover(point(key))
}

// Delete is part of keyspace.Space.
func (s settling) Delete(key []byte) {
	if s.cache.since(s.since, string(key)) {
		s.uncover(point(key))
		return
	}
	s.records.Delete(string(key))
	s.cover(point(key))
}
