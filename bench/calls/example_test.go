package calls_test

import (
	"fmt"

	"github.com/foresay/foresay/bench/calls"
)

func ExampleExperiments() {
	for _, e := range calls.Experiments() {
		fmt.Println(e.Name)
	}
	// Output:
	// chain
	// chain-rtt
	// chain-length
	// bandwidth
	// overhead
	// observe-overhead
	// limits
	// multilevel
}
