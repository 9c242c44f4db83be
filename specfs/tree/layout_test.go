package tree

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/specfs"
)

// TestLayouts tests what the records of a file system look like.
func TestLayouts(t *testing.T) {
	file := object{
		Attr: specfs.Attr{
			Kind: specfs.File, Mode: 0o4755, UID: 1, GID: 2, Links: 3, Size: 4, Modified: 5, Changed: 6,
			Accessed: -7, Created: 8,
		},
		Content: 9, Meta: 10, Stat: 11, Data: 12, Names: 13, Place: 14, Xattrs: 15,
	}
	link := object{Attr: specfs.Attr{Kind: specfs.Symlink, Mode: 0o777}, Target: "there", Parent: 1}
	wiretest.Layouts(t,
		wiretest.Sample("file", objectLayout, file),
		wiretest.Sample("symlink", objectLayout, link),
		wiretest.Sample("entry", entryLayout, entry{ID: 1 << 40, Kind: specfs.Directory, Version: 300}))
}
