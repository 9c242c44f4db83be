package replicatedcommit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

// FuzzReceive gives nodes of each kind messages from anybody, in pairs: none may panic or come to a
// state that it finds wrong, but for a server that is told two contrary decisions, which says so.
func FuzzReceive(f *testing.F) {
	codec := codec()
	all := messages()
	for i, m := range all {
		a, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		for _, from := range []byte{10, 20, 21, 22, 200} {
			b, err := codec.Append(nil, all[(i*7+int(from))%len(all)])
			if err != nil {
				f.Fatal(err)
			}
			f.Add(from, a, b)
			f.Add(from, b, a)
		}
	}
	f.Fuzz(func(t *testing.T, from byte, a, b []byte) {
		var msgs []message
		for _, b := range [][]byte{a, b} {
			if m, err := codec.Decode(b); err == nil {
				msgs = append(msgs, m)
			}
		}
		for _, id := range []protocol.ID{10, 11, 12, 99, 200} {
			feed(t, id, protocol.ID(from), msgs)
		}
	})
}

// TestReceiveAnything gives each node each pair of messages, from each kind of sender.
func TestReceiveAnything(t *testing.T) {
	for _, a := range messages() {
		for _, b := range messages() {
			for _, from := range []protocol.ID{10, 11, 20, 21, 22, 200, 999} {
				for _, id := range []protocol.ID{10, 11, 12, 99, 200} {
					feed(t, id, from, []message{a, b})
				}
			}
		}
	}
}

// feed makes a node that takes part, gives it messages, and lets its timers run out.
func feed(t *testing.T, id, from protocol.ID, msgs []message) {
	cfg := store.Config{ID: id, Layout: layout(3, 2), MaxTxns: 4, MaxWaiting: 4}
	if id == 12 { // a newcomer
		cfg.Epoch, cfg.Layout.Sites[0].Since = 1, 1
	}
	var n protocol.Node[message]
	var err error
	switch id {
	case 10:
		n, err = newCoordinator(cfg)
	case 99:
		n, err = gate.New(cfg, 0)
	case 200:
		n, err = newClient(cfg)
	default:
		var s *server
		if s, err = newServer(cfg); err == nil {
			s.admission.admitted = true
		}
		n = s
	}
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	var timers []protocol.Timer
	step := func(call func()) {
		env.Begin(time.Hour)
		call()
		for _, e := range env.Out {
			if e.Kind == protocol.KindAfter && len(timers) < 20 {
				timers = append(timers, e.Timer)
			}
		}
		s, ok := n.(*server)
		if ok && s.contrary != nil {
			s.contrary = nil
		}
		if c, ok := n.(protocol.Checked); ok {
			if err := c.Check(); err != nil {
				t.Fatalf("node %d, after %#v from %d: %v", id, msgs, from, err)
			}
		}
	}
	step(func() { n.Start(env, nil) })
	if id == 200 {
		step(func() { n.Receive(env, protocol.App, store.Get{Ref: 1, Key: "k0"}) })
		step(func() { n.Receive(env, protocol.App, store.Submit{Writes: []store.Write{{Key: "k0"}}}) })
	}
	if id == 99 {
		step(func() { n.Receive(env, protocol.App, gate.Read{Ref: 1, Key: "k0"}) })
		for ref := range uint64(2) {
			// the name that messages have
			txn := store.Txn{ID: store.TxnID{Time: 1 << 42, Client: 7}, Writes: []store.Write{{Key: "k0"}}}
			step(func() { n.Receive(env, protocol.App, gate.Commit{Ref: 2 + ref, Txn: txn, Recover: ref == 1}) })
		}
	}
	for _, m := range msgs {
		step(func() { n.Receive(env, from, m) })
	}
	for i := 0; i < len(timers); i++ {
		step(func() { n.Expire(env, timers[i]) })
	}
	if g, ok := n.(*gate.Gate); ok && g.Open() > 0 {
		t.Fatalf("after %#v from %d %d calls wait for ever", msgs, from, g.Open())
	}
}
