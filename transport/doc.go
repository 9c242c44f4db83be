// Package transport carries messages between the nodes of different hosts, over streams of gRPC.
//
// A node is found under an [Addr]: its group, which is a partition or a replicated service, and its
// ID. A [Transport] serves all nodes of one process: each opens a [Port], sends through it, and
// gets what arrives for it by its [Sink]. IDs below Config.FirstClient are members, which have
// addresses in a table that may change while the transport runs; there is one stream from a host to
// each member that it may send to. All other IDs are clients: they need no address, since what is
// sent to them goes back over the stream on which they were last heard.
//
// # Order
//
// Messages from one node to another arrive at most once and in the order in which they were sent.
// Some may be lost: with a connection, or because a queue was full, since no Send ever waits. The
// receiving sink is then told, by Broken, before it gets any later message of that node. The number
// of a message in its stream, and the name and epoch of the stream in its Hello, show what is lost;
// a connection that breaks between two messages and is made again loses nothing, and nobody is
// told.
//
// # Security
//
// With [Config.TLS], both sides show a certificate of the cluster's authority. That of member 3 has
// the DNS name replica-3 (one of a host that is several members has several names), that of a
// client the name client, for all client IDs, or client-70000, for one. A member may use client IDs
// from [FirstMemberClient] up too, for calls of its own. A connection to member 3 is made to nobody
// else, and a message from node 3 is accepted from nobody else. Give each cluster an authority of
// its own; the cluster's name, which both sides compare, only finds honest mistakes.
//
// With [Config.Keys] there is no authority: a host is whoever proves the node's Ed25519 key, and
// one with none of the keys does not get through the handshake.
package transport
