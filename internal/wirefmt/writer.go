package wirefmt

import "encoding/binary"

// A Writer appends fields to Buf. Its zero value is ready.
type Writer struct{ Buf []byte }

// Uint adds an unsigned number.
func (w *Writer) Uint(v uint64) { w.Buf = binary.AppendUvarint(w.Buf, v) }

// Int adds a signed number.
func (w *Writer) Int(v int64) { w.Buf = binary.AppendVarint(w.Buf, v) }

// Bool adds a truth value.
func (w *Writer) Bool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	w.Buf = append(w.Buf, b)
}

// Bytes adds a byte string; nil and an empty one are the same.
func (w *Writer) Bytes(v []byte) {
	w.Uint(uint64(len(v)))
	w.Buf = append(w.Buf, v...)
}

// String adds a string.
func (w *Writer) String(v string) {
	w.Uint(uint64(len(v)))
	w.Buf = append(w.Buf, v...)
}

// List adds the length of a list, whose elements the caller adds.
func (w *Writer) List(n int) { w.Uint(uint64(n)) }
