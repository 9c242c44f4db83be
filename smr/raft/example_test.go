package raft_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

// Three replicas live through six seconds of crashes and partitions, in virtual time.
func Example() {
	report, err := smrtest.Play(smrtest.Scenario{
		Protocol: raft.Protocol(), Seed: 1, Faults: sim.Crash | sim.Partition, For: 6 * time.Second,
	})
	fmt.Println(report.Committed > 100, report.Crashes > 0, err)
	// Output: true true <nil>
}
