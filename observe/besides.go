package observe

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/critpath"
)

// besides reports whether the calls of a request are other than steps that follow each other, each
// a call or calls side by side: whether one began while another was under way, after a third had
// ended that the other did not wait for. It is not known which of the two the one waited for.
func besides(calls []critpath.Call) bool {
	byStart := func(a, b critpath.Call) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) }
	if !slices.IsSortedFunc(calls, byStart) {
		calls = slices.SortedFunc(slices.Values(calls), byStart)
	}
	var first, last time.Duration // when the first and the last call of the step end
	for i := range calls {
		switch c := &calls[i]; {
		case i == 0 || c.Start >= last:
			first, last = c.End, c.End
		case c.Start >= first:
			return true
		default:
			first, last = min(first, c.End), max(last, c.End)
		}
	}
	return false
}
