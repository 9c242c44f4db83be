package wal

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/wal/faultfs"
)

// A batch that does not fit is refused, with all that follows, and nothing of it is seen or
// written. Other nodes go on.
func TestRefusedBatch(t *testing.T) {
	for name, fill := range map[string]func(*Batch){
		"a gap":                func(b *Batch) { b.Append(3, nil) },
		"a record again":       func(b *Batch) { b.Append(1, nil) },
		"a gap in the batch":   func(b *Batch) { b.Append(2, nil); b.Append(4, nil) },
		"truncated too far":    func(b *Batch) { b.Truncate(3) },
		"truncated in batch":   func(b *Batch) { b.Append(2, nil); b.Truncate(4) },
		"the index zero":       func(b *Batch) { b.Append(0, nil) },
		"the index is maximal": func(b *Batch) { b.Append(1<<64-1, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			disk := faultfs.New()
			s := mustOpen(t, "/data", Options{FS: disk})
			n, other := mustNode(t, s, "n"), mustNode(t, s, "other")
			var b Batch
			b.Append(1, []byte("first"))
			if err := commitNow(n, &b); err != nil {
				t.Fatal(err)
			}
			b.Put([]byte("k"), nil)
			fill(&b)
			err := commitNow(n, &b)
			if err == nil || !strings.Contains(err.Error(), `/data: node "n": the batch`) {
				t.Fatalf("got %v", err)
			}
			b.Append(2, nil)
			if again := commitNow(n, &b); again != err {
				t.Fatalf("the next got %v", again)
			}
			if _, ok := n.Keys().Get([]byte("k")); ok || n.NextIndex() != 2 {
				t.Fatal("something of it is seen")
			}
			b.Append(1, nil)
			if err := commitNow(other, &b); err != nil {
				t.Fatal(err)
			}
			mustClose(t, s)
			s = mustOpen(t, "/data", Options{FS: disk})
			if m, err := look(s, "n"); err != nil || len(m.records) != 1 || len(m.keys) != 0 {
				t.Fatalf("%v, %v", m, err)
			}
			mustClose(t, s)
		})
	}
}

// The calls of done come in the order of the commits, also of those that write nothing.
func TestOrderOfDone(t *testing.T) {
	s := mustOpen(t, "/data", Options{FS: faultfs.New()})
	var got []int
	for i := range 200 {
		n := mustNode(t, s, fmt.Sprint("node-", i%3))
		var b Batch
		if i%4 != 0 {
			b.Append(n.NextIndex(), []byte("r"))
		}
		n.Commit(&b, func(err error) {
			if err != nil {
				t.Error(err)
			}
			got = append(got, i)
		})
	}
	mustClose(t, s) // waits for all
	if len(got) != 200 || !slices.IsSorted(got) {
		t.Fatalf("got %v", got)
	}
}

// Commit blocks when too much waits, and goes on when the disk does.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowFS{FS: faultfs.New()}
		s := mustOpen(t, "/data", Options{FS: slow, MaxPendingBytes: 1000})
		n := mustNode(t, s, "n")
		slow.delay = time.Second
		start := time.Now()
		for range 10 {
			var b Batch
			b.Append(n.NextIndex(), make([]byte, 2000))
			n.Commit(&b, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if took := time.Since(start); took < 7*time.Second || took > 10*time.Second {
			t.Errorf("10 commits, of which about two may wait, took %v", took)
		}
		mustClose(t, s)
	})
}

// With a delay, what comes within it shares a sync.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New()
		s := mustOpen(t, "/data", Options{FS: disk, Delay: 10 * time.Millisecond})
		n := mustNode(t, s, "n")
		disk.Trace()
		var done []time.Duration
		start := time.Now()
		for range 5 {
			var b Batch
			b.Append(n.NextIndex(), nil)
			n.Commit(&b, func(error) { done = append(done, time.Since(start)) })
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(done) != 5 || done[0] != 10*time.Millisecond || done[4] != done[0] {
			t.Errorf("done after %v", done)
		}
		if disk.Ops() != 2 {
			t.Errorf("%d operations for one group, not a write and a sync", disk.Ops())
		}
		mustClose(t, s)
	})
}

// What nobody waits for is written with what somebody does, of any node, in its order; and soon in
// any case.
func TestCommitUnhurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := faultfs.New()
		s := mustOpen(t, "/data", Options{FS: disk, MaxPendingBytes: 1000})
		n, other := mustNode(t, s, "n"), mustNode(t, s, "other")
		start := time.Now()
		var done []string
		write := func(n *Node, name string, size int, commit func(*Node, *Batch, func(error))) {
			var b Batch
			b.Append(n.NextIndex(), make([]byte, size))
			commit(n, &b, func(err error) {
				done = append(done, fmt.Sprintf("%s %d %v", name, time.Since(start).Milliseconds(), err))
			})
			synctest.Wait()
		}
		expect := func(operations int, want ...string) {
			t.Helper()
			synctest.Wait()
			if !slices.Equal(done, want) || disk.Ops() != operations {
				t.Errorf("%d operations on the disk, want %d; done %q, want %q", disk.Ops(), operations, done, want)
			}
			done = nil
			disk.Trace()
		}
		disk.Trace()
		write(n, "a", 1, (*Node).CommitUnhurried)
		write(other, "b", 1, (*Node).CommitUnhurried)
		expect(0)
		write(other, "c", 1, (*Node).Commit) // in one write, and one sync
		expect(2, "a 0 <nil>", "b 0 <nil>", "c 0 <nil>")
		time.Sleep(time.Second)
		start = time.Now()
		write(n, "d", 1, (*Node).CommitUnhurried)
		time.Sleep(unhurriedDelay - 1)
		write(n, "e", 1, (*Node).CommitUnhurried)
		expect(0)
		time.Sleep(time.Nanosecond)
		expect(2, "d 5 <nil>", "e 5 <nil>")
		start = time.Now()
		other.Hurry() // nothing is there
		write(n, "f", 1, (*Node).CommitUnhurried)
		expect(0)
		other.Hurry()
		expect(2, "f 0 <nil>")
		write(n, "g", 2000, (*Node).CommitUnhurried) // too much to keep
		expect(2, "g 0 <nil>")
		time.Sleep(time.Second)
		start = time.Now()
		write(n, "h", 1, (*Node).CommitUnhurried)
		mustClose(t, s)
		if !slices.Equal(done, []string{"h 0 <nil>"}) {
			t.Errorf("closed: done %q", done)
		}
	})
}

// While many write at once a group waits for more, and not for long. Who writes alone does not
// wait.
func TestManyCommitsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustOpen(t, "/data", Options{FS: &slowFS{FS: faultfs.New(), delay: time.Millisecond}})
		n := mustNode(t, s, "n")
		write := func(commits int) time.Duration {
			start, took := time.Now(), make(chan time.Duration, commits)
			for range commits {
				var b Batch
				b.Append(n.NextIndex(), nil)
				n.Commit(&b, func(error) { took <- time.Since(start) })
			}
			time.Sleep(time.Second)
			for range commits - 1 {
				<-took
			}
			return <-took
		}
		if took := write(1); took != time.Millisecond {
			t.Errorf("alone: %v", took)
		}
		write(2 * manyCommits) // the last group had many, if the writer was as late as one of them
		s.mu.Lock()
		s.lastGroup = manyCommits
		s.mu.Unlock()
		if took := write(1); took != time.Millisecond+manyDelay {
			t.Errorf("after many: %v", took)
		}
		if took := write(1); took != time.Millisecond {
			t.Errorf("alone again: %v", took)
		}
		mustClose(t, s)
	})
}

// slowFS is a disk whose syncs of files take time, of a bubble's.
type slowFS struct {
	vfs.FS
	delay time.Duration
}

func (fs *slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := fs.FS.Create(name, c)
	return slowFile{f, fs}, err
}

type slowFile struct {
	vfs.File
	fs *slowFS
}

func (f slowFile) SyncData() error {
	time.Sleep(f.fs.delay)
	return f.File.SyncData()
}
