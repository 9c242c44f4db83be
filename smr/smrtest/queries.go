package smrtest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Sizes of what QueriesInBytes asks.
const (
	askedQueries = 20
	queryBytes   = 100
	heldBytes    = 10 * queryBytes // that a replica may hold
)

// QueriesInBytes asks a replica, the leader if there is one, more than it may hold, all at once, so
// that it can answer nothing of it yet: of queries with so many bytes it takes as many as there is
// room for, and says that it is busy to the rest.
func QueriesInBytes(t *testing.T, p smr.Protocol) {
	var victim protocol.ID // 0 before its time has come
	busy, asked := 0, false
	counted := p
	counted.NewReplica = func(cfg smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		cfg.MaxPendingBytes = heldBytes
		n, err := p.NewReplica(cfg)
		return &askedReplica{n, func(env *protocol.Env[smr.Message]) {
			if asked || victim != cfg.ID {
				return
			}
			asked = true
			for i := range uint64(askedQueries) {
				n.Receive(env, firstClient, kit.ReadRequest{Queries: []kit.Query{{ID: 1<<40 + i, Body: make([]byte, queryBytes)}}})
			}
			for _, e := range env.Out {
				if m, ok := e.Msg.(kit.Busy); ok {
					busy += len(m.Queries)
				}
			}
		}}, err
	}
	sc := Scenario{Protocol: counted, Seed: seed.First(t, 1), For: 3 * time.Second, Script: func(w *World) {
		w.Sim.After(2*time.Second, func() {
			w.whoLeadsIn(roundTrip, func(id protocol.ID) { victim = id })
		})
	}}
	if r, err := Play(sc); err != nil {
		t.Fatalf("%v\n%v", r, err)
	}
	const most = heldBytes / queryBytes
	if held := askedQueries - busy; !asked || held > most || held < most-4 { // others may have asked too
		t.Errorf("asked %v: the replica holds %d queries, want %d", asked, held, most)
	}
}

// askedReplica is a replica that something is done to before its calls.
type askedReplica struct {
	protocol.Node[smr.Message]
	before func(env *protocol.Env[smr.Message])
}

// Receive is part of protocol.Node, like Expire.
func (a *askedReplica) Receive(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	a.before(env)
	a.Node.Receive(env, from, msg)
}

func (a *askedReplica) Expire(env *protocol.Env[smr.Message], timer protocol.Timer) {
	a.before(env)
	a.Node.Expire(env, timer)
}
