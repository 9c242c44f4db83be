// Package layered is the store built of existing parts: two-phase commit whose participants are
// Raft groups. The servers of a shard, one at each site, are a group, which replicates the shard's
// values, locks, votes and decisions; a coordinator at each machine has the groups carry out
// commands. It is what protocols that merge the two layers, as Carousel does [Carousel §4.1], are
// compared with.
//
// Transactions are strictly serializable: each shard checks what was read when it votes, and its
// keys are locked from then on until the decision. The decision is made by the group of the
// transaction's first shard, its anchor: what that has written first counts, so that any
// coordinator may ask it to decide, and nobody waits for one that is gone. A transaction that meets
// another one's locks waits, and has a younger one aborted (wound-wait). Reads are answered by
// leaders; what a transaction has read that writes nothing is checked there, by read index. See
// DESIGN.md.
package layered
