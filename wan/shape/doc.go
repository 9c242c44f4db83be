// Package shape gives connections the delays, bandwidth and faults of a wide-area network, as
// package wan describes it.
//
// A [Network] makes connections between the sites of a matrix, with two back ends behind the same
// methods: in memory ([NewNetwork]) and over TCP on the loopback interface ([NewLoopback]). Each
// direction of a connection is a delay line: bytes leave when they are written, as far as the
// bandwidth allows, and arrive, in order, when the link's delay, jitter and retransmissions are
// over.
//
// # What is like TCP
//
//   - Dial takes a round trip, also if it is refused; Accept returns half a round trip later.
//   - Close lets arrive what was written, and then the end of the stream. Bytes for an end that is
//     closed are answered with a reset.
//   - Write waits while 4 MiB of its direction are written and not yet read.
//   - A lost segment costs its timeout, and so does all that is behind it.
//   - A black hole ([Network.SetDown]) tells nobody; what is written meanwhile arrives after it is
//     gone.
//
// Connections have no congestion window, so there is no slow start. Bandwidth belongs to a
// direction between two sites: all connections share it, first come, first served. Acknowledgements
// do not exist: a direction that is down does not slow down the other one.
//
// # Virtual time
//
// A network in memory works in a testing/synctest bubble and is exact there: a unary gRPC call over
// a connection that exists takes exactly a round trip, the first one takes three. gRPC needs a
// target with the passthrough scheme, [Network.DialContext] as its dialer and, for the bubble to
// end, grpc.WaitForHandlers(true) at servers. A network in memory has no goroutines of its own, yet
// one that reads from a connection is left if the bubble ends before the other end's Close has
// arrived; [Network.Close] ends them all. Two events that happen at one instant have no order:
// jitter, which is a hash of the seed, the link and the time, keeps them apart.
//
// # Real time
//
// Bytes never arrive early. How late they arrive is what the machine takes to wake up: on Linux on
// average 0.03 ms for a delay of 0.5 ms, 0.05 ms for 5 ms and 0.14 ms for 50 ms, of a virtual
// machine with two cores and nothing else to do, and a multiple of it on a busy one. BenchmarkEcho
// measures that, and TestLateness prints it. It is the same for all that is compared in one run. A
// network in memory uses Go's timers outside of a bubble, and is up to a millisecond late.
package shape
