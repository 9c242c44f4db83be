package plan_test

import (
	"fmt"

	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// How long transactions that read one after the other take in the network of SpecRPC, with a
// partition led at each site.
func ExampleLatencies() {
	keys, err := workload.Zipfian(1000, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := wan.SpecRPC()
	rows, err := plan.Latencies(plan.Setting{
		WAN: m, Clients: plan.Everywhere(m), Load: plan.Load{Workload: workload.Retwis{Keys: keys}},
		Placement: [][]wan.Site{{"oregon", "ireland", "seoul"}, {"ireland", "seoul", "oregon"},
			{"seoul", "oregon", "ireland"}},
	}, plan.ReplicatedCommit, plan.Layered)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range rows {
		if r.Client == "" && r.Class == plan.All {
			fmt.Printf("%s: median %v, 95th percentile %v\n", r.System, r.Median, r.P95)
		}
	}
	// Output:
	// replicatedcommit: median 488ms, 95th percentile 1.342s
	// layered: median 822ms, 95th percentile 1.551s
}
