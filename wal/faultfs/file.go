package faultfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// file is an open file or directory.
type file struct {
	disk *Disk
	node int
	path string

	readAt, writeAt int64 // guarded by the disk's lock
}

var _ vfs.File = (*file)(nil)

func (f *file) Close() error { return nil }

// Read may return less than it was asked for, as a fault wants.
func (f *file) Read(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n, err := f.read(KindRead, p, f.readAt)
	f.readAt += int64(n)
	if errors.As(err, new(*ShortError)) {
		return n, nil
	}
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// ReadAt returns an error with whatever is less than it was asked for.
func (f *file) ReadAt(p []byte, offset int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.read(KindReadAt, p, offset)
}

func (f *file) read(kind Kind, p []byte, offset int64) (int, error) {
	n := f.disk.state.nodes[f.node]
	if n.isDir {
		return 0, f.failed("read", fs.ErrInvalid)
	}
	if len(p) == 0 {
		return 0, nil
	}
	err := f.disk.ask(Op{Kind: kind, Path: f.path, SizeBytes: len(p)})
	var short *ShortError
	switch {
	case errors.As(err, &short):
		p = p[:min(len(p), max(short.SizeBytes, 1))]
	case err != nil:
		return 0, f.failed("read", err)
	}
	if offset >= int64(len(n.view)) {
		return 0, io.EOF
	}
	done := copy(p, n.view[offset:])
	if err == nil && done < len(p) {
		err = io.EOF
	}
	return done, err
}

func (f *file) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	n, err := f.write(p, f.writeAt)
	f.writeAt += int64(n)
	return n, err
}

func (f *file) WriteAt(p []byte, offset int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.write(p, offset)
}

func (f *file) write(p []byte, offset int64) (int, error) {
	if f.disk.state.nodes[f.node].isDir || offset < 0 {
		return 0, f.failed("write", fs.ErrInvalid)
	}
	data := append([]byte(nil), p...)
	err := f.disk.do(f.path, change{kind: KindWrite, node: f.node, offset: offset, data: data})
	if err == nil {
		return len(p), nil
	}
	var short *ShortError
	if errors.As(err, &short) {
		data = data[:min(len(data), max(short.SizeBytes, 0))]
		f.disk.keep(change{kind: KindWrite, node: f.node, offset: offset, data: data})
		return len(data), f.failed("write", fmt.Errorf("%d of %d bytes: %w", len(data), len(p), short.Err))
	}
	return 0, err
}

// Sync makes a file's content or a directory's names durable.
func (f *file) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	kind := KindSync
	if f.disk.state.nodes[f.node].isDir {
		kind = KindSyncDir
	}
	return f.disk.do(f.path, change{kind: kind, node: f.node})
}

func (f *file) SyncData() error { return f.Sync() }

// SyncTo makes nothing durable, which it is allowed to do.
func (f *file) SyncTo(int64) (bool, error) { return false, nil }

// Preallocate reserves nothing.
func (f *file) Preallocate(int64, int64) error { return nil }

// Prefetch reads nothing.
func (f *file) Prefetch(int64, int64) error { return nil }

// Fd returns no descriptor.
func (f *file) Fd() uintptr { return vfs.InvalidFd }

func (f *file) Stat() (vfs.FileInfo, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.disk.info(path.Base(f.path), f.node), nil
}

func (f *file) failed(what string, err error) error {
	return &fs.PathError{Op: what, Path: f.path, Err: err}
}

// info describes a node. The caller holds the lock.
func (d *Disk) info(name string, id int) vfs.FileInfo {
	n := d.state.nodes[id]
	return fileInfo{name: name, size: int64(len(n.view)), isDir: n.isDir}
}

type fileInfo struct {
	name  string
	size  int64
	isDir bool
}

func (i fileInfo) Name() string { return i.name }
func (i fileInfo) Size() int64  { return i.size }
func (i fileInfo) Mode() os.FileMode {
	if i.isDir {
		return os.ModeDir | 0o755
	}
	return 0o644
}
func (i fileInfo) ModTime() time.Time     { return time.Time{} }
func (i fileInfo) IsDir() bool            { return i.isDir }
func (i fileInfo) Sys() any               { return nil }
func (i fileInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }
