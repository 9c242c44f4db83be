package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
)

// TestRouting: each key has one group, groups by range have the keys between their splits, and
// hashes spread similar keys.
func TestRouting(t *testing.T) {
	byRange := Routing{Splits: []string{"g", "p"}}
	for key, want := range map[string]int{"": 0, "f": 0, "g": 1, "oz": 1, "p": 2, "z": 2} {
		if got := byRange.of(key); got != want {
			t.Errorf("%q is in group %d, not %d", key, got, want)
		}
	}
	for _, c := range []struct {
		from, to    string
		first, last int
	}{{"", "", 0, 2}, {"a", "g", 0, 0}, {"a", "g\x00", 0, 1}, {"h", "", 1, 2}, {"q", "r", 2, 2}} {
		if first, last := byRange.span(c.from, c.to); first != c.first || last != c.last {
			t.Errorf("%q to %q: groups %d to %d", c.from, c.to, first, last)
		}
	}
	byHash := Routing{Groups: 8}
	count := make([]int, 8)
	for i := range 8000 {
		count[byHash.of(fmt.Sprintf("user/%d", i))]++
	}
	for g, n := range count {
		if n < 800 || n > 1200 {
			t.Errorf("group %d has %d of 8000 keys", g, n)
		}
	}
	for _, bad := range []Routing{{Groups: -1}, {Groups: 2, Splits: []string{"a", "b"}}, {Splits: []string{"b", "a"}},
		{Splits: []string{""}}} {
		if bad.check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestGroups uses four groups in three processes: calls, what spans groups, and what is refused,
// while a process is down.
func TestGroups(t *testing.T) {
	inGroups(t, "raft", Routing{Groups: 4}, func(w *world) {
		w.start(1)
		last := w.start(2)
		w.start(3)
		w.client(func(ctx context.Context, c *Client) {
			w.fill(ctx, c)
			w.spans(ctx, c)
			w.leasesOfGroups(ctx, c)
			if err := last.end(); err != nil {
				w.Error(err)
			}
			w.fill(ctx, c)
			b, err := c.Backup(ctx, nil)
			if err != nil {
				w.Fatal(err)
			}
			var file bytes.Buffer
			if _, err := b.WriteTo(&file); err != nil {
				w.Fatal(err)
			}
			back, err := ReadBackup(&file)
			if err != nil || len(back.Others) != 3 {
				w.Fatalf("the backup: %v", err)
			}
			if keys, _ := back.Size(); keys != 21 {
				w.Errorf("the backup has %d keys", keys)
			}
			back.Routing = "4 groups by range 00000000"
			if err := c.Restore(ctx, back, 0, nil); err == nil {
				w.Error("a backup of another routing was restored")
			}
		})
	})
}

func (w *world) fill(ctx context.Context, c *Client) {
	for i := range 20 {
		if _, err := c.Put(ctx, fmt.Sprintf("k%02d", i), []byte("v")); err != nil {
			w.Fatal(err)
		}
	}
}

// spans looks at what several groups take part in.
func (w *world) spans(ctx context.Context, c *Client) {
	items, more, err := c.Scan(ctx, "k05", "", 10)
	if err != nil || !more || len(items) != 10 || string(items[0].Key) != "k05" || string(items[9].Key) != "k14" {
		w.Errorf("scan: %v, %v, %v", items, more, err)
	}
	// Who leads first depends on who was up first.
	if _, err := c.SpreadLeaders(ctx); err != nil {
		w.Error(err)
	}
	leaders := map[int]bool{}
	for _, g := range ByGroup(w.equal(ctx, c)) {
		leaders[int(leaderOf(g))] = true
	}
	if len(leaders) != 3 {
		w.Errorf("%d replicas lead", len(leaders))
	}
	for _, err := range c.Watch(ctx, WatchOptions{After: 1}) {
		if _, rejected := errors.AsType[*client.RejectedError](err); !rejected {
			w.Errorf("a watch of several groups after a version: %v", err)
		}
	}
	for items, err := range c.Watch(ctx, WatchOptions{}) {
		if err != nil || len(items) != 20 {
			w.Errorf("watch: %d keys, %v", len(items), err)
		}
		break
	}
	if _, err := c.Execute(ctx, kv.Grant(time.Minute)); err == nil {
		w.Error("a command that is about no key was executed")
	}
}

func (w *world) leasesOfGroups(ctx context.Context, c *Client) {
	if _, err := c.Grant(ctx, time.Minute); err == nil {
		w.Error("a lease of no group was granted")
	}
	lease, err := c.GrantFor(ctx, "k01", time.Minute)
	if err != nil {
		w.Fatal(err)
	}
	for i := range 20 {
		key := fmt.Sprintf("k%02d", i)
		_, err := c.PutLeased(ctx, key, nil, lease)
		_, other := errors.AsType[*LeaseGroupError](err)
		if same := c.GroupOf(key) == c.GroupOf("k01"); same != (err == nil) || same == other {
			w.Errorf("%s with the lease of k01: %v", key, err)
		}
	}
	if err := c.Revoke(ctx, lease); err != nil {
		w.Error(err)
	}
	if _, found, err := c.Get(ctx, "k01"); err != nil || found {
		w.Errorf("a key of an ended lease: %v, %v", found, err)
	}
	if err := c.WithLock(ctx, "lock", 10*time.Second, func(context.Context, uint64) error { return nil }); err != nil {
		w.Error(err)
	}
	if _, err := c.Put(ctx, "z", nil); err != nil {
		w.Error(err)
	}
}
