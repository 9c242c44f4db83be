package bench_test

import (
	"fmt"
	"os"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
)

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
