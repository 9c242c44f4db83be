package calls

import (
	"testing"

	"github.com/foresay/foresay/bench"
)

// TestNeverSlowerAtALimit: whatever number of streams the server admits, and however many callers
// there are, speculation costs at most 5 % of the mean and of the throughput. A call may now and
// then be behind one that tries whether the limit still holds.
func TestNeverSlowerAtALimit(t *testing.T) {
	st := limits().study(bench.Options{Mode: bench.Virtual, Quick: true})
	s := newSession(st, bench.Run{Options: bench.Options{Mode: bench.Virtual, Seed: 7}, Experiment: "limits"})
	if err := s.virtual(t.Context(), bubbles(t)); err != nil {
		t.Fatal(err)
	}
	for g, group := range s.groups {
		base, own := s.tally[g][0], s.tally[g][1]
		mean, ops, worst := own.ratio(base, latencyRatio.of), own.ratio(base, opsRatio.of), own.ratio(base, worstRatio.of)
		least, most := 0.95, 1.2
		if group[1].cold { // of one request each the throughput is that of the slowest
			least, most = 0.8, 1.25
		}
		if mean > 1.06 || ops < least || worst > most {
			t.Errorf("%v: %.2f of the mean, %.2f of the throughput, %.2f of the worst time", group[1], mean, ops, worst)
		}
		if v := group[1].stack.variant; v.streams == 0 && v.halfOpen == 0 && mean > 0.34 && !group[1].cold {
			t.Errorf("%v: %.2f of the mean without a limit: not all calls are sent at once", group[1], mean)
		}
	}
}
