// Package plan says what replicated protocols give to clients in a wide-area network, from the
// delays alone: how long a command of each client takes until it is durable and until it is
// executed, how far that is from what is physically possible, and where replicas are best placed.
//
// Of protocols whose replicas may lie it tells when the first reply comes, on which a client can go
// on if it guesses, when the reply is confirmed, and how long a read takes that goes around the
// order.
//
// The model has messages that take as long as their links, nodes and disks that take no time, and
// one command at a time: nobody queues, collides or conflicts. Fast Paxos is that fast only without
// concurrent commands, EPaxos only without conflicting ones, and Mencius executes later, by up to a
// round trip, if other replicas propose at the same time [OSDI'08 §4.2]. Zyzzyva is that fast only
// if all replicas answer, and reads around the order only while nobody writes. Losses are not part
// of it, and jitter only by its bound: Row.Longest.
//
// What the model says of this repository's protocols is checked against their simulation ('foresay
// smr plan --check').
package plan
