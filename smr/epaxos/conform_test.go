package epaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, epaxos.Protocol(), smrtest.DefaultSeeds())
}

// TestSlowerThanConfigured: where all takes ten times the round trip that replicas and clients are
// told, the group serves all the same.
func TestSlowerThanConfigured(t *testing.T) {
	smrtest.Script(t, epaxos.Protocol(), "slower than configured")
}

// TestBackAmongLargeValues: a replica that was killed is back among large values, and the group
// goes on meanwhile.
func TestBackAmongLargeValues(t *testing.T) {
	smrtest.Script(t, epaxos.Protocol(), "back among large values")
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, epaxos.Protocol(), nil) }

func TestSalvage(t *testing.T) { smrtest.Salvage(t, epaxos.Protocol(), 5) }
