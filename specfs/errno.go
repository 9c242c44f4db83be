package specfs

import (
	"fmt"
	"io/fs"
)

// Errno is an error of POSIX with its number on Linux, or OK. It is an error that package io/fs
// understands.
type Errno uint16

// The errors of operations.
const (
	OK           Errno = 0
	EPERM        Errno = 1
	ENOENT       Errno = 2
	EINTR        Errno = 4
	EIO          Errno = 5
	E2BIG        Errno = 7
	EACCES       Errno = 13
	EBUSY        Errno = 16
	EEXIST       Errno = 17
	ENOTDIR      Errno = 20
	EISDIR       Errno = 21
	EINVAL       Errno = 22
	EFBIG        Errno = 27
	ENOSPC       Errno = 28
	EROFS        Errno = 30
	EMLINK       Errno = 31
	ERANGE       Errno = 34
	ENAMETOOLONG Errno = 36
	ENOTEMPTY    Errno = 39
	ELOOP        Errno = 40
	ENODATA      Errno = 61
	EOPNOTSUPP   Errno = 95
	ESTALE       Errno = 116
)

// texts has the name of each error, and what it says.
func texts(e Errno) (name, text string) {
	switch e {
	case OK:
		return "OK", "no error"
	case EPERM:
		return "EPERM", "operation not permitted"
	case ENOENT:
		return "ENOENT", "no such file or directory"
	case EINTR:
		return "EINTR", "interrupted"
	case EIO:
		return "EIO", "input/output error"
	case E2BIG:
		return "E2BIG", "argument too long"
	case EACCES:
		return "EACCES", "permission denied"
	case EBUSY:
		return "EBUSY", "object is busy"
	case EEXIST:
		return "EEXIST", "file exists"
	case ENOTDIR:
		return "ENOTDIR", "not a directory"
	case EISDIR:
		return "EISDIR", "is a directory"
	case EINVAL:
		return "EINVAL", "invalid argument"
	case EFBIG:
		return "EFBIG", "file too large"
	case ENOSPC:
		return "ENOSPC", "no space left"
	case EROFS:
		return "EROFS", "read-only file system"
	case EMLINK:
		return "EMLINK", "too many links"
	case ERANGE:
		return "ERANGE", "out of range"
	case ENAMETOOLONG:
		return "ENAMETOOLONG", "file name too long"
	case ENOTEMPTY:
		return "ENOTEMPTY", "directory not empty"
	case ELOOP:
		return "ELOOP", "too many levels of symbolic links"
	case ENODATA:
		return "ENODATA", "no such attribute"
	case EOPNOTSUPP:
		return "EOPNOTSUPP", "operation not supported"
	case ESTALE:
		return "ESTALE", "stale file handle"
	}
	return fmt.Sprintf("errno %d", uint16(e)), ""
}

// Error says what the error means, as the C library does.
func (e Errno) Error() string {
	name, text := texts(e)
	if text == "" {
		return name
	}
	return text
}

// String returns the name: ENOENT.
func (e Errno) String() string {
	name, _ := texts(e)
	return name
}

// Is makes errors.Is work with the errors of package io/fs.
func (e Errno) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e == ENOENT
	case fs.ErrExist:
		return e == EEXIST || e == ENOTEMPTY
	case fs.ErrPermission:
		return e == EACCES || e == EPERM
	case fs.ErrInvalid:
		return e == EINVAL
	}
	return false
}
