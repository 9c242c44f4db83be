// Package sim runs the pure nodes of package protocol in virtual time: one event loop, one seed,
// every run repeatable.
//
// A [Sim] holds nodes that its user adds, each at a site of a [wan.Matrix], with a clock and a disk
// of its own. A step is one call of one node: a message that arrives, a timer that runs out, a disk
// write that is done. Between two steps no time passes for the node, and the next step is whichever
// event is due first. All chance comes from the seed, so that a run with the same seed and the same
// program makes the same steps; [Sim.Hash] reports whether it did.
//
// Calls take no time either, unless [Config.Service] says how much. Then they wait in line for
// their node, which can be asked for more than it can do: [Sim.Busy] and [Sim.Waiting] tell how
// much that is.
//
// # What can go wrong
//
// Everything that package protocol lets happen can be made to happen, by a method of Sim, or at
// random by [Sim.Inject]: messages late, lost with their connection, or (with [Datagrams]) lost,
// repeated and reordered one by one; links cut in one direction or both, between sites or nodes;
// nodes that crash between calls or within one, with any number of the calls that are not yet
// durable kept, and come back; disks that are slow or gone; nodes that stand still; clocks that are
// off, drift or jump.
//
// # What is looked at
//
// After every step the node that made it is asked for broken invariants (protocol.Checked), then
// [Config.Check]. A node that panics fails the run too. A failure is an error that names the seed,
// the step and the node, and tells what happened before; [Sim.Explain] adds what the nodes hold.
//
// A Sim is used by one goroutine at a time. It starts none. A [Beside] lets programs in goroutines
// make calls to its nodes, in a bubble of testing/synctest, where its time is theirs.
package sim
