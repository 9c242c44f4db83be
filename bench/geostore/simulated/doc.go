// Package simulated holds experiments on the geo-replicated store whose nodes run in the simulator:
// there a node may take a time for each call, be given more than it can do, or be killed by itself.
// Clients make transactions by the same programs as those of package geostore do, but without gRPC
// and without the engine: a program is a coroutine, and waits for what it reads.
package simulated

import "github.com/foresay/foresay/bench"

// Experiments returns the experiments on stores in the simulator, in the order in which they are
// best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{carouselThroughput(), carouselFailover(), strSynthetic(), strTuning(), strClocks(),
		strTPCC(), strRUBiS(), strFailover(), strReaders()}
}
