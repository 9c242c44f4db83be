// Package bft is what replicated services share whose replicas and clients may lie.
//
// What a member relies on and may have to prove to others is signed. A [Signed] is a body with a
// signature that was checked: by the decoder that read it from the network, or because it was made
// here, by a [Signer]. Code of a node cannot make one that says of another's key that it signed
// something. A [Certificate] is one body with the signatures of several. What is signed begins with
// the group and the kind of the statement ([NewStatement]), so a signature means nothing in another
// group or as another statement.
//
// A node still has to know whose key it is: [Directory] has the keys of members and clients.
//
// A [Service] is what is replicated: commands over an ordered key space and an agreed time. Undo,
// digests, transfers and what is on disk are the replica's.
package bft
