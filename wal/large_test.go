package wal

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/internal/race"
)

// TestLargeValuesMakeFewTables: what a table names is most of what counts for its size, but not
// what writing it costs, so large values must not make a table of every few keys.
func TestLargeValuesMakeFewTables(t *testing.T) {
	if race.Enabled {
		t.Skip("one goroutine writes some 512 MB")
	}
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

// blobFS counts the bytes that are written to files of large values.
type blobFS struct {
	vfs.FS
	written *atomic.Int64
}

func (fs blobFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	if err == nil && strings.HasSuffix(name, ".blob") {
		f = blobFile{f, fs.written}
	}
	return f, err
}

type blobFile struct {
	vfs.File
	written *atomic.Int64
}

func (f blobFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.written.Add(int64(n))
	return n, err
}

// TestLargeValuesAreWrittenOnce: values that stay are written to a file of their own once, however
// often the tables that name them are written anew.
func TestLargeValuesAreWrittenOnce(t *testing.T) {
	var written atomic.Int64
	s, err := Open("store", Options{FS: blobFS{vfs.NewMem(), &written}, MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.Node("node")
	if err != nil {
		t.Fatal(err)
	}
	const values = 2048
	data := make([]byte, 16<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // it never fails
	for range values {
		var b Batch
		b.Append(n.NextIndex(), data)
		b.Put([]byte("key"), data[:8])
		done := make(chan error, 1)
		n.Commit(&b, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	m := s.db.Metrics()
	if m.Compact.Count < 4 {
		t.Fatalf("%d compactions: the test needs more", m.Compact.Count)
	}
	all := int64(values * len(data))
	if n := written.Load(); n < all/2 || n > all+all/50 {
		t.Errorf("%d bytes were written to files of values, want once the %d bytes of all values", n, all)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
