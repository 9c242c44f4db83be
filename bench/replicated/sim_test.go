package replicated

import (
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/wan"
)

func setting(t *testing.T, p smr.Protocol, network string) Setting {
	d, err := wan.Preset(network)
	if err != nil {
		t.Fatal(err)
	}
	return Setting{Protocol: p, WAN: d, Seed: 1, Ack: smr.AckDurable, Every: 50 * time.Millisecond}
}

// TestLatencyIsTheModels: each site's latency is the model's.
func TestLatencyIsTheModels(t *testing.T) {
	for _, p := range []smr.Protocol{multipaxos.Protocol(), raft.Protocol()} {
		for _, network := range []string{"na3", "na5", "globe3"} {
			t.Run(p.Name+" "+network, func(t *testing.T) {
				setting := setting(t, p, network)
				sites, err := Latency(setting, 2*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				models, err := plan.Latencies(plan.From(setting.WAN), plan.System(p.Name))
				if err != nil {
					t.Fatal(err)
				}
				for i, model := range plan.Of(models, plan.System(p.Name), plan.Durable) {
					s := sites[i]
					took := slices.Sorted(slices.Values(s.Took()))
					if len(took) < 20 {
						t.Errorf("%s: %d calls", s.Site, len(took))
						continue
					}
					got := took[len(took)/2]
					if diff := got - model.Latency; diff < 0 || diff > model.Latency*3/100+time.Millisecond {
						t.Errorf("%s: median %v, model %v", s.Site, got, model.Latency)
					}
				}
			})
		}
	}
}
