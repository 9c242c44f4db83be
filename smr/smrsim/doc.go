// Package smrsim has groups of replicas and their clients in the simulator, for tests, benchmarks
// and measurements: a replica at each site of a place, a client at each site of its network, and
// calls that are counted.
package smrsim
