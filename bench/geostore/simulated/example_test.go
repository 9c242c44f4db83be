package simulated_test

import (
	"fmt"

	"github.com/foresay/foresay/bench/geostore/simulated"
)

func ExampleExperiments() {
	for _, e := range simulated.Experiments() {
		fmt.Println(e.Name)
	}
	// Output:
	// carousel-throughput
	// carousel-failover
	// str-synthetic
	// str-tuning
	// str-clocks
	// str-tpcc
	// str-rubis
	// str-failover
	// str-readers
}
