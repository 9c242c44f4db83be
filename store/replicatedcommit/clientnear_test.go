package replicatedcommit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// The nearest site is a newcomer that copies: it says no to what only reads at once, and nothing to reads.
func TestNewcomerNear(t *testing.T) {
	c, err := NewClient(Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[Message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	env.Begin(now)
	c.Start(env, nil)
	c.near = [][]time.Duration{{time.Millisecond}, {100 * time.Millisecond}, {110 * time.Millisecond}}
	late := 0
	for i := uint64(1); i <= 20; i++ {
		env.Begin(now)
		c.Receive(env, protocol.App, Get{Ref: i, Key: "k", Nearest: true})
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend && e.To == 11 {
				late++ // no answer; the timer ends it
			}
			if e.Kind == protocol.KindAfter && slices.Equal(c.gets[c.n].few, []int{0}) {
				now += e.Delay
				env.Begin(now)
				c.Expire(env, e.Timer)
				break
			}
		}
		now += 100 * time.Millisecond
		env.Begin(now)
		c.Receive(env, 21, ReadReply{Ref: i})
		now += time.Millisecond
		env.Begin(now)
		c.Receive(env, protocol.App, Submit{Ref: 100 + i, Reads: []store.Read{{Key: "k"}}})
		var id store.TxnID
		for _, e := range env.Out {
			if m, ok := e.Msg.(CommitRequest); ok {
				id = m.Txn.ID
			}
		}
		env.Begin(now + time.Millisecond)
		c.Receive(env, 10, SiteVote{ID: id, Reason: store.Fenced})
		now += 110 * time.Millisecond
		env.Begin(now)
		c.Receive(env, 20, SiteVote{ID: id, Yes: true})
		c.Receive(env, 30, SiteVote{ID: id, Yes: true})
	}
	if late > 2 {
		t.Errorf("%d of 20 reads waited for the newcomer; near is %v", late, c.near)
	}
}
