package epaxos

import (
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestAllConflict: if all commands conflict, 1,800 a second of them take two round trips, and
// components have hundreds of instances. The search for them must not look at each pair: that takes
// a minute here for each second, which is how long this test may then last. Clients that wait for
// results keep a component from growing for ever.
func TestAllConflict(t *testing.T) {
	for _, early := range []float64{0, 1} {
		d := deploy(t, "na3", sim.Config[smr.Message]{}, func(c *smr.ReplicaConfig) { c.Machine = kv.New() })
		told, executed := load(t, d, 200, time.Second, 0.75, early)
		if len(told)+len(executed) != 9*200 {
			t.Errorf("%d calls are done", len(told)+len(executed))
		}
		if p50 := smrtest.Percentile(told, 0.5); p50 > 120*time.Millisecond {
			t.Errorf("durable: %v", p50)
		}
		if p50 := smrtest.Percentile(executed, 0.5); p50 > 400*time.Millisecond {
			t.Errorf("executed: %v", p50)
		}
	}
}
