package epaxos

import (
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
)

// swarm is the scenario of a seed.
func swarm(seed uint64) scenario {
	sc := scenario{
		seed: seed, replicas: 3, clients: 5, keys: 3, faults: sim.Swarm(seed, sim.AllFaults&^sim.LostDisk), early: seed%2 == 0,
		disk: sim.Disk{Latency: time.Millisecond, Jitter: 2 * time.Millisecond},
	}
	if seed%3 == 0 {
		sc.replicas = 5
	}
	return sc
}

// TestSeeds has commands that commute if their keys differ, under random faults, with each kind of acknowledgement.
func TestSeeds(t *testing.T) {
	for shard := range uint64(4) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < 200; seed += 4 {
				w, err := swarm(seed + 1).play()
				if err != nil {
					t.Fatalf("seed %d, faults %v: %v", seed+1, w.faults, err)
				}
				if seed >= 8 {
					continue
				}
				again, err := swarm(seed + 1).play()
				if err != nil || again.Hash() != w.Hash() {
					t.Fatalf("seed %d went otherwise the second time: %v", seed+1, err)
				}
			}
		})
	}
}
