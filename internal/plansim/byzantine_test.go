package plansim_test

import (
	"testing"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// TestByzantineModelIsRight: what each client gets of each protocol whose replicas may lie is what
// the model says, led by any of four replicas, and by one of seven.
func TestByzantineModelIsRight(t *testing.T) {
	for _, network := range []string{"na4", "globe4"} {
		d, err := wan.Preset(network)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range catalog.ByzantineNames() {
			t.Run(network+"/"+name, func(t *testing.T) {
				t.Parallel()
				p, err := catalog.Byzantine(name)
				if err != nil {
					t.Fatal(err)
				}
				settings := []plan.Setting{}
				for _, leader := range d.Replicas {
					s := plan.From(d)
					s.Leader = leader
					settings = append(settings, s)
				}
				seven := plan.From(d)
				if seven.Replicas = d.Matrix.Sites(); len(seven.Replicas) > 7 {
					seven.Replicas = seven.Replicas[:7]
				}
				for _, s := range append(settings, seven) {
					rows, err := plansim.CompareByzantine(p, s, 1)
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range rows {
						if c.Off() > 0.02 {
							t.Errorf("%s, led by %s, %s, %v: %v, the model says %v", network, s.Leader, c.Client.Site, c.Until, c.Measured,
								c.Latency)
						}
					}
				}
			})
		}
	}
}
