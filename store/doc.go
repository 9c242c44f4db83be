// Package store is the vocabulary of replicated transactional key-value stores: keys, versions,
// transactions, and how they end.
//
// A transaction reads keys, each with the version that it found, and buffers what it writes in a
// [Buffer]. Then it is committed as one [Txn]: if what it read is still so, its writes take effect
// at once, at all keys. All versions that a transaction writes are the one that names it, so the
// versions of a key follow the order in which transactions took effect.
//
// A [Topology] says which sites a store has, with which machines; a [Layout] is which nodes follow
// from it. A [Protocol] makes these nodes: a server for each shard at each site, a coordinator at
// each machine, and the node of a client. What a client asks of a site, what an operator asks of a
// node, and what these answer, are types of this package: the gate, the gRPC service and the
// machine (packages below this one) know no protocol. The protocols are in packages below this one,
// too, and package kit has what they share.
package store
