package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, multipaxos.Protocol(), smrtest.DefaultSeeds())
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, multipaxos.Protocol(), nil) }
