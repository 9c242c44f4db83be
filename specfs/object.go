package specfs

import (
	"fmt"
	"io/fs"
	"slices"
	"time"
)

// ID names an object of a file system. An ID is never used again.
type ID uint64

// Root is the ID of the directory at the top of every file system.
const Root ID = 1

// Version tells apart the states of one aspect of an object: it is the serial number of the
// transaction that changed the aspect last. The version of what is not there is 0.
type Version uint64

// Time is nanoseconds since 1970, in UTC.
type Time int64

// TimeOf returns the Time of a time.Time.
func TimeOf(t time.Time) Time { return Time(t.UnixNano()) }

// Std returns the time.Time of a Time.
func (t Time) Std() time.Time { return time.Unix(0, int64(t)) }

// Kind says what an object is.
type Kind uint8

// The kinds of objects. Devices cannot be made.
const (
	File Kind = iota + 1
	Directory
	Symlink
	Fifo
	Socket
)

func (k Kind) String() string {
	switch k {
	case File:
		return "file"
	case Directory:
		return "directory"
	case Symlink:
		return "symlink"
	case Fifo:
		return "fifo"
	case Socket:
		return "socket"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Mode is the permission bits of an object: the lowest twelve bits of POSIX's st_mode.
type Mode uint16

// Bits of a Mode beyond read, write and execute.
const (
	SetUID   Mode = 0o4000
	SetGID   Mode = 0o2000
	Sticky   Mode = 0o1000
	AllModes Mode = 0o7777
)

// Attr is the attributes of an object.
type Attr struct {
	Kind     Kind
	Mode     Mode
	UID, GID uint32
	Links    uint32 // of a directory: 2, and one for each directory in it
	Size     uint64 // in bytes; of a symlink, the length of its target; of a directory always 4096
	Modified Time   // the content: POSIX's mtime
	Changed  Time   // anything: ctime
	Accessed Time   // atime, which reading does not change
	Created  Time
}

// FileMode returns kind and mode as package io/fs has them.
func (a Attr) FileMode() fs.FileMode {
	m := fs.FileMode(a.Mode & 0o777)
	for _, bit := range []struct {
		is  bool
		bit fs.FileMode
	}{
		{a.Kind == Directory, fs.ModeDir}, {a.Kind == Symlink, fs.ModeSymlink}, {a.Kind == Fifo, fs.ModeNamedPipe},
		{a.Kind == Socket, fs.ModeSocket}, {a.Mode&SetUID != 0, fs.ModeSetuid}, {a.Mode&SetGID != 0, fs.ModeSetgid},
		{a.Mode&Sticky != 0, fs.ModeSticky},
	} {
		if bit.is {
			m |= bit.bit
		}
	}
	return m
}

// Cred is who asks for an operation. UID 0 may do everything.
type Cred struct {
	UID, GID uint32
	Groups   []uint32 // further ones
}

// Super reports whether permissions are not checked.
func (c Cred) Super() bool { return c.UID == 0 }

// In reports whether the caller belongs to a group.
func (c Cred) In(gid uint32) bool { return c.GID == gid || slices.Contains(c.Groups, gid) }

// Access is what a caller wants to do with an object: POSIX's R_OK, W_OK and X_OK.
type Access uint8

// The bits of an Access.
const (
	Execute Access = 1 << iota // of a directory: to look up names
	Write
	Read
)
