package tree

import (
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// TestInvariants makes random calls and looks for broken invariants. An operation that fails, or
// that says that it changes nothing, changes nothing; what one changes, it reports.
func TestInvariants(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 40)); s++ {
		w := newWorld(s)
		for range 300 {
			w.become()
			op, before, noted := w.op(), w.Copy(), &noted{}
			if w.rnd.IntN(3) == 0 {
				op = w.tidy()
			}
			result := w.do(op, noted)
			switch same := text(before) == text(w.Memory); {
			case !same && (result.Errno != specfs.OK || !op.Changes()):
				t.Fatalf("seed %d: %#v changes something, and says %v", s, op, result.Errno)
			case same != (len(noted.changed) == 0):
				// Nothing but a file that is cut to nothing again, say, changes without a version.
				t.Fatalf("seed %d: %#v says %v and that it changed %v", s, op, result.Errno, noted.changed)
			}
			for _, c := range noted.changed {
				if got := VersionOf(before, c.Part); got != c.Version {
					t.Fatalf("seed %d: %#v says that %v was changed, which had %d", s, op, c, got)
				}
				if got := VersionOf(w.Memory, c.Part); got != w.serial && got != 0 {
					t.Fatalf("seed %d: %#v has changed %v, which has %d in transaction %d", s, op, c, got, w.serial)
				}
			}
			w.check(t)
		}
	}
}

// TestSaw: the result of an operation is a function of what it says that it saw. It is the same on
// two states of a file system in which that has the same versions.
func TestSaw(t *testing.T) {
	first, compared := seed.First(t, 1), 0
	for s := first; s < first+uint64(seed.Count(t, 60)); s++ {
		w := newWorld(s)
		for range 120 {
			w.do(w.op(), nil)
			w.do(w.tidy(), nil)
		}
		for range 20 {
			then := *w
			then.Memory = w.Copy()
			for range 1 + w.rnd.IntN(3) {
				w.become()
				noted := &noted{}
				w.do(pick(w.rnd, w.change(), w.tidy()), noted)
				for _, c := range noted.changed {
					then.focus = append(then.focus, c.Part.ID)
				}
			}
			for range 50 {
				w.become()
				compared += w.compare(t, s, then.Memory, pick(w.rnd, then.op(), then.tidy()))
			}
		}
	}
	if compared < 5000 && !seed.Named() {
		t.Fatalf("compared only %d results", compared)
	}
}

// compare executes an operation on a copy of an earlier state and of the present one, and returns 1
// if nothing that it saw in the former has changed since.
func (w *world) compare(t *testing.T, seed uint64, then *keyspace.Memory, op specfs.Op) int {
	t.Helper()
	if m, ok := op.(specfs.Make); ok {
		m.New = 1 << 40
		op = m
	}
	noted := &noted{}
	call := w.call(noted)
	predicted := Do(then.Copy(), call, op)
	for _, a := range noted.saw {
		if VersionOf(w.Memory, a.Part) != a.Version {
			return 0
		}
	}
	call.Witness = nil
	if actual := Do(w.Copy(), call, op); !reflect.DeepEqual(predicted, actual) {
		t.Fatalf("seed %d: %#v: %+v, but %+v where nothing of %v has changed", seed, op, predicted, actual, noted.saw)
	}
	return 1
}

// build makes objects by their paths, and returns their IDs.
func build(t *testing.T, w *world, paths ...string) map[string]specfs.ID {
	t.Helper()
	ids := map[string]specfs.ID{"": specfs.Root}
	for _, p := range paths {
		kind, path := specfs.File, strings.TrimSuffix(p, "/")
		if path != p {
			kind = specfs.Directory
		}
		dir, name := "", path
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			dir, name = path[:i], path[i+1:]
		}
		id := w.objects[len(w.objects)-1] + 1
		r := w.do(specfs.Make{Parent: ids[dir], Name: name, New: id, Kind: kind, Mode: 0o755}, nil)
		if r.Errno != specfs.OK {
			t.Fatalf("%s: %v", p, r.Errno)
		}
		ids[path] = id
	}
	return ids
}

// TestNamesDoNotConflict: who creates one name does not see another one's, nor the directory's
// attributes; who lists the directory depends on all of them, and who asks for its attributes on
// those [rule 3 of DESIGN.md].
func TestNamesDoNotConflict(t *testing.T) {
	w := newWorld(1)
	dir := build(t, w, "d/")["d"]
	one, two := specfs.Make{Parent: dir, Name: "one", New: 100, Kind: specfs.File}, specfs.Lookup{Parent: dir, Name: "two"}
	listing, attr := specfs.List{ID: dir, Most: 9}, specfs.GetAttr{ID: dir}
	var made, looked, listed, asked noted
	for _, x := range []struct {
		op   specfs.Op
		note *noted
	}{{two, &looked}, {listing, &listed}, {attr, &asked}, {one, &made}} {
		w.do(x.op, x.note)
	}
	conflict := func(n *noted) bool {
		return slices.ContainsFunc(made.changed, func(c specfs.Assumption) bool { return slices.Contains(n.saw, c) })
	}
	if conflict(&looked) || !conflict(&listed) || !conflict(&asked) {
		t.Errorf("a new name conflicts with another one's absence: %v; with a listing: %v; with attributes: %v",
			conflict(&looked), conflict(&listed), conflict(&asked))
	}
	if r := w.do(specfs.Make{Parent: dir, Name: "two", New: 101, Kind: specfs.File}, nil); r.Errno != specfs.OK {
		t.Fatal(r.Errno)
	}
	if got := VersionOf(w.Memory, specfs.Part{ID: dir, Aspect: specfs.Name, Name: "two"}); got != w.serial {
		t.Errorf("a name that was absent has version %d, made by %d", got, w.serial)
	}
}

// TestAppends: two appends never overlap, whatever their callers believe of the size.
func TestAppends(t *testing.T) {
	w := newWorld(1)
	f := build(t, w, "f")["f"]
	for _, text := range []string{"one ", "two"} {
		var n noted
		w.do(specfs.WriteAt{ID: f, Offset: 0, Append: true, Data: []byte(text)}, &n)
		for _, a := range n.saw {
			if a.Part.Aspect == specfs.Data || a.Part.Aspect == specfs.Stat {
				t.Errorf("an append depends on %v", a)
			}
		}
	}
	if r := w.do(specfs.ReadAt{ID: f, Length: 99}, nil); string(r.Data) != "one two" {
		t.Errorf("the file has %q", r.Data)
	}
}

// TestTruncate: what was cut off is zeros if the file grows again, and so is a hole.
func TestTruncate(t *testing.T) {
	w := newWorld(1)
	f := build(t, w, "f")["f"]
	const length = 3 * blockBytes
	w.do(specfs.WriteAt{ID: f, Data: bytes.Repeat([]byte("x"), length)}, nil)
	for _, op := range []specfs.Op{
		specfs.SetAttr{ID: f, Set: specfs.SetSize, Size: blockBytes + 5},
		specfs.SetAttr{ID: f, Set: specfs.SetSize, Size: length},
		specfs.Allocate{ID: f, Offset: 3, Length: 4, Keep: true, Punch: true},
	} {
		if r := w.do(op, nil); r.Errno != specfs.OK {
			t.Fatalf("%#v: %v", op, r.Errno)
		}
		w.check(t)
	}
	want := append(bytes.Repeat([]byte("x"), blockBytes+5), make([]byte, length-blockBytes-5)...)
	clear(want[3:7])
	if r := w.do(specfs.ReadAt{ID: f, Length: 2 * length}, nil); !bytes.Equal(r.Data, want) {
		t.Errorf("%d bytes, of which %d are x, want %d, of which %d are",
			len(r.Data), bytes.Count(r.Data, []byte("x")), len(want), bytes.Count(want, []byte("x")))
	}
}

// TestTimes: an object's times never go back, but for those that somebody sets.
func TestTimes(t *testing.T) {
	w := newWorld(1)
	f := build(t, w, "f")["f"]
	at := func(now specfs.Time, op specfs.Op) specfs.Attr {
		w.serial++
		if r := Do(w.Memory, Call{Serial: w.serial, Now: now}, op); r.Errno != specfs.OK {
			t.Fatal(r.Errno)
		}
		return Do(w.Memory, Call{}, specfs.GetAttr{ID: f}).Attr
	}
	if a := at(1e9, specfs.WriteAt{ID: f, Data: []byte("x")}); a.Modified != 1e9 || a.Changed != 1e9 {
		t.Errorf("written at 1e9: %+v", a)
	}
	if a := at(5e8, specfs.WriteAt{ID: f, Data: []byte("y")}); a.Modified != 1e9 || a.Changed != 1e9 {
		t.Errorf("written by a clock that is behind: %+v", a)
	}
	old := specfs.SetAttr{ID: f, Set: specfs.SetModified, Times: specfs.Times{Modified: 7}}
	if a := at(2e9, old); a.Modified != 7 || a.Changed != 2e9 {
		t.Errorf("set to 7 at 2e9: %+v", a)
	}
}

// TestReap: a file without a name stays until it is reaped, in steps. So do blocks that were cut
// off.
func TestReap(t *testing.T) {
	w := newWorld(1)
	f := build(t, w, "f")["f"]
	size := uint64(3 * reapKeys * blockBytes)
	for at := uint64(0); at < size; at += specfs.MaxDataBytes {
		w.do(specfs.WriteAt{ID: f, Offset: at, Data: bytes.Repeat([]byte("x"), specfs.MaxDataBytes)}, nil)
	}
	w.do(specfs.SetAttr{ID: f, Set: specfs.SetSize}, nil)
	w.do(specfs.WriteAt{ID: f, Data: []byte("new")}, nil)
	if got := slices.Collect(Orphans(w.Memory, 0)); !slices.Equal(got, []specfs.ID{f}) {
		t.Fatalf("to be reaped: %v", got)
	}
	reap := func() (steps int) {
		for steps = 1; w.do(specfs.Reap{ID: f}, nil).More; steps++ {
		}
		return steps
	}
	if steps := reap(); steps != 4 {
		t.Errorf("%d blocks are gone in %d steps", 3*reapKeys, steps)
	}
	if r := w.do(specfs.ReadAt{ID: f, Length: 9}, nil); string(r.Data) != "new" {
		t.Errorf("the file has %q", r.Data)
	}
	w.do(specfs.SetXattr{ID: f, Name: "user.x"}, nil)
	w.do(specfs.Unlink{Parent: specfs.Root, Name: "f"}, nil)
	if r := w.do(specfs.ReadAt{ID: f, Length: 9}, nil); string(r.Data) != "new" {
		t.Errorf("without a name the file has %q", r.Data)
	}
	reap()
	for k := range w.Scan(nil, nil) {
		if idOf(k) == f {
			t.Errorf("left: %x", k)
		}
	}
	if r := w.do(specfs.GetAttr{ID: f}, nil); r.Errno != specfs.ESTALE {
		t.Errorf("what is gone is %v", r.Errno)
	}
}

// TestHostileOps: operations that no kernel makes fail.
func TestHostileOps(t *testing.T) {
	w := newWorld(1)
	ids := build(t, w, "d/", "f")
	long := strings.Repeat("x", specfs.MaxTargetBytes+1)
	for _, x := range []struct {
		op   specfs.Op
		want specfs.Errno
	}{
		{specfs.Lookup{Parent: specfs.Root, Name: ""}, specfs.EINVAL},
		{specfs.Lookup{Parent: specfs.Root, Name: "."}, specfs.EINVAL},
		{specfs.Lookup{Parent: specfs.Root, Name: "a/b"}, specfs.EINVAL},
		{specfs.Lookup{Parent: specfs.Root, Name: "a\x00"}, specfs.EINVAL},
		{specfs.Lookup{Parent: 99, Name: "a"}, specfs.ESTALE},
		{specfs.Lookup{Parent: ids["f"], Name: "a"}, specfs.ENOTDIR},
		{specfs.Make{Parent: specfs.Root, Name: "n", New: ids["f"], Kind: specfs.File}, specfs.EINVAL},
		{specfs.Make{Parent: specfs.Root, Name: "n", New: 0, Kind: specfs.File}, specfs.EINVAL},
		{specfs.Make{Parent: specfs.Root, Name: "n", New: 50, Kind: 9}, specfs.EINVAL},
		{specfs.Make{Parent: specfs.Root, Name: "n", New: 50, Kind: specfs.Symlink}, specfs.EINVAL},
		{specfs.Make{Parent: specfs.Root, Name: "n", New: 50, Kind: specfs.File, Target: "x"}, specfs.EINVAL},
		{specfs.Make{Parent: specfs.Root, Name: "n", New: 50, Kind: specfs.Symlink, Target: long}, specfs.ENAMETOOLONG},
		{specfs.List{ID: specfs.Root}, specfs.EINVAL},
		{specfs.List{ID: ids["f"], Most: 1}, specfs.ENOTDIR},
		{specfs.ReadAt{ID: ids["f"], Length: -1}, specfs.EINVAL},
		{specfs.ReadAt{ID: ids["f"], Length: specfs.MaxDataBytes + 1}, specfs.EINVAL},
		{specfs.WriteAt{ID: ids["f"], Data: make([]byte, specfs.MaxDataBytes+1)}, specfs.EINVAL},
		{specfs.WriteAt{ID: ids["f"], Offset: 1<<64 - 1, Data: []byte("x")}, specfs.EFBIG},
		{specfs.WriteAt{ID: ids["f"], Offset: specfs.MaxFileBytes, Data: []byte("x")}, specfs.EFBIG},
		{specfs.SetAttr{ID: ids["f"], Set: specfs.SetSize, Size: specfs.MaxFileBytes + 1}, specfs.EFBIG},
		{specfs.Allocate{ID: ids["f"], Offset: 1<<64 - 1, Length: 1<<64 - 1}, specfs.EFBIG},
		{specfs.Allocate{ID: ids["f"], Length: 1, Punch: true}, specfs.EINVAL},
		{specfs.Rename{From: 1, Name: "f", To: 1, NewName: "d", Replace: true, Exchange: true}, specfs.EINVAL},
		{specfs.RemoveDir{Parent: specfs.Root, Name: "f"}, specfs.ENOTDIR},
		{specfs.SetXattr{ID: ids["f"], Name: "security.x"}, specfs.EOPNOTSUPP},
		{specfs.SetXattr{ID: ids["f"], Name: "user."}, specfs.EINVAL},
		{specfs.SetXattr{ID: ids["f"], Name: "user." + strings.Repeat("x", 300)}, specfs.ERANGE},
		{specfs.SetXattr{ID: ids["f"], Name: "user.x", Value: make([]byte, specfs.MaxXattrBytes+1)}, specfs.E2BIG},
		{specfs.SetXattr{ID: ids["f"], Name: "user.x", Create: true, Replace: true}, specfs.EINVAL},
		{specfs.Reap{ID: 77}, specfs.OK},
		{specfs.Reap{ID: ids["f"]}, specfs.OK},
	} {
		if got := w.do(x.op, nil); got.Errno != x.want {
			t.Errorf("%#v: %v, want %v", x.op, got.Errno, x.want)
		}
	}
	if r := w.do(specfs.GetAttr{ID: ids["f"]}, nil); r.Errno != specfs.OK {
		t.Errorf("a file that has a name was reaped: %v", r.Errno)
	}
}

// TestLinks: a file has a bounded number of names.
func TestLinks(t *testing.T) {
	w := newWorld(1)
	f := build(t, w, "f")["f"]
	tr := &tree{space: w.Memory}
	o := tr.object(f)
	o.Links = specfs.MaxLinks
	tr.put(o)
	if r := w.do(specfs.Link{ID: f, Parent: specfs.Root, Name: "g"}, nil); r.Errno != specfs.EMLINK {
		t.Errorf("one name more: %v", r.Errno)
	}
}

// TestErrno: errors are those of package io/fs.
func TestErrno(t *testing.T) {
	for e, is := range map[specfs.Errno]error{
		specfs.ENOENT: fs.ErrNotExist, specfs.EEXIST: fs.ErrExist, specfs.EACCES: fs.ErrPermission,
		specfs.EINVAL: fs.ErrInvalid,
	} {
		if !errors.Is(e, is) || errors.Is(specfs.EIO, is) {
			t.Errorf("errors.Is(%v, %v) is wrong", e, is)
		}
	}
}

// FuzzRecords: no record makes its decoder panic, and what it accepts it writes in the same way.
func FuzzRecords(f *testing.F) {
	w := newWorld(1)
	for range 200 {
		w.do(w.op(), nil)
	}
	for _, v := range w.Scan([]byte{recordName}, []byte{recordObject + 1}) {
		f.Add(bytes.Clone(v))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := objectLayout.Decode(b); err == nil && !bytes.Equal(objectLayout.Encode(o), b) {
			t.Errorf("%x is written as %x", b, objectLayout.Encode(o))
		}
		if e, err := entryLayout.Decode(b); err == nil && !bytes.Equal(entryLayout.Encode(e), b) {
			t.Errorf("%x is written as %x", b, entryLayout.Encode(e))
		}
	})
}
