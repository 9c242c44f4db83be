package wirefmt

import (
	"encoding/binary"

	"github.com/foresay/foresay/protocol"
)

// A Writer appends fields to Buf. Its zero value is ready.
type Writer struct {
	Buf []byte

	refs  []protocol.Ref
	share bool
}

// minShared is the least size of a byte string that is not copied: a reference costs more than a
// copy of less.
const minShared = 4 << 10

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

// Shared adds a byte string that nobody changes any more. Where the encoder's caller can, it is not
// copied.
func (w *Writer) Shared(v []byte) {
	if !w.share || len(v) < minShared {
		w.Bytes(v)
		return
	}
	w.Uint(uint64(len(v)))
	w.refs = append(w.refs, protocol.Ref{At: len(w.Buf), Data: v})
}

// String adds a string.
func (w *Writer) String(v string) {
	w.Uint(uint64(len(v)))
	w.Buf = append(w.Buf, v...)
}

// List adds the length of a list, whose elements the caller adds.
func (w *Writer) List(n int) { w.Uint(uint64(n)) }
