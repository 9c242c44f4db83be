package str

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// copier copies snapshots of shards, one after the other, a page at a time, each from any copy.
type copier struct {
	layout store.Layout
	ask    store.PageRequest
	copy   copied
	done   []copied
}

// copied is a snapshot of a shard.
type copied struct {
	shard int
	at    clock.Stamp
	items []store.Item
}

const copierID = protocol.ID(999)

func (c *copier) Start(env *protocol.Env[store.Message], _ []protocol.Record[store.Message]) {
	c.next(env)
}

func (c *copier) next(env *protocol.Env[store.Message]) {
	c.copy = copied{shard: env.Rand.IntN(len(c.layout.Sites[0].Shards))}
	c.ask = store.PageRequest{Ref: c.ask.Ref, Shard: uint32(c.copy.shard)}
	if env.Rand.IntN(2) == 0 {
		c.ask.At = uint64(max(env.Now-time.Duration(env.Rand.IntN(2000))*time.Millisecond, 1))
	}
	env.After(time.Millisecond, copyTimer{})
}

type copyTimer struct{}

func (c *copier) Expire(env *protocol.Env[store.Message], _ protocol.Timer) {
	sites := c.layout.SitesOf(c.copy.shard)
	c.ask.Ref++
	env.Send(c.layout.Sites[sites[env.Rand.IntN(len(sites))]].Shards[c.copy.shard], c.ask)
	env.After(150*time.Millisecond, copyTimer{})
}

func (c *copier) Receive(env *protocol.Env[store.Message], _ protocol.ID, msg store.Message) {
	m, ok := msg.(store.PageReply)
	if !ok || m.Ref != c.ask.Ref {
		return
	}
	switch m.Reason {
	case store.NoReason:
	case store.Locked:
		c.ask.At = m.At
		return
	case store.Fenced:
		return
	default:
		c.ask.Ref++
		c.next(env)
		return
	}
	c.ask.Ref++ // it may arrive twice
	c.ask.At, c.ask.From, c.copy.at = m.At, m.Next, clock.Stamp(m.At)
	c.copy.items = append(c.copy.items, m.Items...)
	if m.Next == nil {
		c.done = append(c.done, c.copy)
		c.next(env)
		return
	}
	env.After(time.Duration(env.Rand.IntN(100)+1)*time.Millisecond, copyTimer{})
}

// judge compares a snapshot with what was ever written: of each key it has the latest version at or
// below its timestamp.
func (c copied) judge(w *storetest.World) error {
	want := map[store.Key]string{}
	for key, versions := range w.Versions {
		if w.Layout.ShardOf(key) != c.shard {
			continue
		}
		var last store.Version
		for v := range versions {
			if v.Time <= uint64(c.at) && v.After(last) {
				last = v
			}
		}
		want[key] = versions[last]
	}
	got := map[store.Key]string{}
	for _, i := range c.items {
		got[i.Key] = string(i.Value.Bytes)
	}
	for key, text := range want {
		if is, ok := got[key]; ok && is != text || !ok && text != "" && text[:2] != "de" { // else it is deleted
			return fmt.Errorf("shard %d as of %v: %q is %q (%v), want %q", c.shard, c.at, key, is, ok, text)
		}
	}
	return nil
}

// playCopies plays a seed while snapshots are copied, and judges these.
func playCopies(t *testing.T, mode variant, n uint64) (copies int, err error) {
	t.Helper()
	mode.pageBytes = 100
	sc := storetest.Swarm(n)
	sc.Moves, sc.Replaces, sc.Test = n%5 == 1, n%5 == 4, "TestCopies"
	w, err := storetest.New(subject(mode), sc)
	if err != nil {
		return 0, err
	}
	c := &copier{layout: w.Layout}
	if err := w.Sim.Add(copierID, wan.Site(w.Layout.Sites[0].Name),
		func() (protocol.Node[store.Message], error) { return c, nil }); err != nil {
		return 0, err
	}
	if err := w.Play(6 * time.Second); err != nil {
		return 0, err
	}
	for _, one := range c.done {
		if err := one.judge(w); err != nil {
			return len(c.done), err
		}
	}
	return len(c.done), nil
}

// TestCopies copies snapshots of shards under faults, while transactions go on: each has all
// commits at or below its timestamp, and nothing else.
func TestCopies(t *testing.T) {
	first, seeds := seed.First(t, 1), seed.Count(t, 100)
	for _, m := range modes() {
		t.Run(m.name, func(t *testing.T) {
			all := 0
			for i := range uint64(seeds) {
				n, err := playCopies(t, m, first+i)
				if err != nil {
					t.Fatalf("seed %d: %v", first+i, err)
				}
				all += n
			}
			if t.Log(all, "copies"); all < seeds*5 {
				t.Errorf("%d seeds have copied %d snapshots", seeds, all)
			}
		})
	}
}

// TestPages has a server say of a snapshot that it may still change, that it is gone, or that it
// has not come; and nobody commits into one of which there is a page.
func TestPages(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	page := func(at uint64) store.PageReply {
		t.Helper()
		s.Receive(s.env, 900, store.PageRequest{At: at})
		got := only[store.PageReply](s.said())
		if len(got) != 1 {
			t.Fatalf("a page of %d: %+v", at, got)
		}
		return got[0]
	}
	want := func(at uint64, why store.Reason) {
		t.Helper()
		if got := page(at); got.Reason != why {
			t.Errorf("a page of %d: %v, want %v", at, got.Reason, why)
		}
	}
	want(900, store.NoReason)
	now := uint64(s.env.Now)
	want(now+1, store.Locked)
	want(now+uint64(s.cfg.MaxAhead)+1, store.Ahead)
	if got := page(0).At; got != uint64(s.env.Now) {
		t.Errorf("the present is %d", got)
	}
	if got := s.certifies(950, a); len(got) != 1 || got[0].Stamp <= clock.Stamp(s.env.Now) {
		t.Errorf("after the present was copied somebody commits at %+v", got)
	}
	s.drop(s.env, s.held[txnID(950)])

	s.noted = 0
	s.isLogged(s.env, raft.Position{Index: 1, Term: 1}, s.part(200, a))
	s.said()
	want(201, store.Locked)
	want(200, store.NoReason)
	s.Receive(s.env, 10, outcome{ID: txnID(200), Commit: true, At: 600})
	want(599, store.NoReason)
	want(600, store.Locked)

	s.state.books.deaf = []protocol.ID{11}
	want(100, store.Fenced)
}

// TestCopiesAreKept has a leader keep versions for retain, and of a snapshot that is copied for
// longer. One that has just begun does not know which these are.
func TestCopiesAreKept(t *testing.T) {
	var c copies
	c.lead(20 * time.Second)
	at := func(now time.Duration, want clock.Stamp) {
		t.Helper()
		if got := c.horizon(now, time.Minute); got != want {
			t.Errorf("at %v the horizon is %v, want %v", now, got, want)
		}
	}
	second := clock.Stamp(time.Second)
	at(79*time.Second, 0)
	at(90*time.Second, 30*second)
	c.add(40*second, 90*time.Second)
	at(5*time.Minute, 40*second)
	at(20*time.Minute, 19*60*second)
	for i := range 2 * maxCopies {
		c.add(clock.Stamp(i), 20*time.Minute)
	}
	if len(c.of) != maxCopies {
		t.Errorf("%d copies are kept", len(c.of))
	}
}
