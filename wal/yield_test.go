package wal

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestBackgroundWorkYields: background work pauses for a multiple of what it took, and less the
// further behind it is; a flush hurries for other reasons than a merge.
func TestBackgroundWorkYields(t *testing.T) {
	const work, writes = 2 * time.Millisecond, 100
	for _, c := range []struct {
		name     string
		category vfs.DiskWriteCategory
		backlog  backlog
		pauses   time.Duration // after each write
	}{
		{"flush", flushCategory, backlog{tables: 2, levels: 4 * unhurriedLevels}, yieldShare * work},
		{"flush, behind", flushCategory, backlog{tables: 3}, 0},
		{"merge", mergeCategory, backlog{tables: 4, levels: unhurriedLevels}, yieldShare * work},
		{"merge, a little behind", mergeCategory, backlog{levels: unhurriedLevels + 1}, yieldShare / 2 * work},
		{"merge, behind", mergeCategory, backlog{levels: unhurriedLevels + 3}, 0},
		{"large values", largeCategory, backlog{levels: 2}, yieldShare * work},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := &yielding{}
				behind := func() backlog { return c.backlog }
				y.behind.Store(&behind)
				f := &yieldingFile{File: &delayedFile{discarded{}, work}, yielding: y, category: c.category, since: time.Now()}
				began := time.Now()
				for range writes {
					if _, err := f.Write([]byte("block")); err != nil {
						t.Fatal(err)
					}
				}
				if got, want := time.Since(began), writes*(work+c.pauses); got != want {
					t.Errorf("%d writes of %v took %v, want %v", writes, work, got, want)
				}
				y.end()
				began = time.Now()
				if _, err := f.Write(nil); err != nil || time.Since(began) != work {
					t.Errorf("a write after the end took %v, want %v: %v", time.Since(began), work, err)
				}
			})
		})
	}
}

// namingFS remembers for what each file was created, and makes writes of background work slow.
type namingFS struct {
	vfs.FS
	takes time.Duration

	mu         sync.Mutex
	categories map[string]vfs.DiskWriteCategory
	paused     int // how many writes of background work came yieldMost after the last one
}

func (fs *namingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.categories == nil {
		fs.categories = map[string]vfs.DiskWriteCategory{}
	}
	fs.categories[name] = category
	f, err := fs.FS.Create(name, category)
	if err == nil && isTable(name) {
		f = &watchedFile{File: &delayedFile{f, fs.takes}, fs: fs}
	}
	return f, err
}

// watchedFile notes how long after one write the next one comes.
type watchedFile struct {
	vfs.File
	fs   *namingFS
	last time.Time
}

func (f *watchedFile) Write(p []byte) (int, error) {
	if !f.last.IsZero() && time.Since(f.last) >= yieldMost {
		f.fs.mu.Lock()
		f.fs.paused++
		f.fs.mu.Unlock()
	}
	n, err := f.File.Write(p)
	f.last = time.Now()
	return n, err
}

// delayedFile takes a while for each write.
type delayedFile struct {
	vfs.File
	takes time.Duration
}

func (f *delayedFile) Write(p []byte) (int, error) {
	time.Sleep(f.takes)
	return f.File.Write(p)
}

// discarded is a file that keeps nothing.
type discarded struct{ vfs.File }

func (discarded) Write(p []byte) (int, error) { return len(p), nil }

func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, largeSuffix)
}

// fill commits values that do not compress.
func fill(t *testing.T, s *Store, values, size int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(1, uint64(size)))
	n, err := s.Node("node")
	if err != nil {
		t.Fatal(err)
	}
	for i := range values {
		var b Batch
		b.Put(fmt.Appendf(nil, "key-%d", i*7919%values), randomBytes(rnd, size))
		done := make(chan error, 1)
		n.Commit(&b, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// TestTablesAreWrittenYielding: all that the database writes but its logs and lists of files is
// background work, which pauses, and it is done without pauses once the store is closed.
func TestTablesAreWrittenYielding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &namingFS{FS: vfs.NewMem(), takes: 10 * time.Millisecond}
		s, err := Open("store", Options{FS: disk, MemTableBytes: 256 << 10})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, s, 2500, 100)
		fill(t, s, 60, 5000) // which go to a file of large values
		time.Sleep(time.Minute)
		disk.mu.Lock()
		if disk.paused < 10 {
			t.Errorf("background work paused %d times", disk.paused)
		}
		disk.mu.Unlock()
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		closing := time.Since(began)
		tables, writes := 0, 0
		for name, category := range disk.categories {
			if !isTable(name) {
				if yields(category) {
					t.Errorf("%s is background work: %q", name, category)
				}
				continue
			}
			tables++
			info, err := disk.Stat(name)
			if err != nil {
				continue // merged since
			}
			writes += int(info.Size()/4096) + 8
			if !yields(category) {
				t.Errorf("%s is not background work: %q", name, category)
			}
		}
		if tables < 2 {
			t.Errorf("%d tables were written", tables)
		}
		if most := time.Duration(writes)*disk.takes + 2*yieldMost; closing > most {
			t.Errorf("to close took %v, with %d writes of %v at most", closing, writes, disk.takes)
		}
	})
}
