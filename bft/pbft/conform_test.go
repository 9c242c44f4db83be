package pbft_test

import (
	"testing"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
)

func TestCalm(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: 1})
	t.Logf("%+v", r)
	if err != nil {
		t.Fatal(err)
	}
	if r.View != 0 || r.Guesses == 0 || r.Right != r.Guesses || r.Aborted+r.Retried > 0 {
		t.Errorf("a calm run came to %+v", r)
	}
}

func TestSeeds(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 200)); s++ {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: s,
			Faults: sim.Swarm(s, sim.AllFaults&^sim.LostDisk), Ed25519: s%10 == 0, Ordered: s%4 == 0})
		if err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
	}
}
