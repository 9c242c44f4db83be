package experiments_test

import (
	"fmt"

	"github.com/foresay/foresay/bench/experiments"
)

func ExampleAll() {
	for _, e := range experiments.All() {
		fmt.Println(e.Name, e.Modes)
	}
	// Output:
	// chain [virtual real]
	// chain-rtt [virtual real]
	// chain-length [virtual real]
	// bandwidth [virtual real]
	// overhead [real]
	// observe-overhead [real]
	// limits [virtual real]
	// multilevel [virtual real]
	// domino-commit [virtual]
	// domino-percentile [virtual]
	// domino-execution [virtual]
	// domino-adapt [virtual]
	// smr-throughput [real]
	// smr-clients [real]
	// smr-snapshots [real]
	// smr-members [real]
	// smr-large [real]
	// smr-idle [real]
	// smr-failover [virtual]
	// bft-counter [virtual]
	// bft-latency [virtual]
	// bft-failover [virtual]
	// bft-attack [virtual]
	// bft-faulty [virtual]
	// bft-throughput [real]
	// rc-ycsb-ops [virtual real]
	// rc-ycsb-reads [virtual real]
	// rc-retwis [virtual real]
	// rc-contention [virtual real]
	// rc-floor [virtual real]
	// rc-throughput [real]
	// rc-hot [real virtual]
	// rc-away [real]
	// rc-away-half [real]
	// rc-replace [real]
	// rc-large [real]
	// rc-peers [real]
	// carousel-retwis [virtual real]
	// carousel-ycsbt [virtual real]
	// store-protocols [virtual real]
	// carousel-readonly [virtual]
	// carousel-locality [virtual]
	// carousel-contention [virtual]
	// carousel-general [virtual]
	// carousel-placement [virtual]
	// str-chain [virtual real]
	// str-cpu [real]
	// carousel-throughput [virtual real]
	// carousel-failover [virtual]
	// str-synthetic [virtual]
	// str-tuning [virtual]
	// str-clocks [virtual]
	// str-tpcc [virtual]
	// str-rubis [virtual]
	// str-failover [virtual]
	// str-readers [virtual]
}
