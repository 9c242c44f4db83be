package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

var byRange = Routing{Splits: []string{"g", "p"}}

// TestGroupsRest: groups that have nothing to do rest, those of a process that is killed meanwhile
// have leaders again although nobody calls, if their protocol has leaders, and a call wakes its
// group only.
func TestGroupsRest(t *testing.T) {
	for _, p := range catalog.Protocols() {
		t.Run(p.Name, func(t *testing.T) { inGroups(t, p.Name, byRange, testGroupsRest) })
	}
}

func testGroupsRest(w *world) {
	all := []*ran{w.start(1), w.start(2), w.start(3)}
	w.client(func(ctx context.Context, c *Client) {
		resting := func() (groups int, statuses []Status) {
			statuses, err := c.Status(ctx)
			if err != nil {
				w.Fatal(err)
			}
			for _, g := range ByGroup(statuses) {
				if !slices.ContainsFunc(g, func(s Status) bool { return !s.Resting }) {
					groups++
				}
			}
			return groups, statuses
		}
		for _, key := range []string{"a", "h", "q"} {
			if _, err := c.Put(ctx, key, []byte("v")); err != nil {
				w.Fatal(err)
			}
		}
		time.Sleep(2 * time.Second)
		n, statuses := resting()
		if n != 3 {
			w.Fatalf("%d of 3 groups rest: %+v", n, statuses)
		}
		before := w.sent(all)
		time.Sleep(time.Second)
		// Each process sends each other one a beat a hundred times a second; how far their disks
		// are is known.
		if messages := w.sent(all) - before; messages > 6*100+60 {
			w.Errorf("processes at rest sent %d messages in a second", messages)
		}
		if _, found, err := c.Get(ctx, "a"); err != nil || !found {
			w.Errorf("get: %v, %v", found, err)
		}
		if n, statuses := resting(); n != 2 {
			w.Errorf("one of three groups was called, and %d rest: %+v", n, statuses)
		}
		if !statuses[0].Leaderless {
			time.Sleep(2 * time.Second)
			w.killsLeader(ctx, c, all, statuses)
		}
	})
}

// sent returns how many messages processes have sent.
func (w *world) sent(all []*ran) (n uint64) {
	for _, r := range all {
		for _, p := range r.host.Stats().Network.Peers {
			if p.ID < firstClient {
				n += p.SentMessages
			}
		}
	}
	return n
}

// killsLeader has the process of a group's leader vanish from the network.
func (w *world) killsLeader(ctx context.Context, c *Client, all []*ran, statuses []Status) {
	w.Helper()
	lost := statuses[0].Leader
	site := worldSites[lost-1]
	for _, other := range worldSites[:3] {
		if other != site {
			w.net.SetDown(site, other, true)
			w.net.SetDown(other, site, true)
		}
	}
	time.Sleep(time.Second)
	for _, r := range all {
		if r.cfg.ID == lost {
			continue
		}
		for _, g := range r.groups {
			s, err := g.Status(ctx)
			if err != nil || s.Leader == 0 || s.Leader == lost {
				w.Errorf("replica %d of group %d takes %d for the leader, which is cut off: %v", r.cfg.ID, g.number+1, s.Leader,
					err)
			}
		}
	}
	if _, err := c.Put(ctx, "a", []byte("again")); err != nil {
		w.Error(err)
	}
}

// TestGroupsAfterALoss: of three processes with three groups one disk is left. A backup of all
// groups is restored into a new cluster, and a new group is made of the disk, with what each of the
// groups had; it takes calls in each of them, and another replica joins them all.
func TestGroupsAfterALoss(t *testing.T) {
	var backup *Backup
	inGroups(t, "raft", byRange, func(w *world) {
		all := []*ran{w.start(1), w.start(2), w.start(3)}
		w.client(func(ctx context.Context, c *Client) {
			w.groupsContents(ctx, c)
			w.equal(ctx, c)
			var err error
			if backup, err = c.Backup(ctx, nil); err != nil {
				w.Fatal(err)
			}
		})
		for _, r := range all {
			if err := r.end(); err != nil {
				w.Error(err)
			}
		}
		w.recovered(backup)
	})
	inGroups(t, "multipaxos", byRange, func(w *world) { w.restoredGroups(backup) })
}

// groupsContents puts keys into all groups, some with leases, and sets a quota.
func (w *world) groupsContents(ctx context.Context, c *Client) {
	w.Helper()
	for i := range 30 {
		if _, err := c.Put(ctx, fmt.Sprintf("%c%02d", 'a'+i%26, i), []byte(fmt.Sprint(i))); err != nil {
			w.Fatal(err)
		}
	}
	for _, key := range []string{"a", "x"} {
		lease, err := c.GrantFor(ctx, key, time.Hour)
		if err == nil {
			_, err = c.PutLeased(ctx, key, nil, lease)
		}
		if err != nil {
			w.Fatal(err)
		}
	}
	if _, err := c.SetQuota(ctx, kv.Quota{Keys: 100}); err != nil {
		w.Fatal(err)
	}
}

// recovered makes a new group of replica 3's disk.
func (w *world) recovered(want *Backup) {
	w.Helper()
	for _, gone := range []string{"replica-1", "replica-2"} {
		if err := os.RemoveAll(filepath.Join(w.dir, gone)); err != nil {
			w.Fatal(err)
		}
	}
	o := RecoverOptions{
		Config: filepath.Join(w.dir, ConfigFile(3)), Client: filepath.Join(w.dir, ClientFile), Dead: []protocol.ID{1, 2},
		Dial: w.net.DialContext("c"),
	}
	if _, err := Recover(o); !errors.Is(err, ErrUnconfirmed) {
		w.Errorf("a loss that was not accepted: %v", err)
	}
	o.AcceptLoss = true
	r, err := Recover(o)
	if err != nil {
		w.Fatal(err)
	}
	if r.Groups != 3 || r.Keys != 32 || !r.Done {
		w.Errorf("recovered: %+v", r)
	}
	old := w.cfg
	if w.cfg, err = ReadClientConfig(o.Client); err != nil {
		w.Fatal(err)
	}
	w.start(3)
	w.client(func(ctx context.Context, c *Client) {
		w.sameGroups(ctx, c, want)
		if _, err := InitJoin(w.dir, 4, "d:1"); err != nil {
			w.Fatal(err)
		}
		w.start(4)
		if err := c.Change(ctx, smr.Change{Add: smr.Member{ID: 4, Address: "d:1"}}); err != nil {
			w.Fatal(err)
		}
		for _, s := range w.equal(ctx, c) {
			if len(s.Members) != 2 {
				w.Errorf("the members of group %d are %v", s.Group, s.Members)
			}
		}
	})
	now := w.cfg
	w.cfg = old
	w.client(func(ctx context.Context, c *Client) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if _, _, err := c.Get(ctx, "a"); err == nil {
			w.Error("a client with the old file is served")
		}
	})
	w.cfg = now
}

// restoredGroups loads a backup of several groups into a new cluster.
func (w *world) restoredGroups(b *Backup) {
	w.Helper()
	w.start(1)
	w.start(2)
	w.start(3)
	w.client(func(ctx context.Context, c *Client) {
		told := 0
		if err := c.Restore(ctx, b, DefaultSkipVersions, func(n int) { told = max(told, n) }); err != nil {
			w.Fatal(err)
		}
		if told != 32 {
			w.Errorf("%d keys were restored", told)
		}
		w.sameGroups(ctx, c, b)
		if err := c.Restore(ctx, b, DefaultSkipVersions, nil); !isNotEmpty(err) {
			w.Errorf("a restore over what is there: %v", err)
		}
	})
}

// sameGroups compares what the groups have with a backup after which versions were skipped, and
// then has each take a change.
func (w *world) sameGroups(ctx context.Context, c *Client, want *Backup) {
	w.Helper()
	got, err := c.Backup(ctx, nil)
	if err != nil {
		w.Fatal(err)
	}
	for i, part := range got.parts() {
		old := *want.parts()[i]
		old.Version += DefaultSkipVersions
		if diff := cmp.Diff(contents(&old), contents(part)); diff != "" {
			w.Errorf("group %d (-want +got):\n%s", i+1, diff)
		}
	}
	for _, key := range []string{"a", "h", "q"} {
		version, err := c.Put(ctx, key, []byte("after"))
		if err != nil || version <= want.parts()[c.GroupOf(key)-1].Version+DefaultSkipVersions {
			w.Errorf("put %s: version %d, %v", key, version, err)
		}
	}
}

// TestClientOfSomeGroups: a client says nothing to groups of which it wants nothing. It would open
// a session in each of them, and wake them.
func TestClientOfSomeGroups(t *testing.T) {
	inGroups(t, "raft", byRange, func(w *world) {
		w.start(1)
		w.start(2)
		w.start(3)
		sessions := func(ctx context.Context, c *Client) (n []int) {
			for _, g := range ByGroup(w.equal(ctx, c)) {
				n = append(n, g[0].Sessions)
			}
			return n
		}
		w.client(func(ctx context.Context, c *Client) {
			if _, err := c.Put(ctx, "h", nil); err != nil {
				w.Error(err)
			}
			if diff := cmp.Diff([]int{0, 1, 0}, sessions(ctx, c)); diff != "" {
				w.Errorf("sessions of each group (-want +got):\n%s", diff)
			}
		})
	})
}
