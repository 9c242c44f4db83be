package spectree

// Limited says which limits kept a task from speculating.
type Limited uint8

// The limits, each a bit.
const (
	ByDepth Limited = 1 << iota
	ByWidth
	ByReplays
	ByRuns
)

// Limited returns which limits the task has met so far.
func (t *Tree) Limited() Limited { return t.limited }

// within reports whether the run may stand on one more prediction, and notes which limit is met if
// not.
func (t *Tree) within(r *Run) bool {
	l := &t.cfg.Limits
	switch {
	case r.open+t.cfg.Depth >= l.Depth:
		t.limited |= ByDepth
	case t.started > l.Replays:
		t.limited |= ByReplays
	case t.running > l.Runs:
		t.limited |= ByRuns
	default:
		return true
	}
	return false
}
