package smrsim_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// What clients in Texas and Washington wait for in a group of three replicas, those of the thesis.
func Example() {
	place, err := wan.Preset("na3")
	if err != nil {
		fmt.Println(err)
		return
	}
	group, err := smrsim.New(smrsim.Config{
		Protocol: multipaxos.Protocol(), Place: place, Clients: []wan.Site{"TX", "WA"},
		Replica: func(c *smr.ReplicaConfig) { c.Machine, c.Leader = kv.New(), 1 },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = group.Pass(3 * time.Second) // to elect
	for _, client := range group.Clients {
		group.Make(client, smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("city"), []byte("Oslo"))},
			func(a smrsim.Answer) {
				fmt.Println(a.Site, a.Outcome, a.Took)
			})
	}
	fmt.Println(group.Pass(time.Second))
	// Output:
	// WA committed 67ms
	// TX committed 109ms
	// <nil>
}

// Any protocol of the family serves the same calls.
func Example_protocols() {
	for _, p := range catalog.Protocols() {
		group, err := smrsim.New(smrsim.Config{
			Protocol: p,
			Replica:  func(c *smr.ReplicaConfig) { c.Machine = kv.New() },
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		client := group.Client("a")
		group.Make(client, smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("city"), []byte("Oslo"))},
			func(smrsim.Answer) {})
		_ = group.Pass(time.Second)
		group.Make(client, smr.Call{Kind: smr.Read, Command: kv.Get([]byte("city"))}, func(a smrsim.Answer) {
			result, _ := kv.DecodeResult(a.Result)
			fmt.Printf("%s: %v, %v %q\n", p.Name, a.Outcome, result.Status, result.Value)
		})
		_ = group.Pass(time.Second)
	}
	// Output:
	// raft: committed, ok "Oslo"
	// multipaxos: committed, ok "Oslo"
	// fastpaxos: committed, ok "Oslo"
	// mencius: committed, ok "Oslo"
	// epaxos: committed, ok "Oslo"
	// domino: committed, ok "Oslo"
	// domino-direct: committed, ok "Oslo"
}
