package faultfs

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Create makes a file, in the place of one that has the name. What opened the old one keeps it.
func (d *Disk) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dir, base, err := d.findParent(name)
	if err != nil {
		return nil, err
	}
	if id, ok := d.state.nodes[dir].viewNames[base]; ok && d.state.nodes[id].isDir {
		return nil, &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	}
	id := len(d.state.nodes)
	if err := d.do(name, change{kind: KindCreate, node: id, dir: dir, name: base}); err != nil {
		return nil, err
	}
	return &file{disk: d, node: id, path: clean(name)}, nil
}

// Link gives a file another name.
func (d *Disk) Link(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.find(from)
	if err != nil {
		return err
	}
	dir, base, err := d.findParent(to)
	if err != nil {
		return err
	}
	if _, ok := d.state.nodes[dir].viewNames[base]; ok || d.state.nodes[id].isDir {
		return &fs.PathError{Op: "link", Path: to, Err: fs.ErrExist}
	}
	return d.do(to, change{kind: KindCreate, node: id, dir: dir, name: base})
}

// Open opens a file or directory.
func (d *Disk) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	d.mu.Lock()
	f, err := d.open(name)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o.Apply(f)
	}
	return f, nil
}

func (d *Disk) open(name string) (*file, error) {
	if err := d.ask(Op{Kind: KindOpen, Path: clean(name)}); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	id, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return &file{disk: d, node: id, path: clean(name)}, nil
}

// OpenReadWrite opens a file, and makes it if it is not there.
func (d *Disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if _, err := d.Stat(name); err != nil {
		return d.Create(name, category)
	}
	return d.Open(name, opts...)
}

// OpenDir opens a directory, for its Sync.
func (d *Disk) OpenDir(name string) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, err := d.open(name)
	if err == nil && !d.state.nodes[f.node].isDir {
		err = &fs.PathError{Op: "open directory", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Remove removes a file or an empty directory.
func (d *Disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	id, err := d.find(name)
	if err != nil {
		return err
	}
	if len(d.state.nodes[id].viewNames) > 0 {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrExist}
	}
	return d.unname(name)
}

func (d *Disk) unname(name string) error {
	dir, base, err := d.findParent(name)
	if err != nil {
		return err
	}
	return d.do(name, change{kind: KindRemove, dir: dir, name: base})
}

// RemoveAll removes a file, or a directory with what is in it. It is one operation.
func (d *Disk) RemoveAll(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.find(name); err != nil {
		if d.crashed {
			return ErrCrashed
		}
		return nil
	}
	return d.unname(name)
}

// Rename moves a file. It replaces one that has the new name.
func (d *Disk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rename(from, to)
}

func (d *Disk) rename(from, to string) error {
	id, err := d.find(from)
	if err != nil {
		return err
	}
	dir, base, err := d.findParent(from)
	if err != nil {
		return err
	}
	toDir, toBase, err := d.findParent(to)
	if err != nil {
		return err
	}
	if clean(from) == clean(to) {
		return nil
	}
	return d.do(to, change{kind: KindRename, node: id, dir: dir, name: base, toDir: toDir, toName: toBase})
}

// ReuseForWrite renames a file and opens it for writing from its beginning. Its old content stays
// until it is written over.
func (d *Disk) ReuseForWrite(from, to string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.rename(from, to); err != nil {
		return nil, err
	}
	return d.open(to)
}

// MkdirAll makes a directory and those above it.
func (d *Disk) MkdirAll(name string, _ os.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	name = clean(name)
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' || name == "/" {
			continue
		}
		part := name[:i]
		if id, err := d.find(part); err == nil {
			if !d.state.nodes[id].isDir {
				return &fs.PathError{Op: "mkdir", Path: part, Err: fs.ErrExist}
			}
			continue
		}
		dir, base, err := d.findParent(part)
		if err != nil {
			return err
		}
		if err := d.do(part, change{kind: KindMkdir, node: len(d.state.nodes), dir: dir, name: base,
			newIsDir: true}); err != nil {
			return err
		}
	}
	return nil
}

// Lock holds a name until it is closed. After a crash nothing is locked.
func (d *Disk) Lock(name string) (io.Closer, error) {
	d.mu.Lock()
	locked := d.locked[clean(name)]
	_, err := d.find(name)
	d.mu.Unlock()
	if locked {
		return nil, fmt.Errorf("faultfs: %s is locked", name)
	}
	if err != nil {
		f, err := d.Create(name, vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.locked[clean(name)] = true
	return &lock{disk: d, name: clean(name)}, nil
}

type lock struct {
	disk *Disk
	name string
}

func (l *lock) Close() error {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	delete(l.disk.locked, l.name)
	return nil
}

// List returns the names in a directory, in their order.
func (d *Disk) List(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, ErrCrashed
	}
	id, err := d.find(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(d.state.nodes[id].viewNames))
	for name := range d.state.nodes[id].viewNames {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Stat describes a file or directory.
func (d *Disk) Stat(name string) (vfs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.crashed {
		return nil, ErrCrashed
	}
	id, err := d.find(name)
	if err != nil {
		return nil, err
	}
	return d.info(path.Base(clean(name)), id), nil
}

// PathBase, PathJoin and PathDir are package path's.
func (d *Disk) PathBase(p string) string { return path.Base(p) }

// PathJoin is path.Join.
func (d *Disk) PathJoin(elem ...string) string { return path.Join(elem...) }

// PathDir is path.Dir.
func (d *Disk) PathDir(p string) string { return path.Dir(p) }

// GetDiskUsage says that there is room.
func (d *Disk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}, nil
}

// Unwrap returns nil: there is no other file system below.
func (d *Disk) Unwrap() vfs.FS { return nil }
