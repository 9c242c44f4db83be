package keyspace

import (
	"iter"

	"github.com/tidwall/btree"
)

// Memory is a Space in memory. The zero Memory is empty. It is used by one goroutine at a time.
type Memory struct{ records btree.Map[string, []byte] }

// Copy returns a space with the same keys. It costs nothing until one of them is changed.
func (m *Memory) Copy() *Memory { return &Memory{records: *m.records.Copy()} }

// Get is part of Space.
func (m *Memory) Get(key []byte) ([]byte, bool) { return m.records.Get(string(key)) }

// Put is part of Space.
func (m *Memory) Put(key, value []byte) { m.records.Set(string(key), value) }

// Delete is part of Space.
func (m *Memory) Delete(key []byte) { m.records.Delete(string(key)) }

// Scan is part of Space.
func (m *Memory) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		last, first := string(lo), true
		for more := true; more; {
			// A key at a time, as what is written ahead of the scan is seen.
			more = false
			m.records.Ascend(last, func(k string, v []byte) bool {
				if !first && k == last {
					return true
				}
				last, first = k, false
				more = (hi == nil || k < string(hi)) && yield([]byte(k), v)
				return false
			})
		}
	}
}
