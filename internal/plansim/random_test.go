package plansim_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// TestRandomNetworks: the model is right in networks of any shape, in which ways there and back
// differ by up to a third and detours may be shorter, with one to five replicas anywhere. The
// execution by the thesis' Domino is left out: where commands come late to a replica, as its
// clients expect if ways there and back differ, the coordinator decides up to a tenth sooner or
// later.
func TestRandomNetworks(t *testing.T) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		sites := []wan.Site{"a", "b", "c", "d", "e", "f"}
		m := wan.Uniform(0, sites...)
		var x, y [6]float64
		for i := range sites {
			x[i], y[i] = 100*r.Float64(), 100*r.Float64()
		}
		for i, from := range sites {
			for j, to := range sites {
				distance := math.Hypot(x[i]-x[j], y[i]-y[j]) * (0.9 + 0.3*r.Float64())
				delay := 200*time.Microsecond + time.Duration(distance*float64(time.Millisecond))
				m = m.WithLink(wan.Path{From: from, To: to}, wan.Link{Delay: delay})
			}
		}
		s := plan.Setting{WAN: m, Busy: seed%3 == 2}
		for range 1 + r.IntN(5) {
			s.Replicas = append(s.Replicas, sites[r.IntN(len(sites))])
		}
		for _, i := range r.Perm(len(sites))[:3] {
			s.Clients = append(s.Clients, plan.Client{Site: sites[i]})
		}
		s.Leader = s.Replicas[r.IntN(len(s.Replicas))]
		for _, p := range catalog.Protocols() {
			rows, err := plansim.Compare(plansim.Config{Protocol: p, Setting: s, Seed: seed})
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			for _, c := range rows {
				if c.Off() > 0.05 && (p.Name != "domino" || c.Until != plan.Executed) {
					t.Errorf("seed %d, busy %v, %s with replicas at %v led by %s, client at %s, %v: %v, the model says %v to %v", seed,
						s.Busy, p.Name, s.Replicas, s.Leader, c.Client.Site, c.Until, c.Measured, c.Low, c.High)
				}
			}
		}
	}
}
