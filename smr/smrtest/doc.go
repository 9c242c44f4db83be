// Package smrtest is the conformance suite of package smr's protocols: what each must hold,
// whichever way it agrees.
//
// [Play] runs one group of replicas and its clients in the simulator, under faults drawn from a
// seed, and judges what came of it: all replicas applied prefixes of one sequence of commands
// (agreement); each command in it was proposed (validity), once (exactly-once), and is there if its
// client was told so (durability), in an order that no client could tell from a single machine's
// (linearizability: a client may hear of another's call, since time is common to all; in a third of
// the seeds proposals are done as soon as they are durable, and clients hand on what they were told
// in Call.After); and once faults end, calls are answered and replicas become equal again within a
// bound (liveness). [Suite] plays many seeds, and scripted scenarios beside them: failover, a crash
// of all, compaction and catch-up, changes of the members, a lost disk, a lost snapshot.
//
// The package's own tests give the suite protocols with a planted bug of each kind, which it must
// reject.
package smrtest
