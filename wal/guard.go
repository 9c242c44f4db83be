package wal

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A guardFS passes on to a file system until the first error of an operation that changes the disk. That error is reported, and from then
// on nothing is changed any more: a write or sync that failed is never tried again, whatever the database does.
//
// The database's background jobs would try again for ever. While it holds, a failed operation of theirs does not return. Those on the database's
// log and on directories do, since the store's writer does them too, and it must learn of the failure.
type guardFS struct {
	vfs.FS
	report func(error) error

	mu      sync.Mutex
	stopped error
	held    chan struct{} // closed by letGo; nil while nothing is held
}

func newGuardFS(fs vfs.FS, report func(error) error) *guardFS {
	return &guardFS{FS: fs, report: report}
}

// stop lets no change through any more.
func (g *guardFS) stop(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped == nil {
		g.stopped = err
	}
}

// hold makes failed operations of background jobs wait for letGo.
func (g *guardFS) hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held = make(chan struct{})
}

func (g *guardFS) letGo() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// change does an operation that changes the disk.
func (g *guardFS) change(what, name string, do func() error) error {
	g.mu.Lock()
	err := g.stopped
	g.mu.Unlock()
	if err == nil {
		if err = do(); err == nil {
			return nil
		}
		err = g.report(fmt.Errorf("%s %s: %w", what, name, err))
	}
	g.mu.Lock()
	held := g.held
	g.mu.Unlock()
	if held != nil && !strings.HasSuffix(name, ".log") && what != syncDirectory {
		<-held
	}
	return err
}

// open does an operation that changes the disk and gives a file, which is guarded too.
func (g *guardFS) open(what, name string, do func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File
	err := g.change(what, name, func() (err error) {
		file, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return &guardFile{File: file, fs: g, name: name, sync: "sync"}, nil
}

func (g *guardFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.open("create", name, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

func (g *guardFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	return g.open("open for writing", name, func() (vfs.File, error) { return g.FS.OpenReadWrite(name, category, opts...) })
}

func (g *guardFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.open("reuse as", to, func() (vfs.File, error) { return g.FS.ReuseForWrite(from, to, category) })
}

func (g *guardFS) Link(from, to string) error {
	return g.change("link", to, func() error { return g.FS.Link(from, to) })
}

func (g *guardFS) Rename(from, to string) error {
	return g.change("rename", to, func() error { return g.FS.Rename(from, to) })
}

func (g *guardFS) MkdirAll(dir string, perm os.FileMode) error {
	return g.change("make directory", dir, func() error { return g.FS.MkdirAll(dir, perm) })
}

// Remove does not stop the store when it fails: only space is lost.
func (g *guardFS) Remove(name string) error {
	if err := g.stoppedBy(); err != nil {
		return err
	}
	return g.FS.Remove(name)
}

func (g *guardFS) RemoveAll(name string) error {
	if err := g.stoppedBy(); err != nil {
		return err
	}
	return g.FS.RemoveAll(name)
}

func (g *guardFS) stoppedBy() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stopped
}

const syncDirectory = "sync directory"

func (g *guardFS) OpenDir(name string) (vfs.File, error) {
	dir, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &guardFile{File: dir, fs: g, name: name, sync: syncDirectory}, nil
}

func (g *guardFS) Unwrap() vfs.FS { return g.FS }

// A guardFile is a file that may be written to, or a directory.
type guardFile struct {
	vfs.File
	fs         *guardFS
	name, sync string
}

func (f *guardFile) Write(p []byte) (n int, err error) {
	err = f.fs.change("write", f.name, func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}

func (f *guardFile) WriteAt(p []byte, at int64) (n int, err error) {
	err = f.fs.change("write", f.name, func() (err error) {
		n, err = f.File.WriteAt(p, at)
		return err
	})
	return n, err
}

func (f *guardFile) Preallocate(offset, length int64) error {
	return f.fs.change("reserve space for", f.name, func() error { return f.File.Preallocate(offset, length) })
}

func (f *guardFile) Sync() error { return f.fs.change(f.sync, f.name, f.File.Sync) }

func (f *guardFile) SyncData() error { return f.fs.change(f.sync, f.name, f.File.SyncData) }

func (f *guardFile) SyncTo(length int64) (full bool, err error) {
	err = f.fs.change(f.sync, f.name, func() (err error) {
		full, err = f.File.SyncTo(length)
		return err
	})
	return full, err
}
