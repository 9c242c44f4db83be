package replicatedcommit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A new transaction of a client whose clock is behind was never sent before: refused by all it is
// aborted.
func TestSlowClock(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	c.Start(env, nil)
	c.Receive(env, protocol.App, store.Submit{Ref: 1, Writes: []store.Write{{Key: "k"}}})
	var id store.TxnID
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.CommitRequest); ok {
			id = m.Txn.ID
		}
	}
	env.Begin(time.Second)
	for _, from := range []protocol.ID{10, 20} {
		c.Receive(env, from, store.SiteVote{ID: id, Reason: store.Old, Hint: uint64(time.Hour)})
	}
	for _, e := range env.Out {
		if m, ok := e.Msg.(store.Done); ok && m.Outcome.Verdict != store.Aborted {
			t.Errorf("%+v", m.Outcome)
		}
	}
}

// The nearest site holds a read of a locked key back for a round trip, as it should; it is the
// nearest one still.
func TestLockedNearest(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	env.Begin(time.Second)
	c.Start(env, nil)
	c.near = [][]time.Duration{{time.Millisecond}, {100 * time.Millisecond}, {110 * time.Millisecond}}
	env.Begin(time.Second)
	c.Receive(env, protocol.App, store.Get{Ref: 1, Key: "k", Nearest: true})
	for _, e := range env.Out {
		if e.Kind == protocol.KindAfter {
			t.Logf("it waits %v; the answer comes after %v and some processing", e.Delay, roundTrip+time.Millisecond)
			if e.Delay <= roundTrip+time.Millisecond+roundTrip/4 {
				t.Errorf("it waits %v", e.Delay)
			}
			env.Begin(time.Second + roundTrip + time.Millisecond)
			c.Receive(env, 11, store.ReadReply{Ref: 1})
			break
		}
	}
	if n := c.nearest(0, c.near, 1); !slices.Equal(n, []int{0}) {
		t.Errorf("the nearest site is %v; near is %v", n, c.near)
	}
}
