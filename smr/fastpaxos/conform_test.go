package fastpaxos_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr/fastpaxos"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, fastpaxos.Protocol(), smrtest.DefaultSeeds())
}

// TestGroupOfOneGrows: a member that is alone adds others.
func TestGroupOfOneGrows(t *testing.T) {
	joined := 0
	sc := smrtest.Scenario{Protocol: fastpaxos.Protocol(), Seed: 1, Replicas: 1, Script: func(w *smrtest.World) {
		w.Sim.After(time.Second, func() {
			w.Join(2, func() {
				joined++
				w.Join(3, func() { joined++ })
			})
		})
	}}
	if r, err := smrtest.Play(sc); err != nil || joined != 2 || r.Committed < 100 {
		t.Errorf("%d joined, %v: %.900v", joined, r, err)
	}
}

// TestSlowerThanConfigured: where all takes ten times the round trip that replicas and clients are
// told, the group serves all the same.
func TestSlowerThanConfigured(t *testing.T) {
	smrtest.Script(t, fastpaxos.Protocol(), "slower than configured")
}

// TestBackAmongLargeValues: a replica that was killed is back among large values, and the group
// goes on meanwhile.
func TestBackAmongLargeValues(t *testing.T) {
	smrtest.Script(t, fastpaxos.Protocol(), "back among large values")
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, fastpaxos.Protocol(), nil) }
