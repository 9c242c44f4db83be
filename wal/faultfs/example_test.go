package faultfs_test

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/wal/faultfs"
)

// What was not synced may be lost, and a file whose directory was not synced may be gone.
func Example() {
	disk := faultfs.New()
	for _, name := range []string{"a", "b"} {
		f, err := disk.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write([]byte("content of " + name))
		}
		if err == nil {
			err = f.Sync()
		}
		if err == nil && name == "a" {
			var dir vfs.File
			if dir, err = disk.OpenDir("/"); err == nil {
				err = dir.Sync()
			}
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for seed := range uint64(3) {
		after := disk.Kill().Crash(seed)
		names, err := after.List("/")
		fmt.Println(names, err)
	}
	// Output:
	// [a] <nil>
	// [a b] <nil>
	// [a] <nil>
}
