// Package host runs the nodes of package protocol on real machines: real timers, messages over
// package transport, a disk.
//
// A [Host] is a process's part of a cluster. It has any number of nodes, one for each partition
// say, and of any protocols: [Add] makes each from a [Spec]. Each has a goroutine, which gathers
// what arrived, calls the node with it, and carries out what the node wants done. The disk works
// meanwhile: what a node sends waits until what it wrote is durable, the node does not. Programs
// hand messages to their nodes with Deliver, and get the answers by a function of the Spec.
//
// Everything that waits has a bound. A program that delivers too much waits; what the network
// brings too much of is lost, and the node is told by Broken; what a slow peer does not take is
// lost as well, and the peer's nodes are told. No node waits for another.
//
// A node that panics, or whose disk fails, stops and is never called again; Run stops all others
// and returns the error.
package host
