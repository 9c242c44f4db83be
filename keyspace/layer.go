package keyspace

import (
	"iter"

	"github.com/tidwall/btree"
)

// A Layer is changes that are not committed, and what is seen through them: those of the layer,
// those of the layers below it, and the committed base. It is a [Space]. Only the uppermost layer
// is written; every layer can be read. A layer that was merged or dropped is not used any more:
// that, and a write to another layer than the uppermost, is a fault of the node and panics.
type Layer struct {
	above *overlay
	base  Reader
	seq   uint64 // higher than those of the layers below
	wrote []*versions
	gone  bool
}

// overlay has what all layers have changed. However many layers there are, a key is looked up once.
type overlay struct {
	keys   btree.Map[string, *versions]
	layers []*Layer // from the lowest
	last   uint64   // seq of the newest layer
	writes uint64   // how often keys came or went, by which a scan notices it
}

// versions are what layers have made of a key, from the lowest to the highest, at most one each.
type versions struct {
	key string
	all []version
}

type version struct {
	seq     uint64
	value   []byte
	deleted bool
}

// seen returns what is seen through a layer, nil if neither it nor one below has changed the key.
func (vs *versions) seen(seq uint64) *version {
	for i := len(vs.all) - 1; i >= 0; i-- {
		if vs.all[i].seq <= seq {
			return &vs.all[i]
		}
	}
	return nil
}

// Get is part of Space.
func (l *Layer) Get(key []byte) ([]byte, bool) {
	l.mustStand()
	if vs, ok := l.above.keys.Get(string(key)); ok {
		if v := vs.seen(l.seq); v != nil {
			return v.value, !v.deleted
		}
	}
	return l.base.Get(key)
}

// Put is part of Space.
func (l *Layer) Put(key, value []byte) { l.write(key, version{seq: l.seq, value: value}) }

// Delete is part of Space.
func (l *Layer) Delete(key []byte) { l.write(key, version{seq: l.seq, deleted: true}) }

func (l *Layer) mustStand() {
	if l.gone {
		panic("keyspace: a layer that was merged or dropped is used")
	}
}

func (l *Layer) write(key []byte, v version) {
	l.mustStand()
	o := l.above
	if l != o.layers[len(o.layers)-1] {
		panic("keyspace: a layer with others above it is written")
	}
	vs, ok := o.keys.Get(string(key))
	if !ok {
		vs = &versions{key: string(key)}
		o.keys.Set(vs.key, vs)
		o.writes++
	}
	if n := len(vs.all); n > 0 && vs.all[n-1].seq == l.seq {
		vs.all[n-1] = v
		return
	}
	vs.all = append(vs.all, v)
	l.wrote = append(l.wrote, vs)
}

// Layers are layers above a base that belongs to somebody else, who may be without digests or
// checkpoints: the base of a [State] has them.
type Layers struct {
	above overlay
	base  Reader
}

// NewLayers returns no layers above a base. It may change below them, as long as no scan is under
// way.
func NewLayers(base Reader) *Layers { return &Layers{base: base} }

// Push makes a layer above all others.
func (s *Layers) Push() *Layer { return s.above.push(s.base) }

// Len returns how many layers there are.
func (s *Layers) Len() int { return len(s.above.layers) }

// Merge puts what the lowest layer has changed into a space, usually the base. There is one, and it
// is gone then.
func (s *Layers) Merge(into Space) {
	s.above.merge(func(key string, v version) {
		if v.deleted {
			into.Delete([]byte(key))
		} else {
			into.Put([]byte(key), v.value)
		}
	})
}

// Drop undoes a layer and all above it, which are gone then.
func (s *Layers) Drop(l *Layer) { s.above.drop(l) }

// push makes a layer above all others.
func (o *overlay) push(base Reader) *Layer {
	o.last++
	l := &Layer{above: o, base: base, seq: o.last}
	o.layers = append(o.layers, l)
	return l
}

// merge removes the lowest layer and hands what it has changed to commit.
func (o *overlay) merge(commit func(key string, v version)) {
	l := o.layers[0]
	o.layers[0] = nil
	o.layers = o.layers[1:]
	l.gone = true
	for _, vs := range l.wrote {
		v := vs.all[0]
		vs.all[0] = version{} // the array behind the slice would keep its value
		vs.all = vs.all[1:]
		o.forgetEmpty(vs)
		commit(vs.key, v)
	}
}

// drop removes a layer and all above it.
func (o *overlay) drop(l *Layer) {
	l.mustStand()
	for !l.gone {
		top := o.layers[len(o.layers)-1]
		o.layers[len(o.layers)-1] = nil
		o.layers = o.layers[:len(o.layers)-1]
		top.gone = true
		for _, vs := range top.wrote {
			vs.all[len(vs.all)-1] = version{}
			vs.all = vs.all[:len(vs.all)-1]
			o.forgetEmpty(vs)
		}
	}
}

func (o *overlay) forgetEmpty(vs *versions) {
	if len(vs.all) == 0 {
		o.keys.Delete(vs.key)
		o.writes++
	}
}

// Scan is part of Space.
func (l *Layer) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		l.mustStand()
		c := cursor{of: l, last: lo, hi: hi}
		c.seek()
		for k, v := range l.base.Scan(lo, hi) {
			changed, more := c.upTo(k, yield)
			if !more {
				return
			}
			c.last, c.past = k, true
			if !changed && !yield(k, v) {
				return
			}
		}
		c.upTo(nil, yield)
	}
}

// cursor goes through the keys of an overlay, beside a scan of the base.
type cursor struct {
	of     *Layer
	hi     []byte
	keys   btree.MapIter[string, *versions]
	at     *versions // nil: there are no more
	last   []byte    // where the scan is
	past   bool      // and last is behind it
	writes uint64    // of the overlay, when keys was made
}

// seek goes to the first key that is ahead of the scan.
func (c *cursor) seek() {
	c.keys, c.writes, c.at = c.of.above.keys.Iter(), c.of.above.writes, nil
	if !c.keys.Seek(string(c.last)) {
		return
	}
	c.at = c.keys.Value()
	if c.past && c.at.key == string(c.last) {
		c.next()
	}
}

func (c *cursor) next() {
	c.at = nil
	if c.keys.Next() {
		c.at = c.keys.Value()
	}
}

// upTo yields what the layers have put up to and with a key of the base, nil for the end. It tells
// whether they have changed that key, and whether the scan goes on.
func (c *cursor) upTo(base []byte, yield func([]byte, []byte) bool) (changed, more bool) {
	for !changed {
		if c.writes != c.of.above.writes {
			c.seek()
		}
		vs := c.at
		if vs == nil || c.hi != nil && vs.key >= string(c.hi) || base != nil && vs.key > string(base) {
			return false, true
		}
		c.next()
		v := vs.seen(c.of.seq)
		if v == nil {
			continue
		}
		changed = base != nil && vs.key == string(base)
		c.last, c.past = []byte(vs.key), true
		if !v.deleted && !yield(c.last, v.value) {
			return changed, false
		}
	}
	return true, true
}
