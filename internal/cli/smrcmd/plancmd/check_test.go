package plancmd

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr/plan"
)

// TestOff: what is off by more than 5 % is named.
func TestOff(t *testing.T) {
	s := &plannedSystem{system: plan.Raft}
	for i := range 7 {
		c := plansim.Comparison{
			Row: plan.Row{Client: plan.Client{Site: "VA"}, Until: plan.Durable, Latency: 100 * time.Millisecond},
			Low: 100 * time.Millisecond, High: 100 * time.Millisecond,
			Measured: time.Duration(104+i) * time.Millisecond, Claimed: true,
		}
		s.check = append(s.check, c)
	}
	r := &planned{systems: []*plannedSystem{s}}
	const want = "raft at VA, durable: 106 ms, the model says 100; raft at VA, durable: 107 ms, the model says 100; " +
		"raft at VA, durable: 108 ms, the model says 100; raft at VA, durable: 109 ms, the model says 100; raft at VA, " +
		"durable: 110 ms, the model says 100"
	if off := strings.Join(r.Off(), "; "); off != want {
		t.Errorf("off: %s", off)
	}
	if rows, off := s.measured(plan.Durable); len(rows) != 7 || rows[6].Latency != 110*time.Millisecond ||
		off != "10.0 %" {
		t.Errorf("%v, %s", rows, off)
	}
	s.check = s.check[:2]
	if off := r.Off(); off != nil {
		t.Errorf("5 %% is too far: %v", off)
	}
}
