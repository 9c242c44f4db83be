package store

import "github.com/foresay/foresay/internal/wirefmt"

// MinAccessBytes is the least that a read or a write takes as bytes, for lists of them.
const MinAccessBytes = 3

// AppendVersion adds a version.
func AppendVersion(w *wirefmt.Writer, v Version) {
	w.Uint(v.Time)
	w.Uint(uint64(v.Client))
}

// ReadVersion reads what AppendVersion added.
func ReadVersion(r *wirefmt.Reader) Version { return Version{r.Uint(), ClientID(r.Uint())} }

// AppendPriority adds a priority.
func AppendPriority(w *wirefmt.Writer, p Priority) {
	w.Uint(p.Began)
	w.Uint(uint64(p.Client))
}

// ReadPriority reads what AppendPriority added.
func ReadPriority(r *wirefmt.Reader) Priority { return Priority{r.Uint(), ClientID(r.Uint())} }

// AppendValue adds a value.
func AppendValue(w *wirefmt.Writer, v Value) {
	AppendVersion(w, v.Version)
	w.Bool(v.Present)
	w.Bytes(v.Bytes)
}

// ReadValue reads what AppendValue added.
func ReadValue(r *wirefmt.Reader) Value { return Value{ReadVersion(r), r.Bool(), r.Bytes()} }

// AppendAccesses adds reads and writes.
func AppendAccesses(w *wirefmt.Writer, reads []Read, writes []Write) {
	w.List(len(reads))
	for _, a := range reads {
		w.String(string(a.Key))
		AppendVersion(w, a.Version)
	}
	AppendWrites(w, writes)
}

// ReadAccesses reads what AppendAccesses added. They may be no valid transaction's.
func ReadAccesses(r *wirefmt.Reader) (reads []Read, writes []Write) {
	for range r.List(MinAccessBytes) {
		if r.Err() != nil {
			return nil, nil
		}
		reads = append(reads, Read{Key(r.String()), ReadVersion(r)})
	}
	return reads, ReadWrites(r)
}

// AppendWrites adds writes.
func AppendWrites(w *wirefmt.Writer, writes []Write) {
	w.List(len(writes))
	for _, a := range writes {
		w.String(string(a.Key))
		w.Bool(a.Delete)
		w.Bytes(a.Bytes)
	}
}

// ReadWrites reads what AppendWrites added.
func ReadWrites(r *wirefmt.Reader) (writes []Write) {
	for range r.List(MinAccessBytes) {
		if r.Err() != nil {
			return nil
		}
		writes = append(writes, Write{Key(r.String()), r.Bool(), r.Bytes()})
	}
	return writes
}

// AppendTxn adds a transaction.
func AppendTxn(w *wirefmt.Writer, t Txn) {
	AppendVersion(w, t.ID)
	AppendPriority(w, t.Priority)
	AppendAccesses(w, t.Reads, t.Writes)
}

// ReadTxn reads what AppendTxn added. It may not be valid.
func ReadTxn(r *wirefmt.Reader) Txn {
	t := Txn{ID: ReadVersion(r), Priority: ReadPriority(r)}
	t.Reads, t.Writes = ReadAccesses(r)
	return t
}
