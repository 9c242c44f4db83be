package wal

import (
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestLargeValuesMakeFewTables: what a table names is most of what counts for its size, but not
// what writing it costs, so large values must not make a table of every few keys.
func TestLargeValuesMakeFewTables(t *testing.T) {
	l := largeLog{recordBytes: 32 << 10, groupRecords: 8, logBytes: 8 << 20, partBytes: 256 << 10}
	s, err := Open("store", Options{FS: vfs.NewMem(), MemTableBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Node("node")
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, l.partBytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // it never fails
	l.write(t, n, 2048, data)
	m := s.db.Metrics()
	if flushes := m.Flush.Count; flushes < 16 {
		t.Fatalf("%d tables in memory were flushed: the test needs more", flushes)
	}
	var made uint64
	for _, level := range m.Levels {
		made += level.TablesFlushed + level.TablesCompacted
	}
	if flushes := uint64(m.Flush.Count); made > 2*flushes {
		t.Errorf("%d tables were made for %d flushes, want at most two each", made, flushes)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
