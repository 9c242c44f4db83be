package simulated

import "github.com/foresay/foresay/bench"

// Experiments returns the experiments on stores in the simulator, in the order in which they are
// best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{carouselThroughput(), carouselFailover()}
}
