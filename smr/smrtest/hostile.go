package smrtest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A Replica is a protocol's replica with its invariants.
type Replica interface {
	protocol.Node[smr.Message]
	Check() error
}

// Hostile fuzzes what a replica that takes part, one alone, and one that joins make of messages as
// they like to be: none may panic, nor come to a state that it finds wrong. The messages are what
// it begins with, as they are and in letters.
func Hostile[R Replica, M smr.StateMachine](
	f *testing.F, codec protocol.Codec[smr.Message], messages []smr.Message,
	newReplica func(smr.ReplicaConfig) (R, error), newMachine func() M,
) {
	begin := slices.Clone(messages)
	for _, m := range messages {
		begin = append(begin, kit.Letter{Disk: 1, Msg: m})
	}
	for _, m := range begin {
		b, err := codec.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(1), b)
		f.Add(byte(2), b)
		f.Add(byte(9), b)
	}
	three := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	f.Fuzz(func(t *testing.T, from byte, b []byte) {
		msg, err := codec.Decode(b)
		if err != nil {
			return
		}
		for _, cfg := range []smr.ReplicaConfig{
			{ID: 1, Members: three[:1]}, {ID: 1, Members: three}, {ID: 4, Members: three, Join: true},
		} {
			cfg.Machine = newMachine()
			r, err := newReplica(cfg)
			if err != nil {
				t.Fatal(err)
			}
			feed(t, r, cfg, protocol.ID(from), msg)
		}
	})
}

// feed lets the others admit a replica and it carry out what it wants of itself, and gives it a
// message twice.
func feed(t *testing.T, r Replica, cfg smr.ReplicaConfig, from protocol.ID, msg smr.Message) {
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
	asked := 0
	for _, e := range slices.Clone(todo) {
		var own kit.Incarnation
		switch m := e.Msg.(type) {
		case kit.Hello:
			own = m.Disk
		case kit.Founding:
			own = m.Disk
		default:
			continue
		}
		asked++
		step(func() { r.Receive(env, e.To, kit.Welcome{Disk: kit.Incarnation(e.To), Asked: own, Known: own}) })
	}
	if others := len(cfg.Members) > 1; others != (asked > 0) {
		t.Fatalf("%d others are asked whether it may take part", asked)
	}
	settle()
	for range 2 {
		step(func() { r.Receive(env, from, msg) })
		settle()
	}
}
