// Package plan says what replicated protocols give to clients in a wide-area network, from the
// delays alone: how long a command of each client takes until it is durable and until it is
// executed, how far that is from what is physically possible, and where replicas are best placed.
//
// The model has messages that take as long as their links, nodes and disks that take no time, and
// one command at a time: nobody queues, collides or conflicts. Fast Paxos is that fast only without
// concurrent commands, EPaxos only without conflicting ones, and Mencius executes later, by up to a
// round trip, if other replicas propose at the same time [OSDI'08 §4.2]. Losses are not part of it,
// and jitter only by its bound: Row.Longest.
//
// What the model says of this repository's protocols is checked against their simulation ('foresay
// smr plan --check').
package plan
