package bfttest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
)

// TestSmallRoundTrip has groups that were told of a round trip that is shorter than theirs by a
// factor of up to 40, or whose machine is busy. Their timeouts rise to what they need: the first
// results come within some true round trips, as do all later ones, and views change seldom.
func TestSmallRoundTrip(t *testing.T, p bft.Protocol) {
	for _, told := range []time.Duration{roundTrip / 4, roundTrip / 10, roundTrip / 40} {
		for work, slower := range map[time.Duration]time.Duration{0: 1, 60 * time.Microsecond: 2} {
			r, err := Play(Scenario{Protocol: p, RoundTrip: told, Work: work, Clients: 6, For: 4 * time.Second})
			if err != nil || r.Served > 8*slower*roundTrip || r.Slowest > 10*slower*roundTrip || r.View > 16 {
				t.Errorf("told of %v, at work for %v: %+v: %v", told, work, r, err)
			}
		}
	}
}
