package raft_test

import (
	"testing"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestSmoke(t *testing.T) {
	for seed := range uint64(2000) {
		r, err := smrtest.Play(smrtest.Scenario{Protocol: raft.Protocol(), Seed: seed + 1, Faults: sim.Swarm(seed, sim.AllFaults)})
		t.Log(r)
		if err != nil {
			t.Error(err)
		}
	}
}
