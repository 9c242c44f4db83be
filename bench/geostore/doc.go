// Package geostore holds the experiments on the geo-replicated store, and what they run: a store of
// several sites in one process, its network shaped like a wide-area one, and closed-loop clients
// that play a workload and note each attempt of each transaction. The experiments, whose names
// begin with rc, put the clients of the store, in their modes, under the workloads of SpecRPC's
// evaluation. Their rows tell attempts that committed and whole transactions, all attempts and
// pauses included, apart.
//
// Those whose names begin with carousel, and store-protocols, compare protocols: the same
// transactions, their keys declared, on stores whose partitions are at some of the sites each,
// beside what package store/plan says of each transaction.
//
// In a testing/synctest bubble the network is in memory and exact, disks are in memory with a
// modelled time for each sync, and millions of keys are there without having been written. On the
// wall clock the network is TCP on the loopback interface with delays, disks are write-ahead logs
// in a directory, and the keys are loaded before the machines start.
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
		carouselPlacement(), strChain(), strCPU(),
	}
}
