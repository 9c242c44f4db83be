// Package workload makes the transactions that papers on transactional stores measure with: YCSB+T,
// Retwis, and mixes of one's own, over keys of which some are more popular than others.
//
// A transaction has a program, Txn.Run, which reads and writes by a Tx: whoever has one can run it.
// The client of a store has one over gRPC (store/client), the experiments in the simulator have one
// whose program is a coroutine. Which keys a program is going to use can be asked in advance,
// Txn.Keys, and is a hint: stores are faster if it is right, and as correct if it is wrong.
//
// All chance comes from the *rand.Rand that the caller gives, so a run repeats from its seed. A
// workload holds no state of its own and can be shared by goroutines; the *rand.Rand cannot.
package workload
