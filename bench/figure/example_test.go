package figure_test

import (
	"fmt"

	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

func ExampleDraw() {
	rows := []table.Row{
		{table.Is("system", "grpc"), table.Is("calls", 1), table.Measure("mean_ms", 10)},
		{table.Is("system", "grpc"), table.Is("calls", 4), table.Measure("mean_ms", 40)},
	}
	spec := figure.Spec{Title: "Chains", X: "calls", XLabel: "calls", Y: "mean_ms", YLabel: "latency (ms)",
		Series: []string{"system"}}
	pictures, err := figure.Draw("chain", "virtual", []figure.Spec{spec}, rows)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pictures[0].Name, len(pictures[0].SVG) > 0)
	// Output: chain true
}
