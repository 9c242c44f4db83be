package replicated

import (
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/multipaxos"
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

// Each site's latency is the model's: the round trip to the leader, and the leader's to a majority.
func TestLatencyIsTheModels(t *testing.T) {
	for _, p := range []smr.Protocol{multipaxos.Protocol(), raft.Protocol()} {
		for _, network := range []string{"na3", "na5", "globe3"} {
			t.Run(p.Name+" "+network, func(t *testing.T) {
				sites, err := Latency(setting(t, p, network), 2*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range sites {
					took := slices.Sorted(slices.Values(s.Took()))
					if len(took) < 20 {
						t.Errorf("%s: %d calls", s.Site, len(took))
						continue
					}
					got := took[len(took)/2]
					if diff := got - s.Model; diff < 0 || diff > s.Model*3/100+time.Millisecond {
						t.Errorf("%s: median %v, model %v", s.Site, got, s.Model)
					}
				}
			})
		}
	}
}

func TestModel(t *testing.T) {
	d, err := wan.Preset("na5")
	if err != nil {
		t.Fatal(err)
	}
	// The leader is in Washington; the second nearest of its four peers is Texas, 42 ms away, and from Toronto it takes 57 ms to it.
	if got, want := Model(d, "TRT"), 99*time.Millisecond; got != want {
		t.Errorf("Model = %v, want %v", got, want)
	}
}
