// Package server is the server of a file system as a node of package protocol: the truth, which
// clients are and what they hold.
//
// A client's changes arrive as epochs. An epoch is carried out whole or not at all, in the
// session's order; it is refused if something that it assumed is not true, and then so is all that
// the client has sent on top of it. Its answer leaves when its effects are on disk, together with
// the session's place, so that a client may send an epoch again.
//
// Clients hold what they have fetched. One that relies on leases is told before somebody else's
// change of it, which waits until the client has heard, or its lease is over. Others are told with
// the next answer that has to do with it.
package server
