package wal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/wal/faultfs"
)

// failing is a run on a disk that fails at some point; the machine's power fails after it.
type failing struct {
	fault func() faultfs.Fault
	disk  func(vfs.FS) vfs.FS // a fault of the disk's users
	kind  error               // what the store must have been stopped by
	seeds int
}

// run returns whether the fault came, and the first thing that is wrong.
func (f *failing) run(seed uint64) (came bool, err error) {
	disk := faultfs.New()
	opts := Options{FS: disk, MemTableBytes: minMemTableBytes}
	if f.disk != nil {
		opts.FS = f.disk(disk)
	}
	s, err := Open("/data", opts)
	if err != nil {
		return false, err
	}
	disk.Inject(f.fault())
	h := newHistory(3)
	rnd := rand.New(rand.NewPCG(seed, 2))
	failure := h.run(s, disk, rnd, 100, 1500)
	if failure == nil && s.Err() == nil {
		err := s.Close()
		if errors.Is(err, f.kind) {
			return true, nil // in a background job, at the last moment
		}
		return false, err
	}
	if err := f.checkStopped(s, failure); err != nil {
		return true, err
	}
	for i := range f.seeds {
		image := disk.Crash(seed + uint64(i))
		s, err := Open("/data", Options{FS: image, MemTableBytes: minMemTableBytes})
		if err != nil {
			return true, fmt.Errorf("open again, seed %d: %w", seed+uint64(i), err)
		}
		if err := h.check(s, disk.Ops()); err != nil {
			return true, fmt.Errorf("seed %d: %w", seed+uint64(i), err)
		}
		if err := s.Close(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// checkStopped wants the same error of everything, also of a commit that comes later.
func (f *failing) checkStopped(s *Store, failure error) error {
	if failure != nil && failure != s.Err() {
		return fmt.Errorf("a commit got %v, the store %v", failure, s.Err())
	}
	if !errors.Is(s.Err(), f.kind) || !strings.Contains(s.Err().Error(), "/data/") {
		return fmt.Errorf("the store was stopped by %v", s.Err())
	}
	later := make(chan error, 1)
	node, err := s.Node("node-0")
	if err == nil {
		var b Batch
		b.Put([]byte("late"), nil)
		node.Commit(&b, func(err error) { later <- err })
		err = <-later
	}
	if err != s.Err() {
		return fmt.Errorf("a later commit got %v, the store %v", err, s.Err())
	}
	if err := s.Close(); !errors.Is(err, f.kind) {
		return fmt.Errorf("close gave %v", err)
	}
	return nil
}

// every runs with the fault at the first, the second, ... time, until it does not come any more.
// See step.
func every(t *testing.T, makeRun func(nth int) *failing) {
	t.Helper()
	for nth := 1; ; nth += step(nth) {
		came, err := makeRun(nth).run(uint64(nth))
		if err != nil {
			t.Fatalf("%d: %v", nth, err)
		}
		if !came {
			if nth < 6 { // how often depends on when Pebble's background work comes
				t.Fatalf("the fault came only %d times", nth-1)
			}
			t.Logf("came up to the %d.", nth-1)
			return
		}
	}
}

// step goes to each of the first places, and then to every third of them.
func step(nth int) int {
	if nth < 16 {
		return 1
	}
	return oneOf(3)
}

func TestFailedSyncStopsTheStore(t *testing.T) {
	every(t, func(nth int) *failing {
		return &failing{
			fault: func() faultfs.Fault { return faultfs.FailNth(faultfs.KindSync, nth, syscall.EIO) },
			kind:  syscall.EIO, seeds: 2,
		}
	})
}

func TestFailedOperationStopsTheStore(t *testing.T) {
	for _, kind := range []faultfs.Kind{faultfs.KindSyncDir, faultfs.KindWrite, faultfs.KindCreate} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			every(t, func(nth int) *failing {
				return &failing{
					fault: func() faultfs.Fault { return faultfs.FailNth(kind, nth, syscall.EIO) },
					kind:  syscall.EIO, seeds: 1,
				}
			})
		})
	}
}

func TestFullDiskStopsTheStore(t *testing.T) {
	every(t, func(nth int) *failing {
		return &failing{
			fault: func() faultfs.Fault { return faultfs.Full(nth * 6000) },
			kind:  syscall.ENOSPC, seeds: 2,
		}
	})
}

// retryFS tries a failed sync again, which then succeeds, but the kernel has dropped what it should
// have written.
type retryFS struct{ vfs.FS }

func (fs retryFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return retryFile{f}, err
}

func (fs retryFS) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.ReuseForWrite(old, name, c)
	return retryFile{f}, err
}

func (fs retryFS) OpenReadWrite(name string, c vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := fs.FS.OpenReadWrite(name, c, opts...)
	return retryFile{f}, err
}

func (fs retryFS) OpenDir(name string) (vfs.File, error) {
	f, err := fs.FS.OpenDir(name)
	return retryFile{f}, err
}

type retryFile struct{ vfs.File }

func (f retryFile) SyncTo(length int64) (fullSync bool, err error) {
	if fullSync, err = f.File.SyncTo(length); err != nil {
		return f.File.SyncTo(length)
	}
	return fullSync, nil
}

func (f retryFile) Sync() error {
	if f.File.Sync() == nil {
		return nil
	}
	return f.File.Sync()
}

func (f retryFile) SyncData() error { return f.Sync() }

func TestRetryingASyncIsFound(t *testing.T) {
	for nth := 1; nth < 100; nth++ {
		disk := faultfs.New()
		s, err := Open("/data", Options{FS: retryFS{disk}, MemTableBytes: minMemTableBytes})
		if err != nil {
			t.Fatal(err)
		}
		disk.Inject(faultfs.FailNth(faultfs.KindSync, nth, syscall.EIO))
		h := newHistory(3)
		if err := h.run(s, disk, rand.New(rand.NewPCG(1, 2)), 100, 1500); err != nil {
			t.Fatalf("the retry should have hidden it: %v", err)
		}
		after := disk.Crash(uint64(nth))
		s, err = Open("/data", Options{FS: after})
		if err == nil {
			err = h.check(s, disk.Ops())
		}
		if err != nil {
			t.Logf("found at sync %d: %v", nth, err)
			return
		}
	}
	t.Fatal("not found")
}

// noted returns a fault, and what reports whether it came.
func noted(f faultfs.Fault) (fault faultfs.Fault, came *atomic.Bool) {
	came = new(atomic.Bool)
	return func(op faultfs.Op) error {
		err := f(op)
		if err != nil {
			came.Store(true)
		}
		return err
	}, came
}

// A directory that could not be made, for whatever reason, can be made afterwards.
func TestOpenFails(t *testing.T) {
	for kind := faultfs.KindCreate; kind <= faultfs.KindOpen; kind++ {
		if kind == faultfs.KindRemove || kind == faultfs.KindReadAt {
			continue // what is left over does no harm; a new directory has no files to read at an offset
		}
		t.Run(kind.String(), func(t *testing.T) {
			for nth := 1; ; nth++ {
				disk := faultfs.New()
				if kind == faultfs.KindRead {
					openAndClose(t, disk)
				}
				fault, came := noted(faultfs.FailNth(kind, nth, syscall.EIO))
				disk.Inject(fault)
				s, err := Open("/data/a/b", Options{FS: disk})
				if err == nil {
					err = s.Close()
				}
				if !came.Load() {
					if err != nil || nth == 1 {
						t.Fatalf("%d faults: %v", nth-1, err)
					}
					return
				}
				if !errors.Is(err, syscall.EIO) {
					t.Fatalf("%d: %v", nth, err)
				}
				disk.Inject(nil)
				openAndClose(t, disk)
			}
		})
	}
}

// openAndClose opens the directory when a store that failed has given it free, which is as soon as
// nothing of it can touch the disk any more.
func openAndClose(t *testing.T, disk *faultfs.Disk) {
	t.Helper()
	s, err := Open("/data/a/b", Options{FS: disk})
	for deadline := time.After(10 * time.Second); err != nil && strings.Contains(err.Error(), "in use"); {
		select {
		case <-deadline:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
			s, err = Open("/data/a/b", Options{FS: disk})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A disk with data is read with faults: each read either succeeds with what was written or says
// that it failed.
func TestReadErrors(t *testing.T) {
	disk := faultfs.New()
	s, err := Open("/data", Options{FS: disk, MemTableBytes: minMemTableBytes})
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(3)
	if err := h.run(s, disk, rand.New(rand.NewPCG(1, 3)), 150, 1500); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []faultfs.Kind{faultfs.KindRead, faultfs.KindReadAt} {
		failed := 0
		for nth := 1; ; nth++ {
			image := disk.Kill()
			fault, came := noted(faultfs.FailNth(kind, nth, syscall.EIO))
			image.Inject(fault)
			s, err := Open("/data", Options{FS: image, MemTableBytes: minMemTableBytes})
			if err == nil {
				err = h.check(s, disk.Ops())
				if closing := s.Close(); err == nil {
					err = closing
				}
			}
			if err != nil && !errors.Is(err, syscall.EIO) {
				t.Fatalf("%v %d: %v", kind, nth, err)
			}
			if err != nil {
				failed++
			}
			if !came.Load() {
				break
			}
		}
		t.Logf("%v: %d errors", kind, failed)
		if failed < 3 {
			t.Fatalf("%v: only %d errors", kind, failed)
		}
	}
	for seed := range uint64(20) {
		image := disk.Kill()
		image.Inject(faultfs.ShortReads(seed))
		s, err := Open("/data", Options{FS: image})
		if err != nil {
			t.Fatalf("short reads, seed %d: %v", seed, err)
		}
		if err := h.check(s, disk.Ops()); err != nil {
			t.Fatalf("short reads, seed %d: %v", seed, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
