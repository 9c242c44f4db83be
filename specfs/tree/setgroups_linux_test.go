package tree

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// setGroups sets those of this thread alone, which package syscall does for all threads.
func setGroups(groups []uint32) {
	unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
}
