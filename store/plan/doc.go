// Package plan says what protocols of the store give to clients in a wide-area network, from the
// delays alone: how long transactions of each client take, by their class, how far that is from
// what is physically possible, what a lost site does to it, and where partitions are best placed.
//
// The model has messages that take as long as their links, nodes and disks that take no time, and
// one transaction at a time: nobody queues, nothing conflicts and nothing is tried again. What it
// says of this repository's protocols is checked against their simulation ('foresay store plan
// --check').
package plan
