// Package memdir has tests keep their files in memory.
package memdir

import "os"

// leastBytes is how much has to be free: all that the tests of a package have on their disks at a
// time is less.
const leastBytes = 4 << 30

// Use has t.TempDir of a package's tests, and of processes that they start, be in memory, if the
// system has files there and TMPDIR does not say where to be. It is for the TestMain of packages
// whose replicas write to real files in virtual time: most of their tests' time is a disk's syncs,
// which tell nothing, as nobody pulls the plug. What systems do to files is for package wal to
// test.
func Use() {
	if os.Getenv("TMPDIR") == "" && shared != "" && freeBytes(shared) >= leastBytes {
		if err := os.Setenv("TMPDIR", shared); err != nil {
			panic(err)
		}
	}
}
