package replicatedcommit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
	"github.com/foresay/foresay/store/kit"
)

// TestOneSiteHolds: a client has the nearest site wait, the first time that it asks, and only if it
// was told to. Who has read nothing does not know which one that is.
func TestOneSiteHolds(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 2), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	var id store.TxnID // of what was sent last
	sent := func(call func()) string {
		t.Helper()
		env.Begin(now)
		call()
		text := ""
		for _, e := range env.Out {
			if m, ok := e.Msg.(store.CommitRequest); ok && e.Kind == protocol.KindSend {
				text += fmt.Sprintf("%d:%v ", e.To, m.Hold)
				id = m.Txn.ID
			}
		}
		return text
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the sites are asked %q, want %q", what, got, want)
		}
	}
	submit := func(ref uint64, hold bool) func() {
		return func() {
			c.Receive(env, protocol.App, store.Submit{Ref: ref, Writes: []store.Write{{Key: "k"}}, Hold: hold})
		}
	}
	const nobody = "10:false 20:false 30:false "
	sent(func() { c.Start(env, nil) })
	expect("nothing was read", sent(submit(1, true)), nobody)
	c.near = [][]time.Duration{{100 * time.Millisecond, 0}, {0, time.Millisecond},
		{90 * time.Millisecond, 90 * time.Millisecond}}
	expect("it is not told to", sent(submit(2, false)), nobody)
	expect("it is", sent(submit(3, true)), "10:false 20:true 30:false ")
	third, silent := id, c.silent
	c.silent = []time.Duration{0, 0, 1}
	expect("a site is down", sent(submit(5, true)), "10:false ")
	first := store.SiteVote{ID: id, Shards: []uint32{0}, Yes: true}
	expect("the first one has voted", sent(func() { c.Receive(env, 10, first) }), "20:false 30:false ")
	c.silent, id = silent, third
	now += 2 * roundTrip
	expect("it asks again", sent(func() { c.Expire(env, kit.SubmitTimer{ID: id}) }), nobody)
	txn := c.Submit(id).Txn
	expect("it gives up", sent(func() { c.Receive(env, protocol.App, store.Cancel{Ref: 3}) }), "")
	expect("it asks what became of it", sent(func() {
		c.Receive(env, protocol.App, store.Query{Ref: 4, Txn: txn})
	}), nobody)
}

// TestHoldIsPassedOn: the mark goes from the client to each shard of the site, also through a gate.
func TestHoldIsPassedOn(t *testing.T) {
	for _, hold := range []bool{true, false} {
		g, err := gate.New(store.Config{ID: 99, Layout: layout(3, 2)}, 0)
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[message](nil, 1, rand.New(rand.NewPCG(1, 2)))
		g.Start(env, nil)
		env.Begin(0)
		txn := store.Txn{ID: store.TxnID{Time: uint64(time.Hour), Client: 1}, Writes: []store.Write{{Key: "k0"}, {Key: "k1"}}}
		g.Receive(env, protocol.App, gate.Commit{Ref: 1, Txn: txn, Hold: hold})
		var out []protocol.Effect[message]
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend {
				out = append(out, e)
			}
		}
		if len(out) != 1 || out[0].To != 10 {
			t.Fatalf("the gate sends %v", out)
		}
		co, err := newCoordinator(store.Config{ID: 10, Layout: layout(3, 2)})
		if err != nil {
			t.Fatal(err)
		}
		env = protocol.NewEnv[message](nil, 10, rand.New(rand.NewPCG(1, 1)))
		env.Begin(time.Hour)
		co.Receive(env, 99, out[0].Msg)
		n := 0
		for _, e := range env.Out {
			if m, ok := e.Msg.(prepare); ok && m.Hold == hold {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d of 2 shards are asked with hold %v", n, hold)
		}
	}
}
