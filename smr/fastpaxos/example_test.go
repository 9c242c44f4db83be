package fastpaxos_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/fastpaxos"
	"github.com/foresay/foresay/smr/kv"
)

// Three replicas and a client in a simulation.
func Example() {
	p := fastpaxos.Protocol()
	world, _ := sim.New(sim.Config[smr.Message]{Seed: 1, App: func(_ protocol.ID, msg smr.Message) {
		if done, ok := msg.(smr.Done); ok {
			result, _ := kv.DecodeResult(done.Result)
			fmt.Printf("call %d %v, %v %q\n", done.ID, done.Outcome, result.Status, result.Value)
		}
	}})
	group := []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}}
	for _, m := range group {
		_ = world.Add(sim.Node[smr.Message]{ID: m.ID, New: func() protocol.Node[smr.Message] {
			n, _ := p.NewReplica(smr.ReplicaConfig{ID: m.ID, Members: group, Machine: kv.New()})
			return n
		}})
	}
	_ = world.Add(sim.Node[smr.Message]{ID: 9, New: func() protocol.Node[smr.Message] {
		n, _ := p.NewClient(smr.ClientConfig{ID: 9, Members: group})
		return n
	}})
	world.Deliver(9, smr.Call{ID: 1, Kind: smr.Execute, Command: kv.Put([]byte("city"), []byte("Oslo"))})
	_ = world.Run(time.Second)
	world.Deliver(9, smr.Call{ID: 2, Kind: smr.Read, Command: kv.Get([]byte("city"))})
	_ = world.Run(time.Second)
	// Output:
	// call 1 committed, ok ""
	// call 2 committed, ok "Oslo"
}
