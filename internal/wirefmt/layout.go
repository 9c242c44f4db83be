package wirefmt

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// A Layout is how values of type T look as bytes where they stand alone: under a key of a disk, in
// a command of a state machine, in front of a snapshot. There is nothing around their fields.
type Layout[T any] struct {
	what   string
	fields func(*Coder, *T)
	pool   sync.Pool
}

// NewLayout declares the fields of values of type T; what names them in errors, with the package:
// "kv: command".
func NewLayout[T any](what string, fields func(*Coder, *T)) *Layout[T] {
	return &Layout[T]{what: what, fields: fields, pool: sync.Pool{New: func() any { return new(coding[T]) }}}
}

// Encode returns a value as bytes.
func (l *Layout[T]) Encode(v T) []byte { return l.Append(nil, v) }

// Append adds a value to buf.
func (l *Layout[T]) Append(buf []byte, v T) []byte {
	x := l.pool.Get().(*coding[T])
	x.c.w, x.w.Buf, x.msg = &x.w, buf, v
	l.fields(&x.c, &x.msg)
	buf = x.w.Buf
	*x = coding[T]{}
	l.pool.Put(x)
	return buf
}

// Decode returns the value whose bytes are all of b.
func (l *Layout[T]) Decode(b []byte) (T, error) { return l.all(b, false) }

// DecodeShared is Decode of bytes that nobody changes any more: the value may hold a part of them.
func (l *Layout[T]) DecodeShared(b []byte) (T, error) { return l.all(b, true) }

func (l *Layout[T]) all(b []byte, share bool) (T, error) {
	v, rest, err := l.first(b, share)
	if err == nil && len(rest) > 0 {
		var none T
		return none, fmt.Errorf("%s: %d bytes too many behind %d", l.what, len(rest), len(b)-len(rest))
	}
	return v, err
}

// DecodeFirst returns the value whose bytes b begins with, and what is behind these.
func (l *Layout[T]) DecodeFirst(b []byte) (v T, rest []byte, err error) { return l.first(b, false) }

func (l *Layout[T]) first(b []byte, share bool) (v T, rest []byte, err error) {
	x := l.pool.Get().(*coding[T])
	x.c.r, x.r = &x.r, Reader{rest: b, size: len(b), shares: share}
	l.fields(&x.c, &x.msg)
	if err = x.r.err; err == nil {
		v, rest = x.msg, x.r.rest
	} else {
		err = fmt.Errorf("%s: %w", l.what, err)
	}
	*x = coding[T]{}
	l.pool.Put(x)
	return v, rest, err
}

// Length returns how many of the bytes are a value that they begin with; ok is false if they do not
// begin with one.
func (l *Layout[T]) Length(begin []byte) (n int, ok bool) {
	_, rest, err := l.DecodeFirst(begin)
	return len(begin) - len(rest), err == nil
}

// Version takes the number of a layout's version, a byte. What is read must have it.
func Version(c *Coder, version byte) {
	if c.r == nil {
		c.w.Buf = append(c.w.Buf, version)
		return
	}
	if v := c.r.Byte(); v != version {
		c.r.Failf("version %d, this program knows version %d", v, version)
	}
}

// Map takes a map, as a list in the order of its keys whose elements take at least sizeBytes each.
// What is read is nil if it is empty.
func Map[K cmp.Ordered, V any](c *Coder, m *map[K]V, sizeBytes int, fields func(*Coder, *K, *V)) {
	if c.r == nil {
		c.w.List(len(*m))
		for _, key := range slices.Sorted(maps.Keys(*m)) {
			value := (*m)[key]
			fields(c, &key, &value)
		}
		return
	}
	n := c.r.List(sizeBytes)
	if *m = nil; n == 0 {
		return
	}
	*m = make(map[K]V, min(n, firstElements))
	var last K
	for i := range n {
		var key K
		var value V
		if fields(c, &key, &value); c.r.err != nil {
			return
		}
		if i > 0 && key <= last {
			c.r.Failf("the key %v is out of order", key)
			return
		}
		(*m)[key], last = value, key
	}
}
