package plancmd

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
)

// TestPlanVerdict: what is off is named, and the command fails.
func TestPlanVerdict(t *testing.T) {
	s := &plannedSystem{system: plan.Raft}
	for i := range 7 {
		c := plansim.Comparison{
			Row: plan.Row{Client: plan.Client{Site: "VA"}, Ack: smr.AckDurable, Latency: 100 * time.Millisecond},
			Low: 100 * time.Millisecond, High: 100 * time.Millisecond,
			Measured: time.Duration(104+i) * time.Millisecond, Claimed: true,
		}
		s.check = append(s.check, c)
	}
	r := &planned{systems: []*plannedSystem{s}}
	if err := r.verdict(); err == nil || !strings.HasSuffix(err.Error(),
		"raft at VA, durable: 106 ms, the model says 100; raft at VA, durable: 107 ms, the model says 100; "+
			"raft at VA, durable: 108 ms, the model says 100; raft at VA, durable: 109 ms, the model says 100; raft at VA, "+
			"durable: 110 ms, the model says 100") {
		t.Errorf("verdict %v", err)
	}
	if rows, off := s.measured(smr.AckDurable); len(rows) != 7 || rows[6].Latency != 110*time.Millisecond ||
		off != "10.0 %" {
		t.Errorf("%v, %s", rows, off)
	}
	s.check = s.check[:2]
	if err := r.verdict(); err != nil {
		t.Errorf("what is off by 5 %% is an error: %v", err)
	}
}
