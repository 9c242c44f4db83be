package memdir

import "syscall"

// shared is where Linux has files in memory.
const shared = "/dev/shm"

// tmpfs is the type of such a file system.
const tmpfs = 0x01021994

// freeBytes returns how much can be written there, nothing if that is not memory.
func freeBytes(dir string) uint64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || int64(s.Type) != tmpfs || syscall.Access(dir, 2) != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize)
}
