package storeservice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storeconfig"
)

// MachineClock is how the clock that a machine's nodes go by stands to those of the other machines,
// as whoever asked for the status has measured it, whose own clock does not matter.
type MachineClock struct {
	// AheadMS is how far it is ahead of a typical one, give or take WithinMS.
	AheadMS  float64 `json:"ahead_ms"`
	WithinMS float64 `json:"within_ms"`
	// Off says that it is surely further away than clocks of machines may be apart.
	Off bool `json:"off"`
}

// clockReading is how far a machine's clock is ahead of the own one, give or take: where in its
// round trip the answer was given is not known.
type clockReading struct{ ahead, within time.Duration }

// clockBoundElsewhere is how far clocks may be apart where nothing is strict by them: they only
// decide how often transactions are refused.
const clockBoundElsewhere = time.Second

func clockBound(s *storeconfig.Store) time.Duration {
	if s.StoreProtocol().Clocked {
		return cmp.Or(s.MaxOffsetTime(), store.DefaultMaxOffset)
	}
	return clockBoundElsewhere
}

// leastClocks is of how many machines the clocks tell which one is wrong.
const leastClocks = 3

// compareClocks compares the clocks of machines with that in their middle.
func compareClocks(statuses []Status, bound time.Duration) {
	var all []clockReading
	for _, s := range statuses {
		if s.clock != nil {
			all = append(all, *s.clock)
		}
	}
	if len(all) < leastClocks {
		return
	}
	slices.SortFunc(all, func(a, b clockReading) int { return cmp.Compare(a.ahead, b.ahead) })
	typical := all[len(all)/2]
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	for i := range statuses {
		if c := statuses[i].clock; c != nil {
			ahead, within := c.ahead-typical.ahead, c.within+typical.within
			statuses[i].MachineClock = &MachineClock{AheadMS: ms(ahead), WithinMS: ms(within), Off: ahead.Abs() > within+bound}
		}
	}
}

// ClockComplaints says which machines' clocks are off, what that does and what to do, a line each.
func ClockComplaints(statuses []Status) (out []string) {
	for _, s := range statuses {
		c := s.MachineClock
		if c == nil || !c.Off {
			continue
		}
		where, does := "ahead of", ""
		if c.AheadMS < 0 {
			where = "behind"
			does = "; by more than max_ahead, transactions that need the machine are aborted: version ahead of time"
		}
		out = append(out, fmt.Sprintf("the clock of machine %s is %.1f s %s those of other machines: set it, and start the "+
			"machine again, which looks at the time of day when it starts%s", s.Machine, max(c.AheadMS, -c.AheadMS)/1e3, where,
			does))
	}
	return out
}
