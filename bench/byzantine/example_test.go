package byzantine_test

import (
	"fmt"

	"github.com/foresay/foresay/bench/byzantine"
)

func ExampleExperiments() {
	for _, e := range byzantine.Experiments() {
		fmt.Println(e.Name, e.Modes)
	}
	// Output:
	// bft-counter [virtual]
	// bft-latency [virtual]
	// bft-failover [virtual]
	// bft-attack [virtual]
	// bft-faulty [virtual]
	// bft-throughput [real]
}
