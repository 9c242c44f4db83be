// Package front connects clients of a store to its sites over gRPC, whatever the store's protocol:
// both ends of the service foresay.store.v1.Store.
//
// A machine of a site offers the service with a [Server], which hands calls to the machine's gate.
// A client has a [Conn], which runs the protocol's client node with calls for messages. Small
// messages to a machine share a stream, as a stream for each costs several times as much. All that
// counts votes and answers is the node's, which the simulator proves; this package only carries. A
// Conn is a client.Backend: package store/client makes transactions of it.
package front
