package wal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A guardFS passes on to a file system until the first error of an operation that changes the disk.
// That error is reported, and from then on nothing is changed any more: a write or sync that failed
// is never tried again, whatever the database does.
//
// An operation that fails does not return, nor do those after it. The database would try some for
// ever, and end the process over others, in the middle of a user's call and with its locks held.
// This way it stands still where it is, can still be read, and the store tells its users.
type guardFS struct {
	vfs.FS
	report  func(error) error
	created func(name string) error // is called with each file that was created, before its creator has it
	removes func(name string) error // is called with each file that is removed, before it is

	yielding yielding

	mu      sync.Mutex
	stopped bool
	running int    // changes that have begun and not ended
	idle    func() // called once when there are none and there will be none
}

func newGuardFS(fs vfs.FS, report func(error) error) *guardFS {
	none := func(string) error { return nil }
	return &guardFS{FS: fs, report: report, created: none, removes: none}
}

// stop lets no change begin any more.
func (g *guardFS) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stopped = true
}

// whenIdle calls a function when the last change of a stopped file system has ended.
func (g *guardFS) whenIdle(f func()) {
	g.mu.Lock()
	g.idle = f
	g.mu.Unlock()
	g.end(0)
}

// begin reports whether a change may be made.
func (g *guardFS) begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	g.running++
	return true
}

// end notes that so many changes have ended.
func (g *guardFS) end(changes int) {
	g.mu.Lock()
	g.running -= changes
	var idle func()
	if g.stopped && g.running == 0 {
		idle, g.idle = g.idle, nil
	}
	g.mu.Unlock()
	if idle != nil {
		idle()
	}
}

// change does an operation that changes the disk. It returns if and only if it succeeds.
func (g *guardFS) change(what, name string, do func() error) {
	if g.begin() {
		err := do()
		if err != nil {
			g.report(fmt.Errorf("%s %s: %w", what, name, err))
		}
		g.end(1)
		if err == nil {
			return
		}
	}
	select {}
}

// open does an operation that changes the disk and gives a file, which is guarded too.
func (g *guardFS) open(what, name string, do func() (vfs.File, error)) (vfs.File, error) {
	file := &guardFile{fs: g, name: name, sync: "sync"}
	g.change(what, name, func() (err error) {
		if file.File, err = do(); err == nil {
			err = g.created(name)
		}
		return err
	})
	return file, nil
}

// Open opens a file for reading. Of a file of large values it looks at the end, which says where
// everything is: if that is damaged Pebble panics, in a goroutine of its own perhaps.
func (g *guardFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, opts...)
	if err != nil || !strings.HasSuffix(name, largeSuffix) {
		return f, err
	}
	r, err := sstable.NewSimpleReadable(f)
	if err == nil {
		_, err = blob.NewFileReader(context.Background(), r, blob.FileReaderOptions{}) // not closed: that would close f
	}
	if pebble.IsCorruptionError(err) {
		err = &DamageError{File: name, Problem: fmt.Sprintf("damaged (%v)", err)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// largeSuffix ends the name of a file of large values.
const largeSuffix = ".blob"

func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.open("create", name, func() (vfs.File, error) { return g.FS.Create(name, category) })
	if err == nil && yields(category) {
		f = &yieldingFile{File: f, yielding: &g.yielding, category: category, since: time.Now()}
	}
	return f, err
}

func (g *guardFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.open("open for writing", name, func() (vfs.File, error) {
		return g.FS.OpenReadWrite(name, category, opts...)
	})
}

func (g *guardFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.open("reuse as", to, func() (vfs.File, error) {
		if err := g.removes(from); err != nil {
			return nil, err
		}
		return g.FS.ReuseForWrite(from, to, category)
	})
}

func (g *guardFS) Link(from, to string) error {
	g.change("link", to, func() error { return g.FS.Link(from, to) })
	return nil
}

func (g *guardFS) Rename(from, to string) error {
	g.change("rename", to, func() error { return g.FS.Rename(from, to) })
	return nil
}

func (g *guardFS) MkdirAll(dir string, perm os.FileMode) error {
	g.change("make directory", dir, func() error { return g.FS.MkdirAll(dir, perm) })
	return nil
}

// Remove does not stop the store when it fails: only space is lost.
func (g *guardFS) Remove(name string) (err error) {
	g.change("remove", name, func() error {
		if err := g.removes(name); err != nil {
			return err
		}
		err = g.FS.Remove(name)
		return nil
	})
	return err
}

// RemoveAll is like Remove.
func (g *guardFS) RemoveAll(name string) (err error) {
	g.change("remove", name, func() error {
		err = g.FS.RemoveAll(name)
		return nil
	})
	return err
}

// Lock locks nothing: the store has locked its directory, and keeps the lock until no change can
// come any more.
func (g *guardFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	dir, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: dir, fs: g, name: name, sync: "sync directory"}, nil
}

func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// A guardFile is a file that may be written to, or a directory.
type guardFile struct {
	vfs.File
	fs         *guardFS
	name, sync string
}

func (f *guardFile) Write(p []byte) (n int, err error) {
	f.fs.change("write", f.name, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, nil
}

func (f *guardFile) WriteAt(p []byte, at int64) (n int, err error) {
	f.fs.change("write", f.name, func() (err error) {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, nil
}

// Preallocate may fail, as not every file system can do it.
func (f *guardFile) Preallocate(offset, length int64) (err error) {
	f.fs.change("reserve space for", f.name, func() error {
		err = f.File.Preallocate(offset, length)
		return nil
	})
	return err
}

func (f *guardFile) Sync() error {
	f.fs.change(f.sync, f.name, f.File.Sync)
	return nil
}

func (f *guardFile) SyncData() error {
	f.fs.change(f.sync, f.name, f.File.SyncData)
	return nil
}

func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	f.fs.change(f.sync, f.name, func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, nil
}
