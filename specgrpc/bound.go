package specgrpc

import "time"

const (
	// probeEvery is how long a bound stands without a sign of it before it is taken for higher.
	probeEvery = time.Second
	// forgetAfter is how long it stands where nobody asks.
	forgetAfter = 10 * time.Second
)

// bound is how many of a thing a peer admits, as far as was learnt: it does not tell, and may
// change its mind, or be another peer by now.
type bound struct {
	most  int       // 0 for any number
	since time.Time // when there was a sign of it, or it was raised
	step  int       // by how much it is raised next
	sure  bool      // it was seen for long
}

func (b *bound) learn(n int, now time.Time) {
	*b = bound{most: max(n, 1), since: now, step: 1, sure: true}
}

// suspect has it taken for as many until more is known.
func (b *bound) suspect(n int, now time.Time) {
	*b = bound{most: max(n, 1), since: now, step: 1 + n/8}
}

// age raises a bound of which there has been no sign of late, twice as much each time, and
// forgets it once it is beyond what anybody could need.
func (b *bound) age(now time.Time, needed int) {
	past := now.Sub(b.since)
	if b.most == 0 || past <= probeEvery {
		return
	}
	b.most, b.step, b.since = b.most+b.step, 2*b.step, now
	if b.most > needed || past > forgetAfter {
		*b = bound{}
	}
}
