package raft

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "a leader that reaches no majority goes on", Test: "TestLeaderWithoutMajorityStops",
			Old: "return peer, peer != 0 && alive <= len(members)/2",
			New: "return peer, !MUTANT && peer != 0 && alive <= len(members)/2",
		},
		{
			Name: "a vote in an unchanged term is not recorded", Test: "TestVoteIsOnDisk",
			Old: "next.term != c.hard.term || next.vote != c.hard.vote {",
			New: "next.term != c.hard.term || next.vote != c.hard.vote && !MUTANT {",
		},
		{
			Name: "who was removed and stands for election is not told", Test: "TestRemovedReplicasAreTold",
			Old: "\tr.Admission.SendAhead(env, from, kit.Removed{})\n",
			New: "\tif !MUTANT {\n\t\tr.Admission.SendAhead(env, from, kit.Removed{})\n\t}\n",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "smr/raft"
	}
	return bugs
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }
