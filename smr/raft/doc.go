// Package raft replicates a state machine by Raft: etcd's implementation as a library, behind
// Foresay's contract of pure nodes.
//
// The library decides; this package carries. What it wants written becomes records, what must wait
// for that is given to Env.Send, its acknowledgements to itself among it. Its own election clock
// draws from a global source of chance, so it is never ticked as a follower: elections, the refusal
// of votes while there is a leader, and a leader's resignation without a quorum are decided here,
// by timers from env.Rand, so that a run in the simulator repeats from its seed.
//
// Sessions, snapshots, the admission of new disks and the clients' node are those of package smr. A
// slot is an index of Raft's log.
//
// A [Part] is a member of a Raft group within a node of another protocol, with entries of that
// protocol's own and its state in the key space: see DESIGN.md.
package raft
