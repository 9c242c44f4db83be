package plan_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// TestByzantine has the medians over the sites of four replicas, which the project's own
// computations had before.
func TestByzantine(t *testing.T) {
	for _, c := range []struct {
		network string
		leader  wan.Site
		system  plan.System
		want    [3]float64 // first, confirmed, read, in ms
	}{
		{"na4", "TX", plan.PBFT, [3]float64{30, 72.5, 43}},
		{"na4", "WA", plan.PBFT, [3]float64{42, 90, 43}},
		{"na4", "VA", plan.PBFT, [3]float64{31, 77.5, 43}},
		{"na4", "QC", plan.PBFT, [3]float64{38, 85, 43}},
		{"na4", "TX", plan.Zyzzyva, [3]float64{68, 68, 43}},
		{"na4", "WA", plan.Zyzzyva, [3]float64{76.5, 76.5, 43}},
		{"na4", "", plan.ByzantineFloor, [3]float64{11, 43, 43}},
		{"globe4", "SG", plan.PBFT, [3]float64{118, 280, 156}},
		{"globe4", "SG", plan.Zyzzyva, [3]float64{229.5, 229.5, 156}},
		{"globe4", "", plan.ByzantineFloor, [3]float64{0, 156, 156}},
	} {
		s := preset(t, c.network)
		s.Leader = c.leader
		rows := latencies(t, s, c.system)
		for i, m := range c.system.Moments() {
			got := plan.Quantile(plan.Of(rows, c.system, m), 0.5)
			if want := time.Duration(c.want[i] * float64(time.Millisecond)); got != want {
				t.Errorf("%s, primary %s, %s, %v: %v, want %v", c.network, c.leader, c.system, m, got, want)
			}
		}
	}
}
