package wal

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/wal/faultfs"
)

// commitNow commits and waits.
func commitNow(n *Node, b *Batch) error {
	done := make(chan error, 1)
	n.Commit(b, func(err error) { done <- err })
	return <-done
}

func mustOpen(t *testing.T, dir string, opts Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustNode(t *testing.T, s *Store, name string) *Node {
	t.Helper()
	n, err := s.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func mustClose(t *testing.T, s io.Closer) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A real directory: a run, another that continues it, in comparison with the model.
func TestRealDisk(t *testing.T) {
	dir := t.TempDir() + "/deep/er"
	h := newHistory(4)
	disk := faultfs.New() // counts nothing here
	var id ID
	for i := range 4 {
		s := mustOpen(t, dir, Options{MemTableBytes: 256 << 10})
		if i > 0 && s.Identity() != id {
			t.Fatalf("the identity was %v and is %v", id, s.Identity())
		}
		id = s.Identity()
		if err := h.check(s, 0); err != nil {
			t.Fatal(err)
		}
		if err := h.run(s, disk, rand.New(rand.NewPCG(uint64(i), 7)), 100, 4000); err != nil {
			t.Fatal(err)
		}
		if err := h.check(s, 0); err != nil {
			t.Fatal(err)
		}
		names, err := s.Names()
		if slices.Sort(names); err != nil || !slices.Equal(names, []string{"node-0", "node-1", "node-2", "node-3"}) {
			t.Fatalf("names %q, %v", names, err)
		}
		mustClose(t, s)
	}
}

// A gate is a disk whose syncs of files wait while it is shut.
type gate struct {
	vfs.FS
	mu sync.Mutex
}

func (g *gate) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := g.FS.Create(name, c)
	return gateFile{f, g}, err
}

type gateFile struct {
	vfs.File
	gate *gate
}

func (f gateFile) Sync() error {
	f.gate.mu.Lock()
	defer f.gate.mu.Unlock()
	return f.File.Sync()
}

func (f gateFile) SyncData() error { return f.Sync() }

// While the disk is busy, commits are visible and not acknowledged; Get and Scan, with all mixtures
// of what is durable and what is not, agree with a map.
func TestVisibleBeforeDurable(t *testing.T) {
	g := &gate{FS: faultfs.New()}
	s := mustOpen(t, "/data", Options{FS: g})
	n := mustNode(t, s, "n")
	rnd := rand.New(rand.NewPCG(1, 1))
	want := map[string]string{}
	for round := range 30 {
		g.mu.Lock()
		var durable sync.WaitGroup
		acked := 0
		for range rnd.IntN(6) {
			var b Batch
			b.AppendJoined(cut(rnd, n.NextIndex(), fmt.Append(nil, "record ", n.NextIndex())))
			for range rnd.IntN(5) {
				key := fmt.Sprintf("%c", 'a'+rnd.IntN(8))
				if rnd.IntN(3) == 0 {
					b.Delete([]byte(key))
					delete(want, key)
				} else {
					value := fmt.Sprint(round, rnd.Uint32())
					b.Put([]byte(key), []byte(value))
					want[key] = value
				}
			}
			durable.Add(1)
			n.Commit(&b, func(err error) {
				if err != nil {
					t.Error(err)
				}
				acked++
				durable.Done()
			})
			compareKeys(t, n, want, rnd)
		}
		compareRecords(t, n)
		if acked != 0 {
			t.Fatal("acknowledged before the sync")
		}
		g.mu.Unlock()
		if round%3 == 0 {
			durable.Wait()
			compareKeys(t, n, want, rnd)
			continue
		}
		compareKeys(t, n, want, rnd) // while it is written
		durable.Wait()
	}
	compareRecords(t, n)
	mustClose(t, s)
}

func compareKeys(t *testing.T, n *Node, want map[string]string, rnd *rand.Rand) {
	t.Helper()
	keys := n.Keys()
	lo, hi := fmt.Sprintf("%c", 'a'+rnd.IntN(9)), fmt.Sprintf("%c", 'a'+rnd.IntN(9))
	for _, bounds := range [][2][]byte{{nil, nil}, {[]byte(lo), nil}, {nil, []byte(hi)}, {[]byte(lo), []byte(hi)}} {
		var got, expect []string
		for k, v := range keys.Scan(bounds[0], bounds[1]) {
			got = append(got, string(k)+"="+string(v))
		}
		for k, v := range want {
			if k >= string(bounds[0]) && (bounds[1] == nil || k < string(bounds[1])) {
				expect = append(expect, k+"="+v)
			}
		}
		slices.Sort(expect)
		if !slices.Equal(got, expect) {
			t.Fatalf("scan %q to %q: got %q, want %q", bounds[0], bounds[1], got, expect)
		}
	}
	for c := 'a'; c <= 'i'; c++ {
		got, ok := keys.Get([]byte(string(c)))
		expect, there := want[string(c)]
		if ok != there || string(got) != expect {
			t.Fatalf("get %c: got %q, %v, want %q, %v", c, got, ok, expect, there)
		}
	}
}

func compareRecords(t *testing.T, n *Node) {
	t.Helper()
	want := uint64(1)
	for r, err := range n.Records() {
		if err != nil || r.Index != want || string(r.Data) != fmt.Sprint("record ", want) {
			t.Fatalf("record %d: got %d, %q, %v", want, r.Index, r.Data, err)
		}
		want++
	}
	if want != n.NextIndex() {
		t.Fatalf("records end at %d, next is %d", want, n.NextIndex())
	}
}

// Loops that end early leave nothing open.
func TestLoopsEndEarly(t *testing.T) {
	s := mustOpen(t, "/data", Options{FS: faultfs.New()})
	n := mustNode(t, s, "n")
	for i := range 3 {
		var b Batch
		b.Append(n.NextIndex(), []byte("r"))
		b.Put([]byte{byte('a' + i)}, nil)
		if err := commitNow(n, &b); err != nil {
			t.Fatal(err)
		}
	}
	for range n.Records() {
		break
	}
	for range n.Keys().Scan(nil, nil) {
		break
	}
	mustClose(t, s)
}

func TestTruncate(t *testing.T) {
	disk := faultfs.New()
	s := mustOpen(t, "/data", Options{FS: disk})
	n := mustNode(t, s, "n")
	var b Batch
	for i := range uint64(3000) {
		b.Append(i+1, []byte("record"))
	}
	b.Truncate(2500)
	b.Truncate(10) // has been truncated already
	if err := commitNow(n, &b); err != nil {
		t.Fatal(err)
	}
	check := func(n *Node, first, next uint64) {
		t.Helper()
		want := first
		for r, err := range n.Records() {
			if err != nil || r.Index != want {
				t.Fatalf("record %d: got %d, %v", want, r.Index, err)
			}
			want++
		}
		if want != next || n.NextIndex() != next {
			t.Fatalf("the log ends at %d, next is %d, want %d", want, n.NextIndex(), next)
		}
	}
	check(n, 2500, 3001)
	if n.swept != 2500 {
		t.Errorf("deleted up to %d", n.swept)
	}
	b.Truncate(3001) // all of it; few, so that they stay in the database
	if err := commitNow(n, &b); err != nil {
		t.Fatal(err)
	}
	check(n, 3001, 3001)
	mustClose(t, s)
	s = mustOpen(t, "/data", Options{FS: disk})
	n = mustNode(t, s, "n")
	check(n, 3001, 3001)
	if n.swept != 2500 {
		t.Errorf("deleted up to %d", n.swept)
	}
	b.Append(3001, make([]byte, sweepBytes))
	b.Append(3002, nil)
	b.Truncate(3002) // many bytes: deleted
	if err := commitNow(n, &b); err != nil {
		t.Fatal(err)
	}
	check(n, 3002, 3003)
	if n.swept != 3002 {
		t.Errorf("deleted up to %d", n.swept)
	}
	mustClose(t, s)
}

func TestClosed(t *testing.T) {
	s := mustOpen(t, "/data", Options{FS: faultfs.New()})
	n := mustNode(t, s, "n")
	var b Batch
	b.Put([]byte("k"), []byte("v"))
	if err := commitNow(n, &b); err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)
	b.Put([]byte("k"), []byte("w"))
	if err := commitNow(n, &b); err != ErrClosed {
		t.Errorf("commit: %v", err)
	}
	if err := s.Close(); err != ErrClosed {
		t.Errorf("close: %v", err)
	}
	if _, err := s.Node("m"); err != ErrClosed {
		t.Errorf("node: %v", err)
	}
	if _, ok := n.Keys().Get([]byte("k")); ok {
		t.Error("a closed store answers")
	}
	for range n.Keys().Scan(nil, nil) {
		t.Error("a closed store answers")
	}
	if _, err := s.Names(); err != ErrClosed {
		t.Errorf("names: %v", err)
	}
	if s.Err() != nil {
		t.Errorf("it has failed: %v", s.Err())
	}
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := OpenMemory(Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := mustNode(t, s, "n")
		for i := range uint64(100) {
			var b Batch
			b.Append(i+1, bytes.Repeat([]byte("x"), 100))
			if err := commitNow(n, &b); err != nil {
				t.Fatal(err)
			}
		}
		if n.NextIndex() != 101 {
			t.Errorf("next is %d", n.NextIndex())
		}
		mustClose(t, s)
	})
}

func TestNames(t *testing.T) {
	s := mustOpen(t, "/data", Options{FS: faultfs.New()})
	for _, name := range []string{"", strings.Repeat("x", 256)} {
		if _, err := s.Node(name); err == nil {
			t.Errorf("a name of %d bytes is taken", len(name))
		}
	}
	// Names and keys that look like one another's beginnings, or contain what separates them.
	names := []string{"a", "aa", "a\x00", "ak", "\x00", "\xff", "k", strings.Repeat("x", 255), "\x01a"}
	for i, name := range names {
		n := mustNode(t, s, name)
		if again := mustNode(t, s, name); again != n {
			t.Errorf("%q has two nodes", name)
		}
		var b Batch
		b.Append(1, []byte(name))
		for _, key := range []string{"", "\x00", "k", "\xff\xff", name} {
			b.Put([]byte(key), []byte(fmt.Sprint(i)))
		}
		if err := commitNow(n, &b); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range names {
		for k, v := range mustNode(t, s, name).Keys().Scan(nil, nil) {
			if string(v) != fmt.Sprint(i) {
				t.Errorf("%q: key %q is of node %s", name, k, v)
			}
		}
	}
	got, err := s.Names()
	slices.Sort(got)
	slices.Sort(names)
	if err != nil || !slices.Equal(got, names) {
		t.Errorf("names %q, %v", got, err)
	}
	mustClose(t, s)
}

func TestOptions(t *testing.T) {
	for _, opts := range []Options{{Delay: -1}, {MaxPendingBytes: -1}, {CacheBytes: -1}, {MemTableBytes: 1}} {
		if s, err := Open("/data", opts); err == nil || s != nil {
			t.Errorf("%+v is taken", opts)
		}
	}
}

// TestRemove: nothing is left of a node that was removed, and nothing else goes with it.
func TestRemove(t *testing.T) {
	dir := t.TempDir()
	reopen := func() *Store {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := reopen()
	names := []string{"shard-0", "shard-00", "shard-1", "shard-2"}
	for _, name := range names {
		n, err := s.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		b.Append(1, []byte("one"))
		b.Append(2, []byte("two"))
		b.Truncate(2)
		b.Put([]byte("key"), []byte(name))
		if err := commitNow(n, &b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove("shard-1"); err == nil {
		t.Error("a node in use was removed")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	if err := s.Remove("shard-1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	defer s.Close()
	got, err := s.Names()
	slices.Sort(got)
	if want := []string{"shard-0", "shard-00", "shard-2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("there are %v (%v), want %v", got, err, want)
	}
	for _, name := range names {
		n, err := s.Node(name)
		if err != nil {
			t.Fatal(err)
		}
		value, ok := n.Keys().Get([]byte("key"))
		if removed := name == "shard-1"; ok == removed || ok && string(value) != name || (n.NextIndex() == 1) != removed {
			t.Errorf("node %s has %q, and its next record is %d", name, value, n.NextIndex())
		}
	}
}
