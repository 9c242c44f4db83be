package table_test

import (
	"fmt"
	"os"

	"github.com/foresay/foresay/bench/table"
)

func ExampleWrite() {
	rows := []table.Row{
		{table.Is("system", "grpc"), table.Is("calls", 4), table.Measure("mean_ms", 40)},
		{table.Is("system", "foresay-do"), table.Is("calls", 4), table.Measure("mean_ms", 10)},
	}
	if err := table.Write(os.Stdout, rows); err != nil {
		fmt.Println(err)
	}
	// Output:
	// system      calls  mean_ms
	// grpc            4   40.000
	// foresay-do      4   10.000
}
