package replicatedcommit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// read has a client's read come to the contest's server, and returns the numbers of the reads that
// are answered by that event, those whose turn it is not as negative ones.
func (c *contest) read(ref uint64, p store.Priority) []int {
	c.Helper()
	c.now += time.Millisecond
	c.give(200, store.ReadRequest{Ref: ref, Key: "k", Priority: p})
	return c.answered()
}

func (c *contest) answered() (refs []int) {
	for _, e := range c.env.Out {
		r, ok := e.Msg.(store.ReadReply)
		switch {
		case !ok || e.Kind != protocol.KindSend:
		case r.Queued:
			refs = append(refs, -int(r.Ref))
		default:
			refs = append(refs, int(r.Ref))
		}
	}
	slices.Sort(refs)
	return refs
}

// TestReadsInTurn: what was refused reads a key when all older ones that are to change it are done,
// one after the other. Reads of others wait for locks only.
func TestReadsInTurn(t *testing.T) {
	c := newContest(t)
	expect := func(what string, got []int, want ...int) {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: answered reads (-want +got):\n%s", what, diff)
		}
	}
	c.now += time.Millisecond
	holder, _ := c.try(5, "", "k")
	for _, n := range []int{2, 0, 1} {
		_, v := c.try(n, "", "k")
		c.wantReason(v, store.Locked)
	}
	expect("a read while the key is locked", c.read(1, c.ages[0]))
	expect("another one", c.read(2, c.ages[1]))
	expect("a third one", c.read(3, c.ages[2]))
	c.decide(holder, true)
	expect("the holder is done", c.answered(), 1)
	expect("a read of a transaction that was not refused", c.read(4, store.Priority{}), 4)
	oldest, v := c.try(0, "", "k")
	c.wantReason(v, store.NoReason)
	c.decide(oldest, true)
	expect("the oldest is done", c.answered(), 2)
	c.do(func() { c.server.Expire(c.env, waitTimer{"k", 200, 3}) })
	expect("the third has waited for long", c.answered(), -3)
	expect("it asks again", c.read(5, c.ages[2]))
	c.now += kit.ReserveFor * c.server.cfg.RoundTrip // the second does not come back
	c.do(func() { c.server.Expire(c.env, kit.ReserveTimer{Key: "k"}) })
	expect("the second does not come back", c.answered(), 5)
}

// TestQueuedReadGoesOn: a client whose read has to wait for its turn asks again at once and does
// not give up while sites answer; but it does not do so for ever.
func TestQueuedReadGoesOn(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	give := func(from protocol.ID, m message) {
		now += time.Millisecond
		env.Begin(now)
		c.Receive(env, from, m)
	}
	give(protocol.App, store.Get{Ref: 7, Key: "k", Priority: store.Priority{Began: 1, Client: 1}, Nearest: true})
	asked := func() (n int, got []store.Got) {
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case store.ReadRequest:
				n++
			case store.Got:
				got = append(got, m)
			}
		}
		return n, got
	}
	if n, _ := asked(); n != 3 {
		t.Fatalf("%d sites are asked, want 3", n)
	}
	times := 0
	for {
		give(11, store.ReadReply{Ref: 1, Value: store.Value{Present: true}, Queued: true})
		n, got := asked()
		if len(got) > 0 {
			break
		}
		if n != 1 {
			t.Fatalf("it is asked %d times when it says that it is not its turn, want once", n)
		}
		times++
	}
	if times != 3*maxQueued {
		t.Errorf("it asks again %d times, want %d", times, 3*maxQueued)
	}
}
