package plansim

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// TestFirstLeader: in a new group that replica leads which the configuration names, wherever it is:
// whoever is nearest to it may not have been admitted yet when it first stands for election.
func TestFirstLeader(t *testing.T) {
	for _, network := range []string{"specrpc", "na5", "globe3"} {
		d, err := wan.Preset(network)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range catalog.Protocols() {
			if !p.HandsOver {
				continue
			}
			for i := range d.Replicas {
				for seed := range uint64(3) {
					want := protocol.ID(1 + i)
					g, err := smrsim.New(smrsim.Config{Protocol: p, Place: d, FirstClient: 1000, RoundTrip: longest(plan.From(d)),
						Sim:     sim.Config[smr.Message]{Seed: seed, CheckEvery: 1 << 20, TraceKeep: -1},
						Replica: func(r *smr.ReplicaConfig) { r.Machine, r.Leader = &tally{}, want }})
					if err != nil {
						t.Fatal(err)
					}
					if err := g.Pass(5 * time.Second); err != nil {
						t.Fatal(err)
					}
					g.Deliver(want, smr.StatusQuery{})
					if err := g.Pass(time.Millisecond); err != nil {
						t.Fatal(err)
					}
					if got := g.Status[want].Leader; got != want {
						t.Errorf("%s, %s, seed %d: %d leads, want %d", network, p.Name, seed, got, want)
					}
				}
			}
		}
	}
}
