package smrsim_test

import (
	"fmt"
	"time"

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
