package store

import "github.com/foresay/foresay/internal/wirefmt"

// MinAccessBytes is the least that a read or a write takes as bytes, for lists of them.
const MinAccessBytes = 3

// VersionFields are a Version's, or a transaction's name's.
func VersionFields(c *wirefmt.Coder, m *Version) {
	wirefmt.Uint(c, &m.Time)
	wirefmt.Uint(c, &m.Client)
}

// PriorityFields are a Priority's.
func PriorityFields(c *wirefmt.Coder, m *Priority) {
	wirefmt.Uint(c, &m.Began)
	wirefmt.Uint(c, &m.Client)
}

// ValueFields are a Value's.
func ValueFields(c *wirefmt.Coder, m *Value) {
	VersionFields(c, &m.Version)
	wirefmt.Bool(c, &m.Present)
	wirefmt.Bytes(c, &m.Bytes)
}

func readFields(c *wirefmt.Coder, m *Read) {
	wirefmt.String(c, &m.Key)
	VersionFields(c, &m.Version)
}

func writeFields(c *wirefmt.Coder, m *Write) {
	wirefmt.String(c, &m.Key)
	wirefmt.Bool(c, &m.Delete)
	wirefmt.Bytes(c, &m.Bytes)
}

// WritesFields are those of a list of writes.
func WritesFields(c *wirefmt.Coder, writes *[]Write) {
	wirefmt.List(c, writes, MinAccessBytes, writeFields)
}

// TxnFields are a Txn's. What is read may be no valid one.
func TxnFields(c *wirefmt.Coder, m *Txn) {
	VersionFields(c, &m.ID)
	PriorityFields(c, &m.Priority)
	wirefmt.List(c, &m.Reads, MinAccessBytes, readFields)
	WritesFields(c, &m.Writes)
}
