package storesim

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

func TestTry(t *testing.T) {
	m := wan.Carousel()
	keys, err := workload.Zipfian(1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := plan.Setting{WAN: m, Clients: plan.Everywhere(m), Load: plan.Load{Workload: workload.Retwis{Keys: keys}}}
	sites := m.Sites()
	for i := range sites {
		s.Placement = append(s.Placement, []wan.Site{sites[i], sites[(i+1)%5], sites[(i+2)%5]})
	}
	for _, name := range catalog.StoreNames() {
		p, err := catalog.Store(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Measure(Config{Protocol: p, System: plan.System(name), Setting: s, Seed: 1, Txns: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range got {
			if (g.Took - g.Modeled).Abs() > 2*time.Millisecond {
				t.Log(name, g)
			}
		}
	}
}
