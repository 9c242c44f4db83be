package fastpaxos

import (
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

// FuzzReceive gives a replica that takes part, one alone, and one that joins, messages as they like to be: none may panic, nor come to a state that it finds wrong.
func FuzzReceive(f *testing.F) {
	codec := Codec()
	for _, m := range messages() {
		b, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(1), b)
		f.Add(byte(2), b)
		f.Add(byte(9), b)
	}
	f.Fuzz(func(t *testing.T, from byte, b []byte) {
		msg, err := codec.Decode(b)
		if err != nil {
			return
		}
		for _, cfg := range []smr.ReplicaConfig{
			{ID: 1, Members: []smr.Member{{ID: 1}}, Machine: kv.New()},
			{ID: 1, Members: []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}, Machine: kv.New()},
			{ID: 4, Members: []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}, Machine: kv.New(), Join: true},
		} {
			feed(t, cfg, protocol.ID(from), msg)
		}
	})
}

// feed makes a replica, lets the others admit it and it carry out what it wants of itself, and gives it a message twice.
func feed(t *testing.T, cfg smr.ReplicaConfig, from protocol.ID, msg smr.Message) {
	r, err := NewReplica(cfg)
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[smr.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	var todo []protocol.Effect[smr.Message]
	step := func(call func()) {
		env.Begin(0)
		call()
		if err := r.Check(); err != nil {
			t.Fatalf("after %#v from %d: %v", msg, from, err)
		}
		todo = append(todo, env.Out...)
	}
	settle := func() {
		for n := 0; len(todo) > 0 && n < 100; n++ {
			e := todo[0]
			todo = todo[1:]
			switch {
			case e.Kind == protocol.KindAfter:
				step(func() { r.Expire(env, e.Timer) })
			case e.Kind == protocol.KindSend && e.To == cfg.ID:
				step(func() { r.Receive(env, cfg.ID, e.Msg) })
			}
		}
		todo = nil
	}
	step(func() { r.Start(env, nil) })
	own := r.admission.Own()
	for _, m := range cfg.Members {
		step(func() { r.Receive(env, m.ID, smr.Welcome{From: smr.Incarnation(m.ID), Asked: own, Known: own}) })
	}
	settle()
	for range 2 {
		step(func() { r.Receive(env, from, msg) })
		settle()
	}
}
