package raft_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestSeed(t *testing.T) {
	n, _ := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	f, _ := os.Create("/tmp/trace.txt")
	r, err := smrtest.Play(smrtest.Scenario{Protocol: raft.Protocol(), Seed: n, Faults: sim.Swarm(n-1, sim.AllFaults), Trace: f})
	t.Log(r, err)
}
