package wal

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// readingFS counts how often tables are read.
type readingFS struct {
	vfs.FS
	reads atomic.Int64
}

func (fs *readingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.Open(name, opts...)
	if err == nil && strings.HasSuffix(name, ".sst") {
		f = &readFile{f, &fs.reads}
	}
	return f, err
}

type readFile struct {
	vfs.File
	reads *atomic.Int64
}

func (f *readFile) ReadAt(p []byte, at int64) (int, error) {
	f.reads.Add(1)
	return f.File.ReadAt(p, at)
}

// openReading returns a store whose look-ups go to its tables, on a disk that counts reads.
func openReading(t *testing.T, tables, cache int) (*Store, *Node, *readingFS) {
	t.Helper()
	disk := &readingFS{FS: vfs.NewMem()}
	s, err := Open("store", Options{FS: disk, NoSync: true, MemTableBytes: uint64(tables), CacheBytes: int64(cache),
		ReadCacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	n, err := s.Node("node")
	if err != nil {
		t.Fatal(err)
	}
	return s, n, disk
}

// putSome writes every few of so many keys, and has them flushed.
func putSome(t *testing.T, s *Store, n *Node, keys, every, offset int) {
	t.Helper()
	var b Batch
	for i := offset; i < keys; i += every {
		b.Put(fmt.Appendf(nil, "key-%06d", i), make([]byte, 100))
	}
	done := make(chan error, 1)
	n.Commit(&b, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := s.db.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestBlocksStayInMemory: what the cache has room for is read from the disk once, however large the
// tables in memory are.
func TestBlocksStayInMemory(t *testing.T) {
	const keys = 4000
	s, n, disk := openReading(t, 1<<20, 1<<20)
	for range 12 { // tables in memory grow to their size
		putSome(t, s, n, keys, 1, 0)
	}
	get := func() int64 {
		before := disk.reads.Load()
		for i := range keys {
			if _, ok := n.Keys().Get(fmt.Appendf(nil, "key-%06d", i)); !ok {
				t.Fatalf("there is no key %d", i)
			}
		}
		return disk.reads.Load() - before
	}
	if reads := get(); reads == 0 {
		t.Error("what was flushed is not read from tables")
	}
	// What is read counts as the cache's only once it was read again.
	if again, reads := get(), get(); reads > again || reads > keys/100 {
		t.Errorf("what was read twice is read %d times from the disk, and then %d times", again, reads)
	}
}

// TestTablesWithoutAKeyAreNotRead: a look-up passes over tables that have been flushed since its
// key was written, of which each may have any key.
func TestTablesWithoutAKeyAreNotRead(t *testing.T) {
	const keys = 8000
	s, n, _ := openReading(t, 1<<20, 8<<20)
	putSome(t, s, n, keys, 2, 0)
	if err := s.db.Compact(t.Context(), nil, []byte{0xff}, false); err != nil {
		t.Fatal(err)
	}
	putSome(t, s, n, keys, 2, 1) // one table more, and nothing to merge it with yet
	before := s.db.Metrics()
	if before.Levels[0].TablesCount != 1 {
		t.Fatalf("%d tables are not merged", before.Levels[0].TablesCount)
	}
	for i := 0; i < keys; i += 2 {
		if _, ok := n.Keys().Get(fmt.Appendf(nil, "key-%06d", i)); !ok {
			t.Fatalf("there is no key %d", i)
		}
	}
	passed := s.db.Metrics().Filter.Hits - before.Filter.Hits
	if want := int64(keys / 2 * 95 / 100); passed < want {
		t.Errorf("a table without the key was passed over in %d of %d look-ups, want %d", passed, keys/2, want)
	}
}
