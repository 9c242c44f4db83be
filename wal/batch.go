package wal

import "github.com/foresay/foresay/protocol"

// A Batch is what one Commit makes durable, together or not at all. Its operations apply in their
// order. The zero Batch is empty and ready; it is not for concurrent use. The slices given to it
// are kept until the commit is done, and must not be changed until then; those of keys and values
// not even afterwards while [Keys] are read.
type Batch struct {
	ops       []op
	sizeBytes int
}

type opKind byte

const (
	opAppend opKind = iota
	opTruncate
	opPut
	opDelete
)

type op struct {
	kind       opKind
	index      uint64         // of an append, a truncation
	key, value []byte         // value is a record's too
	refs       []protocol.Ref // what belongs into that
}

// valueBytes returns how large the value is.
func (o *op) valueBytes() int { return len(o.value) + protocol.RefBytes(o.refs) }

// opOverheadBytes is what an operation costs besides its bytes, roughly: its share of the queue and
// a header on the disk.
const opOverheadBytes = 64

// Append adds a record. Its index must be the node's next one, counting the batch's earlier
// records: the commit fails otherwise.
func (b *Batch) Append(index uint64, record []byte) { b.AppendJoined(index, record, nil) }

// AppendJoined is Append of a record into whose bytes refs belong, as protocol.AppendJoined puts
// them together. The slice of refs is kept as well.
func (b *Batch) AppendJoined(index uint64, record []byte, refs []protocol.Ref) {
	b.add(op{kind: opAppend, index: index, value: record, refs: refs})
}

// Truncate forgets the records below an index. One beyond the log's next index fails the commit;
// one that is truncated already does nothing.
func (b *Batch) Truncate(before uint64) { b.add(op{kind: opTruncate, index: before}) }

// Put writes a key.
func (b *Batch) Put(key, value []byte) { b.add(op{kind: opPut, key: key, value: value}) }

// Delete removes a key, if it is there.
func (b *Batch) Delete(key []byte) { b.add(op{kind: opDelete, key: key}) }

// Len returns the number of operations.
func (b *Batch) Len() int { return len(b.ops) }

// SizeBytes returns about how much the batch writes.
func (b *Batch) SizeBytes() int { return b.sizeBytes }

// Reset empties the batch.
func (b *Batch) Reset() { *b = Batch{} }

func (b *Batch) add(o op) {
	b.ops = append(b.ops, o)
	b.sizeBytes += opOverheadBytes + len(o.key) + o.valueBytes()
}
