package foresay

import (
	"slices"

	"github.com/foresay/foresay/internal/spectree"
)

// A Limit is what keeps a call from being predicted, or sent on a prediction, though nothing else
// does.
type Limit string

// The limits. A task's report and a site's statistics name those that were met.
const (
	LimitDepth       Limit = "depth"                             // Limits.Depth
	LimitWidth       Limit = "width"                             // Limits.Width
	LimitReplays     Limit = "replays"                           // Limits.Replays
	LimitRuns        Limit = "runs"                              // Limits.Runs
	LimitSiteDepth   Limit = "the site's depth"                  // SiteLimits.Depth
	LimitSitePending Limit = "the site's pending calls"          // SiteLimits.Pending
	LimitHalfOpen    Limit = "half-open calls of the connection" // of the client
	LimitStreams     Limit = "streams that the peer admits"      // of a connection
	LimitServer      Limit = "half-open calls, depth or size at the server"
)

// Limited tells that a limit keeps the attempt from being sent for a speculative caller.
func (a *Attempt) Limited(by Limit) {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limitedBy(a.call.op.Site, by)
}

// limitedBy notes that a limit was met. Under mu.
func (t *task) limitedBy(s *Site, by Limit) {
	s.stats.limited.Add(1)
	s.stats.limit.Store(&by)
	t.noteLimit(by)
}

func (t *task) noteLimit(by Limit) {
	if !slices.Contains(t.limits, by) {
		t.limits = append(t.limits, by)
	}
}

// limitsMet returns the names of the limits that the task has met. Under mu.
func (t *task) limitsMet() (names []string) {
	met := t.tree.Limited()
	for _, l := range []struct {
		bit spectree.Limited
		by  Limit
	}{
		{spectree.ByDepth, LimitDepth}, {spectree.ByWidth, LimitWidth},
		{spectree.ByReplays, LimitReplays}, {spectree.ByRuns, LimitRuns},
	} {
		if met&l.bit != 0 {
			t.noteLimit(l.by)
		}
	}
	for _, by := range t.limits {
		names = append(names, string(by))
	}
	return names
}

// takeSlot counts a call as having a prediction, unless its site has too many. Under mu.
func (t *task) takeSlot(s *Site) bool {
	ok := s.takeSlot()
	if !ok {
		t.limitedBy(s, LimitSitePending)
	}
	return ok
}
