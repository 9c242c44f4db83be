// Package keyspace is the state of a replicated service as an ordered space of keys: a committed
// base on disk, layers of changes above it that can still be undone, and a tree of digests by which
// replicas compare what they have and send each other what differs.
//
// A [State] keeps its base in the key space of a node, see package protocol. Changes are made in a
// [Layer], which is what a service is given to execute a request on. Layers stand on each other in
// the order in which they were made with [State.Push]: [State.Merge] commits the lowest one,
// [State.Drop] undoes a layer and all above it. Both cost what the layer changed.
//
// [State.Checkpoint] fixes the state's [Digest] and keeps that moment readable, as a [Moment],
// while later changes are committed, until [State.Release]. It costs what changed since the one
// before. Equal contents have equal digests, whatever their history, and other contents cannot have
// the same one: it is the root of a tree of SHA-256 sums.
//
// A replica that lags makes a [Fetch] of a checkpoint whose digest it knows to be right. It asks
// for [Want] after Want, of any replicas, and each answer, a page, is checked by itself before
// anything of it is used.
//
// [State.Scrub] compares what is on disk with the digests, some keys at a time.
//
// Everything is written within the call of the node in which it happens, so that after a crash the
// digests, the checkpoints and the base agree. Only the layers are gone.
package keyspace
