package wal

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2"

	"github.com/foresay/foresay/wal/faultfs"
)

// TestEarlierVersion: a directory of version 1, whose database has no files of large values, is
// read, is of today's version then, and has large values in files of their own from then on.
func TestEarlierVersion(t *testing.T) {
	disk := faultfs.New()
	if err := disk.MkdirAll("/data", 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := pebble.Open("/data/db", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatTableFormatV6})
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("large"), 1000)
	for key, value := range map[string][]byte{
		string(appendIndex(entryPrefix("node", kindRecord), 1)): large,
		string(entryPrefix("node", kindKey)) + "key":            []byte("value"),
	} {
		if err := db.Set([]byte(key), value, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	id := newID()
	writeFile(t, disk, "/data/FORESAY", encodeFormat(id, earliestVersion))
	opts := Options{FS: disk, MemTableBytes: minMemTableBytes}
	for opened := range 3 {
		s := mustOpen(t, "/data", opts)
		f, err := disk.Open("/data/FORESAY")
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(f)
		if err != nil || s.Identity() != id || !bytes.Equal(content, encodeFormat(id, formatVersion)) {
			t.Errorf("the identity is %v, was %v, and the format file says %q, %v", s.Identity(), id, content, err)
		}
		n, err := s.Node("node")
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := n.Keys().Get([]byte("key")); string(v) != "value" {
			t.Errorf("the key has %q", v)
		}
		count := 0
		for r, err := range n.Records() {
			if count++; err != nil || !bytes.Equal(r.Data, large) {
				t.Errorf("record %d has %d bytes, %v", r.Index, len(r.Data), err)
			}
		}
		if count != opened+1 {
			t.Errorf("there are %d records, want %d", count, opened+1)
		}
		var b Batch
		b.Append(n.NextIndex(), large)
		done := make(chan error, 1)
		n.Commit(&b, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		mustClose(t, s)
	}
	names, err := disk.List("/data/db")
	if err != nil || !strings.Contains(strings.Join(names, " "), ".blob") {
		t.Errorf("large values have no file of their own: %q, %v", names, err)
	}
}
