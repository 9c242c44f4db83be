package store

import (
	"cmp"
	"fmt"
	"slices"
)

// Limits of one transaction.
const (
	MaxAccesses   = 4096    // reads and writes, each
	MaxKeyBytes   = 4 << 10 // of a key
	MaxValueBytes = 1 << 20 // of a value
	MaxTxnBytes   = 2 << 20 // of all keys and values together
	// MaxDeclaredBytes is the limit of the keys that it declares: they are sent again and again, as
	// long as it reads.
	MaxDeclaredBytes = 32 << 10
)

// Value is what a key holds. Absent keys have one too: a deletion leaves its version behind, so
// that a key that was deleted is not taken for one that was never there.
type Value struct {
	Version Version
	Present bool
	Bytes   []byte // not to be changed
}

// A Read says which version of a key a transaction stands on.
type Read struct {
	Key     Key
	Version Version
}

// A Write is what a transaction does to a key.
type Write struct {
	Key    Key
	Delete bool
	Bytes  []byte // nil if Delete
}

// A Txn is a transaction that is to be committed.
type Txn struct {
	ID       TxnID
	Priority Priority
	Reads    []Read  // in ascending order of keys, no key twice
	Writes   []Write // the same
}

// ReadOnly reports whether the transaction writes nothing.
func (t Txn) ReadOnly() bool { return len(t.Writes) == 0 }

// Validate returns an error that says what is wrong with the transaction, or nil.
func (t Txn) Validate() error {
	if t.ID.IsZero() {
		return fmt.Errorf("store: a transaction without an ID")
	}
	return ValidAccesses(t.Reads, t.Writes)
}

// ValidAccesses returns an error that names what is out of order or beyond its limit, or nil.
func ValidAccesses(reads []Read, writes []Write) error {
	if len(reads) > MaxAccesses || len(writes) > MaxAccesses {
		return fmt.Errorf("store: %d reads and %d writes (the limit is %d of each)", len(reads), len(writes), MaxAccesses)
	}
	bytes := 0
	for i, r := range reads {
		if i > 0 && r.Key <= reads[i-1].Key {
			return fmt.Errorf("store: read %d: the key %.40q comes after %.40q", i, r.Key, reads[i-1].Key)
		}
		if len(r.Key) > MaxKeyBytes {
			return fmt.Errorf("store: read %d: a key of %d bytes (the limit is %d)", i, len(r.Key), MaxKeyBytes)
		}
		bytes += len(r.Key)
	}
	for i, w := range writes {
		switch {
		case i > 0 && w.Key <= writes[i-1].Key:
			return fmt.Errorf("store: write %d: the key %.40q comes after %.40q", i, w.Key, writes[i-1].Key)
		case len(w.Key) > MaxKeyBytes:
			return fmt.Errorf("store: write %d: a key of %d bytes (the limit is %d)", i, len(w.Key), MaxKeyBytes)
		case len(w.Bytes) > MaxValueBytes:
			return fmt.Errorf("store: write %d: a value of %d bytes (the limit is %d)", i, len(w.Bytes), MaxValueBytes)
		case w.Delete && len(w.Bytes) > 0:
			return fmt.Errorf("store: write %d: a deletion with a value", i)
		}
		bytes += len(w.Key) + len(w.Bytes)
	}
	if bytes > MaxTxnBytes {
		return fmt.Errorf("store: %d bytes of keys and values (the limit is %d)", bytes, MaxTxnBytes)
	}
	return nil
}

// ContentBytes returns how large the keys and values of a transaction's reads and writes are.
func ContentBytes(reads []Read, writes []Write) int {
	n := 0
	for _, a := range reads {
		n += len(a.Key)
	}
	for _, w := range writes {
		n += len(w.Key) + len(w.Bytes)
	}
	return n
}

// A Buffer is what one attempt of a transaction has read and is to write. Its zero value is ready.
// It is not safe for concurrent use.
type Buffer struct {
	reads  []Read
	values []Value // of reads
	writes []Write
}

// Get returns what the transaction sees under a key without asking anybody: what it wrote last or,
// if it wrote nothing, what it read.
func (b *Buffer) Get(key Key) (v Value, ok bool) {
	if i, ok := b.findWrite(key); ok {
		w := b.writes[i]
		return Value{Present: !w.Delete, Bytes: w.Bytes}, true
	}
	if i, ok := b.findRead(key); ok {
		return b.values[i], true
	}
	return Value{}, false
}

// Saw notes what was read under a key. The first read counts.
func (b *Buffer) Saw(key Key, v Value) {
	if i, ok := b.findRead(key); !ok {
		b.reads = slices.Insert(b.reads, i, Read{key, v.Version})
		b.values = slices.Insert(b.values, i, v)
	}
}

// Put has the transaction write a key. The bytes must not be changed any more.
func (b *Buffer) Put(key Key, bytes []byte) { b.set(Write{Key: key, Bytes: bytes}) }

// Delete has the transaction delete a key, be it there or not.
func (b *Buffer) Delete(key Key) { b.set(Write{Key: key, Delete: true}) }

func (b *Buffer) set(w Write) {
	i, ok := b.findWrite(w.Key)
	if ok {
		b.writes[i] = w
		return
	}
	b.writes = slices.Insert(b.writes, i, w)
}

// Accesses returns the reads and writes as Txn wants them. They are the Buffer's.
func (b *Buffer) Accesses() ([]Read, []Write) { return b.reads, b.writes }

// Values returns what was read, in the order of the reads of Accesses. It is the Buffer's.
func (b *Buffer) Values() []Value { return b.values }

func (b *Buffer) findRead(key Key) (int, bool) {
	return slices.BinarySearchFunc(b.reads, key, func(r Read, k Key) int { return cmp.Compare(r.Key, k) })
}

func (b *Buffer) findWrite(key Key) (int, bool) {
	return slices.BinarySearchFunc(b.writes, key, func(w Write, k Key) int { return cmp.Compare(w.Key, k) })
}
