package domino_test

import (
	"fmt"

	"github.com/foresay/foresay/bench/replicated/domino"
)

func ExampleExperiments() {
	for _, e := range domino.Experiments() {
		fmt.Println(e.Name)
	}
	// Output:
	// domino-commit
	// domino-percentile
	// domino-execution
	// domino-adapt
}
