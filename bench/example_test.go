package bench_test

import (
	"fmt"
	"os"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/experiments"
	"github.com/foresay/foresay/bench/table"
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
	// smr-snapshots [real]
	// smr-large [real]
	// smr-idle [real]
	// smr-failover [virtual]
	// rc-ycsb-ops [virtual real]
	// rc-ycsb-reads [virtual real]
	// rc-retwis [virtual real]
	// rc-contention [virtual real]
	// rc-floor [virtual real]
	// rc-throughput [real]
	// rc-hot [real virtual]
	// rc-away [real]
	// rc-away-half [real]
	// rc-large [real]
	// rc-peers [real]
}

func ExampleResult_WriteTable() {
	r := bench.Result{Experiment: "chain", Mode: bench.Virtual, Rows: []table.Row{
		{{Name: "system", Value: "grpc"}, {Name: "correct_percent", Value: 90}, {Name: "mean_ms", Value: 40.0}},
		{{Name: "system", Value: "foresay-do"}, {Name: "correct_percent", Value: 90}, {Name: "mean_ms", Value: 13.0}},
	}}
	if err := r.WriteTable(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// system      correct_percent  mean_ms
	// grpc                     90   40.000
	// foresay-do               90   13.000
}
