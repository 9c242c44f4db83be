package kit

import "time"

// A Flow is what one peer was sent of a row of numbered things that it takes in order: slots of a
// log, positions of a track, items of a stream. It knows which one is sent next, and bounds what is
// under way, so that a peer that was away is brought up to date a part at a time. How much the peer
// has on its disk, and whether that is a vote, is the protocol's affair.
type Flow[P ~uint64] struct {
	next     P // the first that was not sent
	arrived  P // nothing up to it is under way
	underway Underway
}

// NewFlow returns the flow to a peer that was sent nothing, and gets what begins with next.
func NewFlow[P ~uint64](next P) Flow[P] { return Flow[P]{next: next, arrived: next - 1} }

// Next returns the first that was not sent.
func (f *Flow[P]) Next() P { return f.next }

// Arrived returns up to where nothing is under way: the peer has acknowledged it, or was never sent
// it.
func (f *Flow[P]) Arrived() P { return f.arrived }

// Ahead returns how many were sent and are not acknowledged.
func (f *Flow[P]) Ahead() int { return int(max(f.next, f.arrived+1) - 1 - f.arrived) }

// Full reports whether the peer should acknowledge something before it is sent more than the bound
// of smr.ReplicaConfig.MaxUnderwayBytes.
func (f *Flow[P]) Full(bound int) bool { return f.underway.Full(bound) }

// Sent notes a message with what is from Next up to last.
func (f *Flow[P]) Sent(now time.Duration, last P, entries, bytes int) {
	f.next = last + 1
	f.underway.Sent(now, uint64(last), entries, bytes)
}

// Done notes that the peer has all up to one.
func (f *Flow[P]) Done(to P) {
	f.arrived = max(f.arrived, to)
	f.underway.done(uint64(to))
}

// Skip leaves out what is up to one: the peer has it, or gets it in another way.
func (f *Flow[P]) Skip(to P) { f.next = max(f.next, to+1) }

// Lost goes back to what the peer lacks, from one on, unless that is probably still on its way.
func (f *Flow[P]) Lost(now time.Duration, from P, roundTrip time.Duration) {
	if from < f.next && f.underway.lost(now, uint64(from), roundTrip) {
		f.Restart(from)
	}
}

// Restart goes on from one, and takes nothing for under way: a connection broke, or the peer has
// got a state.
func (f *Flow[P]) Restart(next P) {
	f.next, f.arrived = next, next-1
	f.underway.forget()
}
