package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/smr/kv"
)

// backupOf makes a backup while another client writes. Each of its writes is of two keys, one after
// the other, so that a backup which is not one moment's has the second one's value without the
// first one's.
func backupOf(ctx context.Context, w *world, c *Client) *Backup {
	w.Helper()
	writing, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; writing.Err() == nil; n++ {
			for _, key := range []string{"a/first", "z/second"} {
				if _, err := c.Put(ctx, key, fmt.Append(nil, n)); err != nil {
					w.Error(err)
				}
			}
		}
	}()
	b, err := c.Backup(ctx, nil)
	stop()
	<-done
	if err != nil {
		w.Fatal(err)
	}
	return b
}

func value(b *Backup, key string) int {
	for _, i := range b.Items {
		if string(i.Key) == key {
			var n int
			fmt.Sscan(string(i.Value), &n)
			return n
		}
	}
	return -1
}

// TestBackup: a backup that is made during writes is one moment's, its file is read as it was
// written, and a new group has the same contents after a restore that was interrupted once.
func TestBackup(t *testing.T) {
	var file bytes.Buffer
	var original *Backup
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		c := w.dialed()
		for i := range 6 { // several pages
			if _, err := c.Put(ctx, fmt.Sprint("large/", i), bytes.Repeat([]byte{0xff, byte(i)}, 200<<10)); err != nil {
				t.Fatal(err)
			}
		}
		lease, err := c.Grant(ctx, 2*time.Second)
		if err == nil {
			_, err = c.PutLeased(ctx, "\xff\x00 leased", nil, lease)
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b := backupOf(ctx, w, c)
			if first, second := value(b, "a/first"), value(b, "z/second"); first != second && first != second+1 {
				t.Errorf("the backup of version %d has %d and %d", b.Version, first, second)
			}
			original = b
			if err := c.KeepAlive(ctx, lease); err != nil {
				t.Error(err)
			}
		}
		if _, err := original.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		if err := c.Restore(ctx, original, 0, nil); !isNotEmpty(err) {
			t.Errorf("a restore over what is there: %v", err)
		}
	})
	read, err := ReadBackup(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contents(original), contents(read)); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
	inWorld(t, "domino", func(w *world) { testRestore(w, read) })
}

// TestBackupUnderLoad: a backup of many pages ends though more is written meanwhile than the
// service remembers. If so much is written that not even the changes of a few round trips are
// remembered, the error says what to do.
func TestBackupUnderLoad(t *testing.T) {
	inWorld(t, "raft", func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		w.client(func(ctx context.Context, c *Client) {
			for i := range 40 {
				if _, err := c.Put(ctx, fmt.Sprint("large/", i), make([]byte, 500<<10)); err != nil {
					w.Fatal(err)
				}
			}
			stop := w.load(ctx, c, 8, 64<<10)
			b, err := c.Backup(ctx, nil)
			if written := stop(); written <= kv.MaxChangeBytes {
				w.Errorf("%d bytes were written meanwhile: too few for this test", written)
			}
			if err != nil {
				w.Fatal(err)
			}
			for i := range 8 {
				first, second := value(b, fmt.Sprint("a/", i)), value(b, fmt.Sprint("z/", i))
				if first != second && first != second+1 || len(b.Items) != 40+16 {
					w.Errorf("of %d keys two that are written in turns have %d and %d", len(b.Items), first, second)
				}
			}
			_, err = c.Backup(ctx, func(int) { // while it reads one page
				for written := 0; written <= kv.MaxChangeBytes; written += MaxValueBytes {
					if _, err := c.Put(ctx, "much", make([]byte, MaxValueBytes)); err != nil {
						w.Error(err)
					}
				}
			})
			_, compacted := errors.AsType[*CompactedError](err)
			if !compacted || !strings.Contains(err.Error(), "back up in a quieter moment") {
				w.Errorf("a backup while more is written than anybody could read: %v", err)
			}
		})
	})
}

// load has writers put values of a size, each one with a number that rises to one key and then to
// another. stop ends them, and tells how many bytes they have written.
func (w *world) load(ctx context.Context, c *Client, writers, size int) (stop func() (written int64)) {
	var total atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	for i := range writers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				for _, key := range []string{"a/", "z/"} {
					if _, err := c.Put(ctx, fmt.Sprint(key, i), fmt.Appendf(nil, "%-*d", size, n)); err != nil && ctx.Err() == nil {
						w.Error(err)
					}
					total.Add(int64(size))
				}
			}
		})
	}
	time.Sleep(time.Second)
	total.Store(0)
	return func() int64 {
		cancel()
		group.Wait()
		return total.Load()
	}
}

func testRestore(w *world, b *Backup) {
	const skipped = 1000
	w.start(1)
	w.start(2)
	w.start(3)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := w.dialed()
	setQuota := func(q kv.Quota) {
		if _, err := c.SetQuota(ctx, q); err != nil {
			w.Fatal(err)
		}
	}
	tooLarge := func() {
		_, full := errors.AsType[*QuotaError](c.Restore(ctx, b, skipped, func(int) { w.Error("a part was restored") }))
		if !full {
			w.Error("the quota does not refuse the backup")
		}
		setQuota(kv.Quota{})
	}
	setQuota(kv.Quota{Keys: uint64(len(b.Items)) - 1})
	tooLarge()
	interrupted, interrupt := context.WithCancel(ctx)
	err := c.Restore(interrupted, b, skipped, func(int) { interrupt() })
	if err == nil {
		w.Fatal("the restore was not interrupted: it needs several parts")
	}
	time.Sleep(10 * time.Second) // no lease ends before all of it is there
	if _, err := c.Put(ctx, "mine", nil); err == nil || !strings.Contains(err.Error(), "being restored") {
		w.Errorf("a put during a restore: %v", err)
	}
	setQuota(kv.Quota{Bytes: 1})
	tooLarge()
	if err := c.Restore(ctx, b, skipped, nil); err != nil {
		w.Fatal(err)
	}
	after, err := c.Backup(ctx, nil)
	if err != nil {
		w.Fatal(err)
	}
	want := *b
	want.Version += skipped
	if diff := cmp.Diff(contents(&want), contents(after)); diff != "" {
		w.Errorf("what was restored (-want +got):\n%s", diff)
	}
	if err := c.Restore(ctx, b, skipped, nil); err != nil {
		w.Errorf("a restore of what is there: %v", err)
	}
	w.leaseEnd(ctx, c, "\xff\x00 leased")
	if version, err := c.Put(ctx, "mine", nil); err != nil || version != want.Version+2 {
		w.Errorf("a put after the restore: version %d, %v, want %d", version, err, want.Version+2)
	}
	for _, after := range []uint64{b.Version, b.Version + 1, b.Version + skipped - 1} {
		w.forgotten(ctx, c, after)
	}
	if err := c.Restore(ctx, b, skipped, nil); !isNotEmpty(err) {
		w.Errorf("a restore over what is there: %v", err)
	}
}

// forgotten notes an error unless a watch that goes on after a version is told that the changes are
// not kept.
func (w *world) forgotten(ctx context.Context, c *Client, after uint64) {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var err error
	for _, err = range c.Watch(ctx, WatchOptions{After: after}) {
		break
	}
	if _, compacted := errors.AsType[*CompactedError](err); !compacted {
		w.Errorf("a watch of what came after version %d: %v", after, err)
	}
}

func isNotEmpty(err error) bool {
	_, ok := errors.AsType[*NotEmptyError](err)
	return ok
}

// contents returns a backup as text. What a lease tells beside its ID and time is not part of it.
func contents(b *Backup) []string {
	out := []string{fmt.Sprint("version ", b.Version)}
	for _, l := range b.Leases {
		out = append(out, fmt.Sprint("lease ", l.ID, l.TTL, l.Renewals))
	}
	for _, i := range b.Items {
		out = append(out, fmt.Sprintf("%q=%q %d %d", i.Key, i.Value[:min(len(i.Value), 4)], i.Version, i.Lease))
	}
	return out
}

// TestBackupsOfAnyBytes: what is written is read, whatever the keys and values are; what could not
// be restored is not written.
func TestBackupsOfAnyBytes(t *testing.T) {
	for _, one := range []string{"\x00", "<", "\"", "\u2028", "\xff", "a", "\\", "\x7f", "\u0080"} {
		b := &Backup{Version: 2, Items: []kv.Item{
			{Key: []byte(strings.Repeat(one, MaxKeyBytes/len(one))), Value: []byte(strings.Repeat(one, MaxValueBytes/len(one))),
				Version: 1}, {Value: []byte(one), Version: 2},
		}}
		var file bytes.Buffer
		if _, err := b.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		read, err := ReadBackup(&file)
		if err != nil {
			t.Errorf("of %q: %v", one, err)
			continue
		}
		for i, want := range b.Items {
			if got := read.Items[i]; !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value) {
				t.Errorf("item %d of %q is another one", i, one)
			}
		}
	}
	for name, b := range map[string]*Backup{
		"a key twice":   {Version: 2, Items: []kv.Item{{Key: []byte("a"), Version: 1}, {Key: []byte("a"), Version: 2}}},
		"a large key":   {Version: 1, Items: []kv.Item{{Key: make([]byte, MaxKeyBytes+1), Version: 1}}},
		"a large value": {Version: 1, Items: []kv.Item{{Value: make([]byte, MaxValueBytes+1), Version: 1}}},
		"no lease":      {Version: 2, Items: []kv.Item{{Key: []byte("a"), Version: 2, Lease: 1}}},
		"a short lease": {Version: 2, Leases: []kv.Lease{{ID: 1}}},
		"out of order":  {Version: 2, Items: []kv.Item{{Key: []byte("a"), Version: 2}, {Key: []byte("b"), Version: 1}}},
		"of the future": {Version: 2, Items: []kv.Item{{Key: []byte("a"), Version: 3}}},
	} {
		if n, err := b.WriteTo(new(bytes.Buffer)); err == nil || n != 0 {
			t.Errorf("%s: %d bytes were written, %v", name, n, err)
		}
	}
}

// TestBackupFilesAreChecked: a file that was cut off or changed anywhere is an error that names the
// line.
func TestBackupFilesAreChecked(t *testing.T) {
	b := &Backup{
		Version: 9, Leases: []kv.Lease{{ID: 2, TTL: time.Minute}},
		Items: []kv.Item{{Key: []byte("a"), Value: []byte("1"), Version: 3, Lease: 2}, {Key: []byte("b"), Version: 9}},
	}
	var file bytes.Buffer
	if _, err := b.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(file.String()), "\n")
	if _, err := ReadBackup(strings.NewReader(file.String())); err != nil {
		t.Fatal(err)
	}
	bad := map[string]string{
		"line 1: it is missing":               "",
		"line 2: it is missing":               lines[0],
		"line 4: it is missing":               strings.Join(lines[:3], ""),
		"line 5: it is missing":               strings.Join(lines[:4], ""),
		"line 5: the checksum":                strings.Replace(file.String(), `"1"`, `"2"`, 1),
		"line 5: there is more":               file.String() + "more\n",
		"line 4: json: unknown":               strings.Replace(file.String(), `"key":"b"`, `"kye":"b"`, 1),
		"line 1: invalid":                     "greeting\n",
		"line 1: it is no":                    strings.Replace(file.String(), `"format":1`, `"format":2`, 1),
		"line 5: a key is where the checksum": strings.Join(slices.Concat(lines[:4], lines[3:]), ""),
		"line 4: the checksum is where a key": strings.Join(slices.Concat(lines[:3], lines[4:]), ""),
		"line 2: a key is where a lease":      strings.Join(slices.Concat(lines[:1], lines[2:]), ""),
		"line 2: time: ":                      strings.Replace(file.String(), "1m0s", "soon", 1),
		"line 3: unexpected EOF":              strings.Join(lines[:2], "") + lines[2][:5],
	}
	for want, text := range bad {
		if _, err := ReadBackup(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestLinesOfABackupAreMissing: whichever line of a backup of several groups is deleted, the error
// says that lines are missing or that the file was changed, and where.
func TestLinesOfABackupAreMissing(t *testing.T) {
	part := func(key string) *Backup {
		return &Backup{Version: 9, Leases: []kv.Lease{{ID: 2, TTL: time.Minute}},
			Items: []kv.Item{{Key: []byte(key), Value: []byte("1"), Version: 3, Lease: 2}, {Key: []byte(key + "b"), Version: 9}}}
	}
	b := part("a")
	b.Others, b.Routing = []*Backup{part("m"), part("n")}, "3 groups by hash"
	var file bytes.Buffer
	if _, err := b.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSuffix(file.String(), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	for i, line := range lines {
		text := strings.Join(slices.Concat(lines[:i], lines[i+1:]), "")
		_, err := ReadBackup(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), "missing") || !strings.Contains(err.Error(), "line ") {
			t.Errorf("without line %d, %q: %v", i+1, line, err)
		}
	}
}
