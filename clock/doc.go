// Package clock is what protocols make of clocks: timestamps that never step back, and estimates of
// when a message arrives.
//
// [Source] gives timestamps, [Delay] estimates delays from a [Window] of probes, [Slewed] makes a
// clock that never steps of a machine's two.
//
// It reads no clock. Times are those of a node's own, protocol.Env's Now, which may be off, drift
// and jump; nothing here relies on more than that they are usually about right. Values are used by
// one node, one call at a time.
package clock
