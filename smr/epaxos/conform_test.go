package epaxos_test

import (
	"os"
	"testing"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

func TestConformance(t *testing.T) {
	smrtest.Suite(t, epaxos.Protocol(), smrtest.Seeds)
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, epaxos.Protocol(), nil) }

// TestRest: a group that has nothing to do rests, and a member that is lost meanwhile is missed.
func TestRest(t *testing.T) { smrtest.Rest(t, epaxos.Protocol(), 60) }
