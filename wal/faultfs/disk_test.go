package faultfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const anyCategory = vfs.WriteCategoryUnspecified

func create(t *testing.T, d *Disk, name, content string, sync bool) vfs.File {
	t.Helper()
	f, err := d.Create(name, anyCategory)
	if err == nil {
		_, err = f.Write([]byte(content))
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func syncDir(t *testing.T, d *Disk, name string) {
	t.Helper()
	dir, err := d.OpenDir(name)
	if err == nil {
		err = dir.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// read returns a file's content, or what Open returned.
func read(t *testing.T, d *Disk, name string) string {
	t.Helper()
	f, err := d.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "missing"
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// outcomes crashes with many seeds, and counts what a file holds then.
func outcomes(t *testing.T, d *Disk, name string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for seed := range uint64(300) {
		counts[read(t, d.Kill().Crash(seed), name)]++
	}
	return counts
}

func TestWhatSurvives(t *testing.T) {
	d := New()
	if err := d.MkdirAll("dir", 0); err != nil {
		t.Fatal(err)
	}
	f := create(t, d, "dir/f", "old", true)
	if got := outcomes(t, d, "dir/f"); got["missing"] == 0 || got["old"] == 0 || len(got) != 2 {
		t.Errorf("no directory synced: %v", got)
	}
	syncDir(t, d, "dir")
	if got := outcomes(t, d, "dir/f"); got["missing"] == 0 || got["old"] == 0 || len(got) != 2 {
		t.Errorf("the directory's own name not synced: %v", got)
	}
	syncDir(t, d, "/")
	if got := outcomes(t, d, "dir/f"); got["old"] != 300 {
		t.Errorf("all synced: %v", got)
	}
	if _, err := f.WriteAt([]byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(t, d, "dir/f"); got["old"] == 0 || got["new"] == 0 || len(got) != 2 {
		t.Errorf("a write of one sector not synced: %v", got)
	}
	if err := d.Rename("dir/f", "dir/g"); err != nil {
		t.Fatal(err)
	}
	both := 0
	for seed := range uint64(300) {
		after := d.Kill().Crash(seed)
		if (read(t, after, "dir/f") == "missing") == (read(t, after, "dir/g") == "missing") {
			both++
		}
	}
	if both > 0 {
		t.Errorf("a rename was not atomic %d times", both)
	}
	syncDir(t, d, "dir")
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(t, d, "dir/g"); got["new"] != 300 {
		t.Errorf("all synced: %v", got)
	}
	if err := d.Remove("dir/g"); err != nil {
		t.Fatal(err)
	}
	if got := outcomes(t, d, "dir/g"); got["new"] == 0 || got["missing"] == 0 || len(got) != 2 {
		t.Errorf("a removal not synced: %v", got)
	}
}

// A write of several sectors may be torn between them, in any way, and only between them.
func TestTornWrite(t *testing.T) {
	d := New()
	zeros, ones := bytes.Repeat([]byte{0}, 100+3*sectorBytes), bytes.Repeat([]byte{1}, 3*sectorBytes)
	f := create(t, d, "f", string(zeros), true)
	syncDir(t, d, "/")
	if _, err := f.WriteAt(ones, 100); err != nil {
		t.Fatal(err)
	}
	patterns := map[string]int{}
	for content, n := range outcomes(t, d, "f") {
		pattern := ""
		for _, part := range []string{content[100:512], content[512:1024], content[1024:1536], content[1536:]} {
			switch part {
			case string(ones[:len(part)]):
				pattern += "1"
			case string(zeros[:len(part)]):
				pattern += "0"
			default:
				t.Fatalf("a sector is torn: %x", part)
			}
		}
		if content[:100] != string(zeros[:100]) {
			t.Fatal("bytes before the write changed")
		}
		patterns[pattern] += n
	}
	if len(patterns) < 14 {
		t.Errorf("only %d of 16 ways of tearing: %v", len(patterns), patterns)
	}
}

// A sync that fails drops what it should have written; later ones do not bring it back.
func TestFailedSync(t *testing.T) {
	d := New()
	f := create(t, d, "f", "a", false)
	syncDir(t, d, "/")
	d.Inject(FailNth(KindSync, 1, syscall.EIO))
	if err := f.Sync(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v", err)
	}
	if _, err := f.Write([]byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, "f"); got != "ab" {
		t.Errorf("before the crash: %q", got)
	}
	if got := outcomes(t, d, "f"); got["\x00b"] != 300 {
		t.Errorf("after the crash: %v", got)
	}
}

func TestFull(t *testing.T) {
	d := New()
	d.Inject(Full(5))
	f := create(t, d, "f", "abc", true)
	if n, err := f.Write([]byte("defg")); n != 2 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if n, err := f.Write([]byte("h")); n != 0 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("wrote %d, %v", n, err)
	}
	if _, err := d.Create("g", anyCategory); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("create: %v", err)
	}
	if got := read(t, d, "f"); got != "abcde" {
		t.Errorf("read %q", got)
	}
}

func TestShortReads(t *testing.T) {
	d := New()
	create(t, d, "f", "0123456789", true)
	d.Inject(ShortReads(1))
	short := 0
	for range 50 {
		f, err := d.Open("f")
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		n, err := f.Read(buf)
		if err != nil || n == 0 || string(buf[:n]) != "0123456789"[:n] {
			t.Fatalf("read %d, %q, %v", n, buf, err)
		}
		if n < 10 {
			short++
		}
		if n, err := f.ReadAt(buf, 0); n != 10 || err != nil {
			t.Fatalf("read at: %d, %v", n, err)
		}
		if n, err := f.ReadAt(buf, 8); n != 2 || err != io.EOF {
			t.Fatalf("read at the end: %d, %v", n, err)
		}
	}
	if short < 10 {
		t.Errorf("only %d of 50 were short", short)
	}
}

// The moments of a trace are the disks of the crashes that a run would have had, and the same seed
// gives the same disk.
func TestMomentsAreCrashes(t *testing.T) {
	script := func(d *Disk, steps int) {
		f := create(t, d, "f", "", false)
		for i := range steps {
			switch i % 3 {
			case 0:
				if _, err := f.Write(bytes.Repeat([]byte{byte('a' + i)}, 700)); err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := f.Sync(); err != nil {
					t.Fatal(err)
				}
			default:
				syncDir(t, d, "/")
			}
		}
	}
	traced := New()
	traced.Trace()
	script(traced, 12)
	n := 0
	for moment := range traced.Moments() {
		if moment.Ops < 2 { // the file is made, and written with nothing, in two operations
			continue
		}
		live := New()
		script(live, moment.Ops-2)
		if live.Ops() != moment.Ops {
			t.Fatalf("%d operations, want %d", live.Ops(), moment.Ops)
		}
		seed := uint64(moment.Ops)
		want := read(t, live.Crash(seed), "f")
		for range 2 {
			if got := read(t, moment.Crash(seed), "f"); got != want {
				t.Fatalf("after %d operations: %.20q, and in the run %.20q", moment.Ops, got, want)
			}
		}
		if _, err := live.Create("g", anyCategory); !errors.Is(err, ErrCrashed) {
			t.Fatalf("after a crash: %v", err)
		}
		n++
	}
	if n != 13 {
		t.Errorf("%d moments", n)
	}
}

func TestNamesAndLocks(t *testing.T) {
	d := New()
	if err := d.MkdirAll("/a/b", 0); err != nil {
		t.Fatal(err)
	}
	create(t, d, "a/b/f", "f", true)
	if err := d.Link("a/b/f", "a/b/g"); err != nil || read(t, d, "a/b/g") != "f" {
		t.Errorf("link: %v", err)
	}
	if err := d.Link("a/b/f", "a/b/g"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("link onto a file: %v", err)
	}
	f, err := d.ReuseForWrite("a/b/f", "a/b/h", anyCategory)
	if err == nil {
		_, err = f.Write([]byte("ha"))
	}
	if err != nil || read(t, d, "a/b/h") != "ha" || read(t, d, "a/b/f") != "missing" {
		t.Errorf("reuse: %v", err)
	}
	if names, err := d.List("a/b"); err != nil || fmt.Sprint(names) != "[g h]" {
		t.Errorf("list: %v, %v", names, err)
	}
	if err := d.Remove("a/b"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory with files was removed: %v", err)
	}
	for what, err := range map[string]error{
		"remove": d.Remove("x"), "rename": d.Rename("x", "y"), "link": d.Link("x", "y"),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of what is not there: %v", what, err)
		}
	}
	if err := d.RemoveAll("a"); err != nil || d.RemoveAll("a") != nil {
		t.Errorf("remove all: %v", err)
	}
	l, err := d.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock("lock"); err == nil {
		t.Error("locked twice")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Lock("lock"); err != nil {
		t.Error(err)
	}
}
