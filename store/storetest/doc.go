// Package storetest is what any store must hold, for tests of protocols: a simulated world with
// clients, faults of all kinds, and a judge of what clients saw and sites hold. A test of a
// protocol says what it is by a [Subject] and calls [Conformance]; tests of its own rules make a
// [World] and do with it what they want. Package proof plays store/client's transactions against
// real machines of a protocol.
package storetest
