package raft_test

import (
	"os"
	"testing"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

func TestConformance(t *testing.T) {
	smrtest.Suite(t, raft.Protocol(), smrtest.Seeds)
}

// TestMembersChangeWhileASnapshotIsWritten is a seed in which a new member is not in the snapshot
// that was begun before it was added: it needs another one.
func TestMembersChangeWhileASnapshotIsWritten(t *testing.T) {
	sc := smrtest.Swarm(raft.Protocol(), 2100)
	sc.Configure = func(c *smr.ReplicaConfig) { c.SnapshotPartBytes, c.SnapshotEvery = 64, 40 }
	if _, err := smrtest.Play(sc); err != nil {
		t.Error(err)
	}
}

// TestRemovedReplicasAreTold: one that the leader did not tell before it executed the removal
// learns it from those whose votes it asks for.
func TestRemovedReplicasAreTold(t *testing.T) {
	smrtest.Script(t, raft.Protocol(), "removed while nobody calls")
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, raft.Protocol(), nil) }

// TestRest: a group that has nothing to do rests, and a leader that is lost meanwhile is missed.
// TestRestPlants of package kit says what it notices.
func TestRest(t *testing.T) { smrtest.Rest(t, raft.Protocol(), 60) }
