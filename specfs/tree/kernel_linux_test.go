package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/specfs"
)

// TestAgainstKernel makes the same random calls of a tree and of a directory of the machine's own
// file system, and compares errors, attributes, data and listings. As root it plays several users.
func TestAgainstKernel(t *testing.T) {
	first, worlds := seed.First(t, 1), seed.Count(t, 60)
	errs := make(chan error)
	go func() {
		defer close(errs)
		// The thread has other users' credentials at the end, and is not used again.
		runtime.LockOSThread()
		for s := first; s < first+uint64(worlds); s++ {
			if err := againstKernel(t.TempDir(), s); err != nil {
				errs <- fmt.Errorf("%s=%d: %w", seed.Variable, s, err)
				return
			}
		}
	}()
	for err := range errs {
		t.Error(err)
	}
}

func againstKernel(dir string, seed uint64) error {
	unix.Umask(0)
	k, err := newKernel(dir)
	if err != nil {
		return err
	}
	defer k.close()
	w := newWorld(seed)
	if !k.super {
		w.cred = specfs.Cred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	}
	Do(w.Memory, Call{Serial: 1}, specfs.SetAttr{
		ID: specfs.Root, Set: specfs.SetOwner | specfs.SetGroup | specfs.SetMode,
		UID: w.cred.UID, GID: w.cred.GID, Mode: 0o777,
	})
	for step := range 400 {
		if k.super && step%20 == 0 {
			w.cred = pick(w.rnd, specfs.Cred{}, specfs.Cred{UID: 1001, GID: 1001},
				specfs.Cred{UID: 1002, GID: 1002, Groups: []uint32{1001}})
		}
		op := w.op()
		if !k.comparable(w, op) {
			continue
		}
		k.become(w.cred)
		want, err := k.do(op)
		k.become(specfs.Cred{})
		if err != nil {
			return fmt.Errorf("step %d: %#v: %w", step, op, err)
		}
		got := w.do(op, nil)
		if diff := k.differ(w, op, got, want); diff != "" {
			return fmt.Errorf("step %d: %#v by %+v: %s", step, op, w.cred, diff)
		}
	}
	return nil
}

// kernel executes operations by system calls.
type kernel struct {
	fds    map[specfs.ID]int    // opened with O_PATH
	inodes map[uint64]specfs.ID // what has a number now; numbers are used again
	super  bool
	links  bool // directories count those in them
	xattrs bool
}

func newKernel(dir string) (*kernel, error) {
	k := &kernel{fds: map[specfs.ID]int{}, inodes: map[uint64]specfs.ID{}, super: os.Getuid() == 0}
	if err := os.Chmod(dir, 0o777); err != nil {
		return nil, err
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	k.fds[specfs.Root], k.inodes[st.Ino], k.links = fd, specfs.Root, st.Nlink == 2
	k.xattrs = unix.Setxattr(dir, "user.probe", nil, 0) == nil && unix.Removexattr(dir, "user.probe") == nil
	return k, nil
}

// close leaves nothing that the test cannot remove.
func (k *kernel) close() {
	for id, fd := range k.fds {
		if _, attr, err := k.getAttr(fd); err == nil && attr.Kind == specfs.Directory {
			unix.Chmod(k.path(id), 0o700)
		}
		unix.Close(fd)
	}
}

// become gives this thread the credentials for files.
func (k *kernel) become(c specfs.Cred) {
	if !k.super {
		return
	}
	groups := []uint32{c.GID}
	groups = append(groups, c.Groups...)
	unix.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	setGroups(groups)
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(c.GID), 0, 0)
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(c.UID), 0, 0)
}

// comparable reports whether an operation can be made by system calls so that both must agree.
func (k *kernel) comparable(w *world, op specfs.Op) bool {
	switch op := op.(type) {
	case specfs.ParentOf:
		return w.cred.Super() && op.ID != specfs.Root && w.kind(op.ID) == specfs.Directory
	case specfs.Check: // The kernel lets root execute directories and asks nothing more of others.
		return w.kind(op.ID) != specfs.Symlink
	case specfs.ReadAt:
		return w.kind(op.ID) == specfs.File
	case specfs.WriteAt:
		return w.kind(op.ID) == specfs.File || w.kind(op.ID) == specfs.Directory
	case specfs.Allocate:
		return w.kind(op.ID) == specfs.File || w.kind(op.ID) == specfs.Directory
	case specfs.SetAttr:
		return op.Set&specfs.SetSize == 0 || w.kind(op.ID) == specfs.File || w.kind(op.ID) == specfs.Directory
	case specfs.Link:
		// What somebody may link to who does not own it is a setting of the kernel.
		o := (&tree{space: w.Memory}).object(op.ID)
		return w.cred.Super() || o.UID == w.cred.UID
	case specfs.GetXattr, specfs.ListXattrs, specfs.SetXattr, specfs.RemoveXattr:
		return k.xattrs
	}
	return true
}

func (k *kernel) path(id specfs.ID) string { return fmt.Sprintf("/proc/thread-self/fd/%d", k.fds[id]) }

// do makes the system calls. The error is not one of the operation.
func (k *kernel) do(op specfs.Op) (specfs.Result, error) {
	result, err := k.call(op)
	var errno unix.Errno
	switch {
	case errors.As(err, &errno):
		return specfs.Result{Errno: specfs.Errno(errno)}, nil
	case err != nil:
		return result, err
	}
	return result, nil
}

func (k *kernel) call(op specfs.Op) (r specfs.Result, err error) {
	switch op := op.(type) {
	case specfs.Lookup:
		r.ID, r.Attr.Kind, err = k.lookup(k.fds[op.Parent], op.Name)
	case specfs.ParentOf:
		r.ID, _, err = k.lookup(k.fds[op.ID], "..")
	case specfs.GetAttr:
		r.ID, r.Attr, err = k.getAttr(k.fds[op.ID])
	case specfs.Check:
		err = unix.Faccessat2(k.fds[op.ID], "", uint32(op.Access), unix.AT_EMPTY_PATH|unix.AT_EACCESS)
	case specfs.List:
		r.Entries, err = k.list(op)
	case specfs.ReadAt:
		r.Data = make([]byte, op.Length)
		r.N, err = k.opened(op.ID, unix.O_RDONLY, func(fd int) (int, error) {
			return unix.Pread(fd, r.Data, int64(op.Offset))
		})
		r.Data = r.Data[:max(0, r.N)]
	case specfs.ReadLink:
		b := make([]byte, 5000)
		if r.N, err = unix.Readlinkat(k.fds[op.ID], "", b); err == nil {
			r.Data, r.N = b[:r.N], 0
		} else if err == unix.ENOENT { // readlink(2): what an empty path means if it is no symlink
			err = unix.EINVAL
		}
	case specfs.Make:
		r, err = k.make(op)
	case specfs.Link:
		err = unix.Linkat(unix.AT_FDCWD, k.path(op.ID), k.fds[op.Parent], op.Name, unix.AT_SYMLINK_FOLLOW)
	case specfs.Unlink:
		r.ID, _, _ = k.lookup(k.fds[op.Parent], op.Name)
		err = unix.Unlinkat(k.fds[op.Parent], op.Name, 0)
	case specfs.RemoveDir:
		r.ID, _, _ = k.lookup(k.fds[op.Parent], op.Name)
		err = unix.Unlinkat(k.fds[op.Parent], op.Name, unix.AT_REMOVEDIR)
	case specfs.Rename:
		flags := uint(unix.RENAME_NOREPLACE)
		if op.Replace {
			flags = 0
		} else if op.Exchange {
			flags = unix.RENAME_EXCHANGE
		}
		err = unix.Renameat2(k.fds[op.From], op.Name, k.fds[op.To], op.NewName, flags)
	case specfs.SetAttr:
		err = k.setAttr(op)
	case specfs.WriteAt:
		flags := unix.O_WRONLY
		if op.Append {
			flags |= unix.O_APPEND
		}
		r.N, err = k.opened(op.ID, flags, func(fd int) (int, error) {
			return unix.Pwrite(fd, op.Data, int64(op.Offset))
		})
	case specfs.Allocate:
		mode := uint32(0)
		if op.Keep {
			mode |= unix.FALLOC_FL_KEEP_SIZE
		}
		if op.Punch {
			mode |= unix.FALLOC_FL_PUNCH_HOLE
		}
		_, err = k.opened(op.ID, unix.O_WRONLY, func(fd int) (int, error) {
			return 0, unix.Fallocate(fd, mode, int64(op.Offset), int64(op.Length))
		})
	default:
		r, err = k.xattr(op)
	}
	return r, err
}

func (k *kernel) xattr(op specfs.Op) (r specfs.Result, err error) {
	switch op := op.(type) {
	case specfs.GetXattr:
		b := make([]byte, 1000)
		if r.N, err = unix.Getxattr(k.path(op.ID), op.Name, b); err == nil {
			r.Data = b[:r.N]
		}
	case specfs.ListXattrs:
		b := make([]byte, 1000)
		n, err := unix.Listxattr(k.path(op.ID), b)
		for _, name := range strings.Split(string(b[:max(0, n)]), "\x00") {
			if strings.HasPrefix(name, userXattrs) {
				r.Xattrs = append(r.Xattrs, name)
			}
		}
		slices.Sort(r.Xattrs)
		return r, err
	case specfs.SetXattr:
		flags := 0
		if op.Create {
			flags = unix.XATTR_CREATE
		} else if op.Replace {
			flags = unix.XATTR_REPLACE
		}
		err = unix.Setxattr(k.path(op.ID), op.Name, op.Value, flags)
	case specfs.RemoveXattr:
		err = unix.Removexattr(k.path(op.ID), op.Name)
	default:
		panic(fmt.Sprintf("%T", op))
	}
	return r, err
}

func (k *kernel) lookup(dir int, name string) (specfs.ID, specfs.Kind, error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(fd)
	id, attr, err := k.getAttr(fd)
	return id, attr.Kind, err
}

func (k *kernel) getAttr(fd int) (specfs.ID, specfs.Attr, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, specfs.Attr{}, err
	}
	kinds := map[uint32]specfs.Kind{
		unix.S_IFREG: specfs.File, unix.S_IFDIR: specfs.Directory, unix.S_IFLNK: specfs.Symlink,
		unix.S_IFIFO: specfs.Fifo, unix.S_IFSOCK: specfs.Socket,
	}
	a := specfs.Attr{
		Kind: kinds[st.Mode&unix.S_IFMT], Mode: specfs.Mode(st.Mode) & specfs.AllModes, UID: st.Uid, GID: st.Gid,
		Links: uint32(st.Nlink), Size: uint64(st.Size),
	}
	return k.inodes[st.Ino], a, nil
}

func (k *kernel) list(op specfs.List) (entries []specfs.Entry, err error) {
	_, err = k.opened(op.ID, unix.O_RDONLY|unix.O_DIRECTORY, func(fd int) (int, error) {
		b := make([]byte, 1<<16)
		for {
			n, err := unix.Getdents(fd, b)
			if n <= 0 || err != nil {
				return 0, err
			}
			var names []string
			_, _, names = unix.ParseDirent(b[:n], -1, names)
			for _, name := range names {
				entries = append(entries, specfs.Entry{Name: name})
			}
		}
	})
	slices.SortFunc(entries, func(a, b specfs.Entry) int { return strings.Compare(a.Name, b.Name) })
	return entries[:min(op.Most, len(entries))], err
}

func (k *kernel) opened(id specfs.ID, flags int, use func(fd int) (int, error)) (int, error) {
	fd, err := unix.Open(k.path(id), flags|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return use(fd)
}

func (k *kernel) make(op specfs.Make) (r specfs.Result, err error) {
	dir, mode := k.fds[op.Parent], uint32(op.Mode)
	switch op.Kind {
	case specfs.File:
		var fd int
		if fd, err = unix.Openat(dir, op.Name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, mode); err == nil {
			unix.Close(fd)
		}
	case specfs.Directory:
		err = unix.Mkdirat(dir, op.Name, mode)
	case specfs.Symlink:
		err = unix.Symlinkat(op.Target, dir, op.Name)
	case specfs.Fifo:
		err = unix.Mknodat(dir, op.Name, unix.S_IFIFO|mode, 0)
	case specfs.Socket:
		err = unix.Mknodat(dir, op.Name, unix.S_IFSOCK|mode, 0)
	}
	if err != nil {
		return r, err
	}
	fd, err := unix.Openat(dir, op.Name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return r, fmt.Errorf("opening what was made: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return r, fmt.Errorf("what was made: %v", err)
	}
	k.fds[op.New], k.inodes[st.Ino] = fd, op.New
	r.ID, r.Attr, err = k.getAttr(fd)
	return r, err
}

func (k *kernel) setAttr(op specfs.SetAttr) error {
	path := k.path(op.ID)
	switch {
	case op.Set&specfs.SetMode != 0:
		return unix.Chmod(path, uint32(op.Mode))
	case op.Set&(specfs.SetOwner|specfs.SetGroup) != 0:
		uid, gid := -1, -1
		if op.Set&specfs.SetOwner != 0 {
			uid = int(op.UID)
		}
		if op.Set&specfs.SetGroup != 0 {
			gid = int(op.GID)
		}
		return unix.Fchownat(k.fds[op.ID], "", uid, gid, unix.AT_EMPTY_PATH)
	case op.Set&specfs.SetSize != 0:
		return unix.Truncate(path, int64(op.Size))
	}
	ts := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Nsec: unix.UTIME_OMIT}}
	for i, x := range []struct {
		set, now specfs.Setting
		to       specfs.Time
	}{
		{specfs.SetAccessed, specfs.SetAccessedNow, op.Times.Accessed},
		{specfs.SetModified, specfs.SetModifiedNow, op.Times.Modified},
	} {
		if op.Set&x.now != 0 {
			ts[i].Nsec = unix.UTIME_NOW
		} else if op.Set&x.set != 0 {
			ts[i] = unix.NsecToTimespec(int64(x.to))
		}
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, ts, 0)
}

// differ tells how the results of an operation differ, or what it left behind.
func (k *kernel) differ(w *world, op specfs.Op, got, want specfs.Result) string {
	if got.Errno != want.Errno {
		return fmt.Sprintf("%v, the kernel says %v", got.Errno, want.Errno)
	}
	if got.Errno != specfs.OK {
		return ""
	}
	switch op.(type) {
	case specfs.Rename: // the kernel does not tell what was there
	case specfs.List:
		for i := range got.Entries {
			got.Entries[i].ID, got.Entries[i].Kind = 0, 0
		}
		if !slices.Equal(got.Entries, want.Entries) {
			return fmt.Sprintf("lists %v, the kernel %v", got.Entries, want.Entries)
		}
	default:
		if got.ID != want.ID || got.Attr.Kind != want.Attr.Kind || !bytes.Equal(got.Data, want.Data) || got.N != want.N ||
			!slices.Equal(got.Xattrs, want.Xattrs) {
			return fmt.Sprintf("%+v, the kernel says %+v", got, want)
		}
	}
	for _, id := range w.objects {
		_, attr, err := k.getAttr(k.fds[id])
		if err != nil {
			return err.Error()
		}
		o := (&tree{space: w.Memory}).object(id)
		if o.Kind == specfs.Directory {
			attr.Size = 4096
			if !k.links {
				attr.Links = o.Links
			}
		}
		o.Modified, o.Changed, o.Accessed, o.Created = 0, 0, 0, 0
		if o.Attr != attr {
			return fmt.Sprintf("then %d is %+v, for the kernel %+v", id, o.Attr, attr)
		}
	}
	return ""
}
