package replicatedcommit

import (
	"testing"
	"time"
)

// TestPaceOfBursts: under load answers come in bursts, as disks write them. Who learns from each
// would take the last burst for all that there is, and ask again for nearly each answer of a slower
// one.
func TestPaceOfBursts(t *testing.T) {
	const roundTrip = 5 * time.Millisecond
	var p pace
	asked, answers := 0, 0
	for i := range 400 { // bursts, 10 ms apart, of answers that took 5 to 20 ms
		now := time.Duration(i) * 10 * time.Millisecond
		took := time.Duration(5+(i*7)%16) * time.Millisecond
		for j := range 24 {
			if i >= 20 {
				if answers++; took > p.lag(2, roundTrip) {
					asked++
				}
			}
			p.saw(now+time.Duration(j)*time.Microsecond, took+time.Duration(j)*time.Microsecond, roundTrip)
		}
	}
	if asked > answers/100 {
		t.Errorf("%d of %d answers come later than they are waited for", asked, answers)
	}
	if lag := p.lag(2, roundTrip); lag > 60*time.Millisecond {
		t.Errorf("who waits for answers of at most 20 ms waits for %v", lag)
	}
}

// TestPaceAfterIdleTime: the slowest answer of the last burst does not count as that of the first
// round trip after an idle time.
func TestPaceAfterIdleTime(t *testing.T) {
	const roundTrip = 5 * time.Millisecond
	var p pace
	now := time.Duration(0)
	for ; now < time.Second; now += roundTrip {
		p.saw(now, 10*time.Millisecond, roundTrip)
	}
	before := p.lag(2, roundTrip)
	p.saw(now-roundTrip+time.Millisecond, 900*time.Millisecond, roundTrip) // in the last round trip before
	now += time.Minute
	p.saw(now, 10*time.Millisecond, roundTrip)
	if lag := p.lag(2, roundTrip); lag > before {
		t.Errorf("after an idle minute it waits for %v, before for %v", lag, before)
	}
}
