package host

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"iter"
	"sync"

	"github.com/foresay/foresay/protocol"
)

// Memory is a Disk that is lost with the process. A host that is made anew in the same process can
// be given it again. It may be used by one host at a time; its identity is random.
type Memory struct {
	identity string

	mu      sync.RWMutex
	low     uint64 // the index of the first record
	records [][]byte
	keys    sortedKeys
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails
	return &Memory{identity: "memory-" + hex.EncodeToString(id[:]), low: 1}
}

// Identity names this Memory.
func (m *Memory) Identity() string { return m.identity }

// NextIndex returns the index that the next record gets.
func (m *Memory) NextIndex() uint64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.low + uint64(len(m.records))
}

// Records goes through the log as it is when the loop begins.
func (m *Memory) Records() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		m.mu.RLock()
		low, records := m.low, m.records
		m.mu.RUnlock()
		for i, b := range records {
			if !yield(Record{low + uint64(i), b}, nil) {
				return
			}
		}
	}
}

// Keys returns the key space.
func (m *Memory) Keys() protocol.Keys { return memoryKeys{m} }

// Commit is done at once.
func (m *Memory) Commit(ops []Op, done func(error)) {
	m.commit(ops)
	done(nil)
}

func (m *Memory) commit(ops []Op) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, op := range ops {
		switch op.Kind {
		case protocol.KindAppend:
			m.records = append(m.records, protocol.AppendJoined(nil, op.Value, op.Refs))
		case protocol.KindTruncate:
			if n := min(op.Index, m.low+uint64(len(m.records))); n > m.low {
				clear(m.records[:n-m.low]) // a loop over Records keeps its own view of the slice, not of these
				m.records, m.low = m.records[n-m.low:], n
			}
		case protocol.KindPut:
			m.keys.put(op.Key, op.Value)
		case protocol.KindDelete:
			m.keys.remove(op.Key)
		}
	}
}

type memoryKeys struct{ m *Memory }

func (k memoryKeys) Get(key []byte) ([]byte, bool) {
	k.m.mu.RLock()
	defer k.m.mu.RUnlock()
	return k.m.keys.get(key)
}

// Scan takes the lock for each key, so that its loop may do what it likes.
func (k memoryKeys) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		k.m.mu.RLock()
		e, ok := k.m.keys.atOrAfter(lo, false)
		k.m.mu.RUnlock()
		for ok && (hi == nil || bytes.Compare(e.key, hi) < 0) && yield(e.key, e.value) {
			k.m.mu.RLock()
			e, ok = k.m.keys.atOrAfter(e.key, true)
			k.m.mu.RUnlock()
		}
	}
}
