package byzantine

import "github.com/foresay/foresay/bench"

// Experiments returns the experiments, in the order in which they are best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{
		counterExperiment(), latencyExperiment(), failoverExperiment(), attackExperiment(), faultyExperiment(),
		throughputExperiment(),
	}
}
