package control

import (
	"fmt"
	"time"
)

// CallSiteLimits bound the speculation that one call site causes, beside the Limits of
// tasks. A zero field sets none. At a limit a call waits, as it would without
// Foresay; it never fails.
type CallSiteLimits struct {
	// Pending is how many of the call site's calls may have a prediction and no
	// actual result yet, in all tasks of the call site's connection together. A call
	// beyond that waits for its actual result.
	Pending int
	// Depth is on how many open assumptions, those of callers on other nodes
	// included, a run may stand that makes such a call. A call made deeper
	// is neither predicted nor sent before the run's assumptions are confirmed.
	Depth int
	// Width is how many predictions of one call are followed: the first to come,
	// those of the code and the predictors before the server's.
	Width int
	// MinSaving takes the place of Limits.MinSaving for the sending of the
	// call site's calls. Negative: send at once.
	MinSaving time.Duration
}

func (l *CallSiteLimits) check() error {
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

// TakePermit counts a call as having a prediction, unless there are too many.
func (s *engineCallSite) TakePermit() bool {
	if n := s.pending.Add(1); s.cfg.Limits.Pending == 0 || n <= int64(s.cfg.Limits.Pending) {
		return true
	}
	s.pending.Add(-1)
	return false
}

// ReturnPermit takes back what TakePermit counted.
func (s *engineCallSite) ReturnPermit() { s.pending.Add(-1) }
