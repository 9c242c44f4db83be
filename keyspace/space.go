package keyspace

import (
	"iter"
	"slices"
)

// A Reader reads an ordered space of keys. What it returns must not be changed, and is not kept
// beyond the call of the node in which it was read.
type Reader interface {
	Get(key []byte) (value []byte, ok bool)
	// Scan goes through the keys from lo up to, but not including, hi, in their order; hi of nil is
	// no end. Keys that are written meanwhile, ahead of where the scan is, are seen as they are
	// when it gets there.
	Scan(lo, hi []byte) iter.Seq2[[]byte, []byte]
}

// A Space is a Reader that can be written. It keeps the slices that it is given: they must not be
// changed any more.
type Space interface {
	Reader
	Put(key, value []byte)
	// Delete removes a key, if it is there.
	Delete(key []byte)
}

// A Disk is the key space of a node in one of its calls, where a State lives: a *protocol.Env. A
// scan of it need not see what is written meanwhile.
type Disk = Space

// Within returns the part of a space whose keys begin with a prefix, as a space of its own in which
// the keys have no prefix.
func Within(s Space, prefix string) Space { return within{s, prefix} }

type within struct {
	space  Space
	prefix string
}

func (w within) key(key []byte) []byte { return prefixed(w.prefix, key) }

func (w within) Get(key []byte) ([]byte, bool) { return w.space.Get(w.key(key)) }

func (w within) Put(key, value []byte) { w.space.Put(w.key(key), value) }

func (w within) Delete(key []byte) { w.space.Delete(w.key(key)) }

func (w within) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return scanWithin(w.space, w.prefix, lo, hi)
}

// scanWithin goes through the keys that begin with a prefix, without it.
func scanWithin(from Reader, prefix string, lo, hi []byte) iter.Seq2[[]byte, []byte] {
	end := after(prefix)
	if hi != nil {
		end = prefixed(prefix, hi)
	}
	below := from.Scan(prefixed(prefix, lo), end)
	return func(yield func([]byte, []byte) bool) {
		for k, v := range below {
			if !yield(k[len(prefix):len(k):len(k)], v) {
				return
			}
		}
	}
}

func prefixed(prefix string, key []byte) []byte {
	return append(append(make([]byte, 0, len(prefix)+len(key)), prefix...), key...)
}

// after returns the first key that is after all that begin with a prefix, nil if there is none.
func after(prefix string) []byte {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]++; b[i] != 0 {
			return slices.Clip(b[:i+1])
		}
	}
	return nil
}
