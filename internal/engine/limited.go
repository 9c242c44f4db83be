package engine

import (
	"slices"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/spectree"
)

// refusals are what kept calls of a task from being sent for a speculative caller.
type refusals struct {
	limits []control.Limit // that were met
	failed []string        // operations, see FailedAhead
}

// refused returns the task's refusals. Under mu.
func (t *task) refused() *refusals {
	if t.refusals == nil {
		t.refusals = new(refusals)
	}
	return t.refusals
}

// Limited tells that a limit keeps the attempt from being sent for a speculative caller.
func (a *Attempt) Limited(by control.Limit) {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limitedBy(a.call.op.CallSite, by)
}

// FailedAhead tells that the attempt, which was made ahead of its caller's confirmation as if that
// had come, has failed: to ask again so early would fail again. Hold comes next.
func (a *Attempt) FailedAhead() {
	op, t := a.call.tree.Op(), a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.refused(); !slices.Contains(r.failed, op) {
		r.failed = append(r.failed, op)
	}
}

// MayGoAhead reports whether no equal call of the task, in whichever run, has failed so.
func (a *Attempt) MayGoAhead() bool {
	t := a.call.task
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refusals == nil || !slices.Contains(t.refusals.failed, a.call.tree.Op())
}

// limitedBy notes that a limit was met. Under mu.
func (t *task) limitedBy(s *control.CallSite, by control.Limit) {
	s.Engine().Limited(by)
	t.noteLimit(by)
}

func (t *task) noteLimit(by control.Limit) {
	if r := t.refused(); !slices.Contains(r.limits, by) {
		r.limits = append(r.limits, by)
	}
}

// limitsMet returns the names of the limits that the task has met. Under mu.
func (t *task) limitsMet() (names []string) {
	met := t.tree.Limited()
	for _, l := range []struct {
		bit spectree.Limited
		by  control.Limit
	}{
		{spectree.ByDepth, control.LimitDepth}, {spectree.ByWidth, control.LimitWidth},
		{spectree.ByReplays, control.LimitReplays}, {spectree.ByRuns, control.LimitRuns},
	} {
		if met&l.bit != 0 {
			t.noteLimit(l.by)
		}
	}
	if t.refusals == nil {
		return nil
	}
	for _, by := range t.refusals.limits {
		names = append(names, string(by))
	}
	return names
}

// takePermit counts a call as having a prediction, unless its call site has too many. Under mu.
func (t *task) takePermit(s *control.CallSite) bool {
	ok := s.Engine().TakePermit()
	if !ok {
		t.limitedBy(s, control.LimitCallSitePending)
	}
	return ok
}

// tooDeep reports whether a caller on so many open assumptions is beyond the limit.
func tooDeep(l *control.CallSiteLimits, open int) bool { return l.Depth > 0 && open > l.Depth }

// tooWide reports whether a call with so many predictions has enough.
func tooWide(l *control.CallSiteLimits, predictions int) bool {
	return l.Width > 0 && predictions >= l.Width
}

// mayOffer reports whether the call may have one more prediction. Under mu.
func (c *call) mayOffer() bool {
	if tooWide(&c.op.config().Limits, len(c.predictions)-len(c.withdrawn)) {
		return false
	}
	c.permit = c.permit || c.op.CallSite.Engine().TakePermit()
	return c.permit
}

// returnPermit notes that the call has its result, or that nobody wants it. Under mu.
func (c *call) returnPermit() {
	if c.permit {
		c.permit = false
		c.op.CallSite.Engine().ReturnPermit()
	}
}
