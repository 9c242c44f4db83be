package domino

import "github.com/foresay/foresay/smr/kit"

// flow is what one member was sent of a replica's stream, or of the coordinator's decisions, and
// how much of it the member has.
type flow struct {
	kit.Flow[uint64]
	has     uint64 // as the member said last
	stalled int    // ticks since it had more of what was sent
}

// acked notes how much the member has. That may be less than before: a member that has started anew
// counts from 0, and is sent all again.
func (f *flow) acked(has uint64) {
	if has > f.has || has+1 >= f.Next() {
		f.stalled = 0
	}
	f.has = has
	f.Done(has)
}

// tick has all sent again that the member has not said it has, if it has said nothing new for some
// ticks.
func (f *flow) tick() {
	if f.Next() <= f.has+1 {
		f.stalled = 0
	} else if f.stalled++; f.stalled >= resendTicks {
		f.rewind()
	}
}

// rewind has all sent again that the member has not said it has.
func (f *flow) rewind() {
	f.stalled = 0
	f.Restart(f.has + 1)
}
