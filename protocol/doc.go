// Package protocol is the contract between a replicated protocol and what runs it.
//
// A protocol is written as a [Node]: a plain value without goroutines, clocks, locks or I/O. A
// runner calls it with a message that arrived or a timer that ran out; the node changes its own
// fields and says through an [Env] what is to be done: append a record to its log, write keys, send
// messages, set timers. The same node runs in a simulator (package sim), where every fault can be
// planned and repeated, and on machines (package host), over gRPC and a disk.
//
// # What a runner promises
//
//   - A node's methods are never called concurrently. What a call asked for is done after it has
//     returned.
//   - The records, truncations, writes and deletions of one call become durable together or not at
//     all, and in the order of the calls: after a crash a node finds what some number of its calls
//     wrote, no gaps.
//   - A message given to [Env.Send] leaves when all that this call and the calls before it wrote is
//     durable. [Env.SendAhead] does not wait for the disk.
//   - A message may be lost. Messages from one peer arrive at most once and in the order in which
//     they were sent, until the runner calls Broken of a node that has it (see [Linked]); a runner
//     that was asked for worse, as the simulator can be, repeats and reorders them. Who a message
//     is from is the runner's word, not the message's.
//   - What a node sends to itself arrives once, unless the node crashes first. As it leaves when
//     the call's records are durable, this is how a node learns that they are.
//   - Timers are lost with a crash. One that is stopped or set again in a call does not run out
//     afterwards with its old time.
//
// The contract is that of Foresay's architecture, section 6. It follows the pure cores of etcd's
// raft and of deterministic simulators: inputs in, effects out.
package protocol
