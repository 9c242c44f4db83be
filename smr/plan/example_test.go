package plan_test

import (
	"fmt"

	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// How long clients in Virginia, of which there are most, and in Texas wait for a command to be
// durable.
func ExampleLatencies() {
	rows, err := plan.Latencies(plan.Setting{
		WAN:      wan.NorthAmerica(),
		Replicas: []wan.Site{"WA", "VA", "QC"},
		Clients:  []plan.Client{{Site: "VA", Weight: 3}, {Site: "TX"}},
	}, plan.Floor, plan.Raft, plan.Domino)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, system := range []plan.System{plan.Floor, plan.Raft, plan.Domino} {
		durable := plan.Of(rows, system, plan.Durable)
		fmt.Println(system, "median", plan.Quantile(durable, 0.5), "longest", plan.Quantile(durable, 1))
	}
	// Output:
	// floor median 38ms longest 42ms
	// raft median 134ms longest 134ms
	// domino median 38ms longest 51ms
}
