// Package kit is what the protocols of package bft share. A [Replica] is the part of a member that
// does not depend on how the members agree: the requests that it has, the batch that a primary
// fills, the layers above what is committed, checkpoints, the transfer of states and the repair of
// damaged ones, optimised reads, and for how long a request has waited. [Changes] are the members'
// words on the end of a view. A [Client] is a session of a client with its calls, requests and
// reads.
//
// A protocol embeds them. It decides in which place a batch is, when that is committed, what is
// said of it, and what confirms a result.
package kit
