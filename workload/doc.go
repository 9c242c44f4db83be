// Package workload makes the transactions that papers on transactional stores measure with: YCSB+T,
// Retwis, and mixes of one's own, over keys of which some are more popular than others.
//
// All chance comes from the *rand.Rand that the caller gives, so a run repeats from its seed. A
// workload holds no state of its own and can be shared by goroutines; the *rand.Rand cannot.
package workload
