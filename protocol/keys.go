package protocol

import (
	"bytes"
	"iter"
	"slices"
)

// Get returns the value of a key, with what this call has written. The value must not be changed
// and is not kept beyond the call.
func (e *Env[M]) Get(key []byte) ([]byte, bool) {
	if w, ok := e.wrote.get(key); ok {
		return w.value, !w.deleted
	}
	return e.keys.Get(key)
}

// Scan goes through the keys from lo up to, but not including, hi, in their order, with what this
// call wrote before Scan was called; hi of nil is no end. What it yields must not be changed and is
// not kept beyond the call.
func (e *Env[M]) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	below := e.keys.Scan(lo, hi)
	above := e.wrote.between(lo, hi)
	if len(above) == 0 {
		return below
	}
	return func(yield func([]byte, []byte) bool) {
		rest := above
		for k, v := range below {
			for len(rest) > 0 && bytes.Compare(rest[0].key, k) < 0 {
				w := rest[0]
				rest = rest[1:]
				if !w.deleted && !yield(w.key, w.value) {
					return
				}
			}
			if len(rest) > 0 && bytes.Equal(rest[0].key, k) {
				continue // written anew: the next turn or the end yields it
			}
			if !yield(k, v) {
				return
			}
		}
		for _, w := range rest {
			if !w.deleted && !yield(w.key, w.value) {
				return
			}
		}
	}
}

// Put writes a key. The env keeps both slices until the write is durable: they must not be changed
// any more.
func (e *Env[M]) Put(key, value []byte) {
	e.Out = append(e.Out, Effect[M]{Kind: KindPut, Key: key, Value: value})
	e.wrote.add(write{key: key, value: value})
}

// Delete removes a key, if it is there. The env keeps the slice until that is durable: it must not
// be changed any more.
func (e *Env[M]) Delete(key []byte) {
	e.Out = append(e.Out, Effect[M]{Kind: KindDelete, Key: key})
	e.wrote.add(write{key: key, deleted: true})
}

type write struct {
	key, value []byte
	deleted    bool
}

// overlay is what a call has written so far.
type overlay struct {
	writes []write
	newest map[string]int // of a key, in writes
}

// maxIdle is how large an overlay may be for the next call to take over its memory, which has to be
// cleared then.
const maxIdle = 1024

func (o *overlay) reset() {
	switch {
	case len(o.writes) > maxIdle:
		*o = overlay{}
	case len(o.writes) > 0:
		clear(o.writes)
		o.writes = o.writes[:0]
		clear(o.newest)
	}
}

func (o *overlay) add(w write) {
	if o.newest == nil {
		o.newest = map[string]int{}
	}
	o.newest[string(w.key)] = len(o.writes)
	o.writes = append(o.writes, w)
}

func (o *overlay) get(key []byte) (write, bool) {
	i, ok := o.newest[string(key)]
	if !ok {
		return write{}, false
	}
	return o.writes[i], true
}

// between returns the newest writes of the keys in a range, in the order of the keys.
func (o *overlay) between(lo, hi []byte) []write {
	var out []write
	for i, w := range o.writes {
		if bytes.Compare(w.key, lo) >= 0 && (hi == nil || bytes.Compare(w.key, hi) < 0) && o.newest[string(w.key)] == i {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b write) int { return bytes.Compare(a.key, b.key) })
	return out
}

// noKeys is the key space of a node that a runner gave none.
type noKeys struct{}

func (noKeys) Get([]byte) ([]byte, bool) { return nil, false }

func (noKeys) Scan(_, _ []byte) iter.Seq2[[]byte, []byte] { return func(func([]byte, []byte) bool) {} }
