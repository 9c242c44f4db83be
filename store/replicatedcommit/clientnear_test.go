package replicatedcommit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// The nearest site is a newcomer that copies: it says no to what only reads at once, and nothing to
// reads.
func TestNewcomerNear(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	env.Begin(now)
	c.Start(env, nil)
	c.near = [][]time.Duration{{time.Millisecond}, {100 * time.Millisecond}, {110 * time.Millisecond}}
	late := 0
	for i := uint64(1); i <= 20; i++ {
		env.Begin(now)
		c.Receive(env, protocol.App, store.Get{Ref: i, Key: "k", Nearest: true})
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend && e.To == 11 {
				late++ // no answer; the timer ends it
			}
			t, ok := e.Timer.(kit.GetTimer)
			if ok && e.Kind == protocol.KindAfter && slices.Equal(c.Get(t.Number).few, []int{0}) {
				now += e.Delay
				env.Begin(now)
				c.Expire(env, e.Timer)
				break
			}
		}
		now += 100 * time.Millisecond
		env.Begin(now)
		c.Receive(env, 21, store.ReadReply{Ref: i})
		now += time.Millisecond
		env.Begin(now)
		c.Receive(env, protocol.App, store.Submit{Ref: 100 + i, Reads: []store.Read{{Key: "k"}}})
		var id store.TxnID
		for _, e := range env.Out {
			if m, ok := e.Msg.(store.CommitRequest); ok {
				id = m.Txn.ID
			}
		}
		env.Begin(now + time.Millisecond)
		c.Receive(env, 10, store.SiteVote{ID: id, Reason: store.Fenced})
		now += 110 * time.Millisecond
		env.Begin(now)
		c.Receive(env, 20, store.SiteVote{ID: id, Yes: true})
		c.Receive(env, 30, store.SiteVote{ID: id, Yes: true})
	}
	if late > 2 {
		t.Errorf("%d of 20 reads waited for the newcomer; near is %v", late, c.near)
	}
}

// TestReadsAskTheNearestMajority: once distances are known a read asks two of three sites, and the
// third when one of them is late, which is farther than it from then on; one read in so many asks
// all.
func TestReadsAskTheNearestMajority(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	env.Begin(now)
	c.Start(env, nil)
	n := uint64(0) // of reads
	asked := func() (sites []int, timer protocol.Timer, wait time.Duration) {
		for _, e := range env.Out {
			switch m, ok := e.Msg.(store.ReadRequest); {
			case ok && m.Ref == n:
				sites = append(sites, int(e.To)/10-1)
			case e.Kind == protocol.KindAfter:
				timer, wait = e.Timer, e.Delay
			}
		}
		return sites, timer, wait
	}
	took := []time.Duration{time.Millisecond, 2 * time.Millisecond, 9 * time.Millisecond}
	answer := func(sites ...int) {
		at := now
		for _, i := range sites {
			env.Begin(at + took[i])
			c.Receive(env, protocol.ID(10*i+11), store.ReadReply{Ref: n})
		}
		now = at + time.Second
	}
	read := func(p store.Priority) []int {
		n++
		env.Begin(now)
		c.Receive(env, protocol.App, store.Get{Ref: n, Key: "k", Priority: p})
		sites, _, _ := asked()
		return sites
	}
	want := func(what string, got []int, want ...int) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s asks sites %v, want %v", what, got, want)
		}
	}
	want("the first read", read(store.Priority{}), 0, 1, 2)
	answer(0, 1, 2)
	all := 0
	for range probeEvery {
		switch sites := read(store.Priority{}); len(sites) {
		case 3:
			all++
			answer(0, 1, 2)
		default:
			want("a read", sites, 0, 1)
			answer(0, 1)
		}
	}
	if all != 1 {
		t.Errorf("%d of %d reads ask all sites", all, probeEvery)
	}
	want("a read of a transaction that was refused", read(store.Priority{Began: 1, Client: 1}), 0, 1, 2)
	answer(0, 1)

	read(store.Priority{})
	_, timer, wait := asked()
	if wait < 2*took[1] || wait > roundTrip {
		t.Errorf("a read waits %v for sites that answer within %v", wait, took[1])
	}
	env.Begin(now + took[0])
	c.Receive(env, 11, store.ReadReply{Ref: n})
	now += max(wait, 2*took[2])
	env.Begin(now)
	c.Expire(env, timer)
	sites, _, _ := asked()
	want("a read of which one answer is late", sites, 2)
	answer(2)
	want("the next read", read(store.Priority{}), 0, 2)
}
