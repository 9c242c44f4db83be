package foresay

import (
	"fmt"
	"time"
)

// SiteLimits bound the speculation that one site causes, beside the Limits of
// tasks. A zero field sets none. At a limit a call waits, as it would without
// Foresay; it never fails.
type SiteLimits struct {
	// Pending is how many of the site's calls may have a prediction and no
	// actual result yet, in all tasks of the site's connection together. A call
	// beyond that waits for its actual result.
	Pending int
	// Depth is on how many open assumptions, those of callers on other nodes
	// included, a run may stand that makes a call of the site. A call made deeper
	// is neither predicted nor sent before the run's assumptions are confirmed.
	Depth int
	// Width is how many predictions of one call are followed: the first to come,
	// those of the code and the predictors before the server's.
	Width int
	// MinSaving takes the place of Limits.MinSaving for the sending of the
	// site's calls. Negative: send at once.
	MinSaving time.Duration
}

func (l *SiteLimits) check() error {
	for _, f := range []struct {
		name  string
		value int
	}{{"Pending", l.Pending}, {"Depth", l.Depth}, {"Width", l.Width}} {
		if f.value < 0 {
			return fmt.Errorf("field Limits.%s is %d; want 0 for no limit, or more", f.name, f.value)
		}
	}
	return nil
}

// tooDeep reports whether a caller on so many open assumptions is beyond the limit.
func (l *SiteLimits) tooDeep(open int) bool { return l.Depth > 0 && open > l.Depth }

// tooWide reports whether a call with so many predictions has enough.
func (l *SiteLimits) tooWide(predictions int) bool { return l.Width > 0 && predictions >= l.Width }

// takeSlot counts a call as having a prediction, unless there are too many.
func (s *Site) takeSlot() bool {
	if n := s.pending.Add(1); s.cfg.Limits.Pending == 0 || n <= int64(s.cfg.Limits.Pending) {
		return true
	}
	s.pending.Add(-1)
	return false
}

// freeSlot takes back what takeSlot counted.
func (s *Site) freeSlot() { s.pending.Add(-1) }

// mayOffer reports whether the call may have one more prediction. Under mu.
func (c *call) mayOffer() bool {
	if c.op.Site.cfg.Limits.tooWide(len(c.predictions) - len(c.withdrawn)) {
		return false
	}
	c.slot = c.slot || c.op.Site.takeSlot()
	return c.slot
}

// freeSlot notes that the call has its result, or that nobody wants it. Under mu.
func (c *call) freeSlot() {
	if c.slot {
		c.slot = false
		c.op.Site.freeSlot()
	}
}
