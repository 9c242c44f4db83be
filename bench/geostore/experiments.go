package geostore

import "github.com/foresay/foresay/bench"

// Experiments returns the experiments on the geo-replicated store, in the order in which they
// are best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{
		ycsbOpsExperiment(), ycsbReadsExperiment(), retwisExperiment(), contentionExperiment(),
		floorsExperiment(), throughputExperiment(), hotExperiment(), awayFull(), awayHalf(), replaceExperiment(),
		largeExperiment(), peersExperiment(), carouselRetwis(), carouselYCSBT(), storeProtocols(),
		carouselReadOnly(), carouselLocality(), carouselContention(), carouselGeneral(),
		carouselPlacement(),
	}
}
