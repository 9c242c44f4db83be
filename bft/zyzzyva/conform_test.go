package zyzzyva_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
)

func TestCalm(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: 1})
	t.Logf("%+v", r)
	if err != nil {
		t.Fatal(err)
	}
	if r.View != 0 || r.Aborted+r.Retried > 0 {
		t.Errorf("a calm run came to %+v", r)
	}
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 80)); s++ {
		r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: s,
			Faults: sim.Swarm(s, sim.AllFaults&^sim.LostDisk), Ed25519: s%10 == 0, Ordered: s%4 == 0})
		if err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
	}
}

// play plays a seed with a traitor of each strategy in turn, in the place of the first primary or
// of another one.
func play(seed uint64) (bfttest.Report, error) {
	all := zyzzyva.Protocol().Strategies
	n := 4
	if seed%5 == 4 {
		n = 7
	}
	traitors := map[int]bft.Traitor{
		int(seed/uint64(len(all))) % 2: zyzzyva.Protocol().Traitor(all[seed%uint64(len(all))]),
	}
	if n == 7 {
		traitors[2+int(seed)%5] = zyzzyva.Protocol().Traitor(all[(seed/7)%uint64(len(all))])
	}
	faults := sim.NoFaults
	if seed%2 == 0 {
		faults = sim.Swarm(seed, sim.AllFaults&^sim.LostDisk)
	}
	return bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: seed, Faults: faults, Replicas: n,
		Traitors: traitors, Ed25519: seed%10 == 0, Ordered: seed%4 == 0, BadClients: int(seed % 3)})
}

func TestTraitors(t *testing.T) {
	t.Parallel()
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 80)); s++ {
		if r, err := play(s); err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
	}
}

// TestEveryStrategy has each strategy in the first primary, and in the next one, without other
// faults.
func TestEveryStrategy(t *testing.T) {
	for i, s := range zyzzyva.Protocol().Strategies {
		t.Run(s, func(t *testing.T) {
			for place := range 2 {
				r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: uint64(i), For: 2 * time.Second,
					Traitors: map[int]bft.Traitor{place: zyzzyva.Protocol().Traitor(s)}})
				if err != nil {
					t.Errorf("at %d: %+v: %v", place, r, err)
				}
			}
		})
	}
}

// TestTooManyTraitors: with more than f the suite finds that what was confirmed is lost, or two
// replicas differ. So it can.
func TestTooManyTraitors(t *testing.T) {
	for s := range uint64(10) {
		c := zyzzyva.Protocol().Traitor("conspire")
		_, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: s,
			Traitors: map[int]bft.Traitor{0: c, 1: c}})
		if err != nil {
			t.Logf("seed %d: %.200s", s, err)
			return
		}
	}
	t.Error("two conspirators of four are not noticed")
}
