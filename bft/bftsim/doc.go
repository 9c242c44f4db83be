// Package bftsim has groups of Byzantine replicas and their clients in the simulator, for
// benchmarks and measurements: a replica at each site of a place, clients at sites of its network,
// and calls whose first and confirmed replies are told. Some replicas may be traitors. Tests that
// judge what comes of it are in package bfttest.
package bftsim
