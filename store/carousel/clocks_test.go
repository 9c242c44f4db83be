package carousel

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store/storetest"
)

// wrongClocks plays a store whose clocks jump, by no more than they may be apart: that is a few
// round trips, so that commits have to wait for it. Everything is to be strict. Odd seeds have
// faults of all other kinds.
func wrongClocks(mode variant, seed uint64) error {
	sc := storetest.Scenario{Seed: seed, Clients: 8, Keys: 4, Offset: 300 * time.Millisecond, Test: "TestClocks"}
	if seed%2 == 1 {
		sc.Faults = sim.Swarm(seed, sim.AllFaults) &^ (sim.Skew | sim.Jump)
	}
	_, err := storetest.PlayOnce(subject(mode), sc)
	return err
}

// TestClocks plays seeds of each mode.
func TestClocks(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		first := seed.First(t, 1)
		for n := first; n < first+uint64(seed.Count(t, 40)); n++ {
			if err := wrongClocks(mode, n); err != nil {
				t.Fatal(fmt.Errorf("seed %d: %w", n, err))
			}
		}
	})
}
