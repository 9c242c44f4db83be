package wirefmt

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A Reader takes fields from bytes. What they say has no other bytes: a Reader accepts a number in
// its shortest form only. After its first error it returns zero values.
type Reader struct {
	rest   []byte
	size   int
	shares bool // a result may be a part of the bytes
	err    error
}

// NewReader returns a Reader of b, which it does not change and of which its results hold no part.
func NewReader(b []byte) *Reader { return &Reader{rest: b, size: len(b)} }

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Close returns the first error; bytes that nobody read are one.
func (r *Reader) Close() error {
	if r.err == nil && len(r.rest) > 0 {
		r.Failf("%d bytes too many", len(r.rest))
	}
	return r.err
}

// Failf notes an error of the caller's, unless there was one before.
func (r *Reader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d of %d: %w", r.size-len(r.rest), r.size, fmt.Errorf(format, args...))
		r.rest = nil
	}
}

// Uint reads an unsigned number.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.Failf("a number is cut off or too large")
		return 0
	}
	if n > 1 && r.rest[n-1] == 0 {
		r.Failf("a number has more bytes than it needs")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Uint32 reads an unsigned number of at most 32 bits.
func (r *Reader) Uint32() uint32 {
	v := r.Uint()
	if v > math.MaxUint32 {
		r.Failf("%d is too large for 32 bits", v)
		return 0
	}
	return uint32(v)
}

// Int reads a signed number.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.Failf("a number is cut off or too large")
		return 0
	}
	if n > 1 && r.rest[n-1] == 0 {
		r.Failf("a number has more bytes than it needs")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Bool reads a truth value.
func (r *Reader) Bool() bool {
	switch b := r.Byte(); b {
	case 0, 1:
		return b == 1
	default:
		r.Failf("%d is no truth value", b)
		return false
	}
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Failf("cut off")
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

// Bytes reads a byte string, into memory of its own unless the Reader shares; nil if it is empty.
func (r *Reader) Bytes() []byte {
	b := r.take()
	if r.shares && len(b) > r.size/2 {
		return b[:len(b):len(b)]
	}
	return slices.Clone(b)
}

// View reads a byte string without copying it: it is a part of the Reader's bytes, and must not be
// changed.
func (r *Reader) View() []byte { return r.take() }

// String reads a string.
func (r *Reader) String() string { return string(r.take()) }

// Rest returns all that is not read yet, which is then read. It is a part of the Reader's bytes,
// and must not be changed.
func (r *Reader) Rest() []byte {
	b := r.rest
	r.rest = nil
	return b
}

func (r *Reader) take() []byte {
	n := r.Uint()
	if n > uint64(len(r.rest)) {
		r.Failf("%d bytes announced, %d left", n, len(r.rest))
		return nil
	}
	if n == 0 {
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// List reads the length of a list whose elements take at least sizeBytes each, so that a list that
// cannot be there is an error before memory is made for it.
func (r *Reader) List(sizeBytes int) int {
	n := r.Uint()
	if n > uint64(len(r.rest)/max(sizeBytes, 1)) {
		r.Failf("a list of %d announced, %d bytes left", n, len(r.rest))
		return 0
	}
	return int(n)
}
