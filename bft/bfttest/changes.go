package bfttest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/sim"
)

// TestMembers changes the members in all ways, while clients make calls.
func TestMembers(t *testing.T, p bft.Protocol) {
	const s = time.Second
	for name, c := range map[string]struct {
		script   func(*World)
		traitors map[int]bft.Traitor
		epoch    bft.Epoch
	}{
		"a disk is lost and replaced": {script: Replace(2, s, s/5), epoch: 1},
		"that of the first primary":   {script: Replace(0, s, s/5), epoch: 1},
		"keys are rotated":            {script: Scripts(Rotate(1, s, s/10), Rotate(0, 2*s, s/10)), epoch: 2},
		"asleep while all rotate": {script: Scripts(CutOff(3, s/2, 4*s), Rotate(0, s, s/10), Rotate(1, s*3/2, s/10),
			Rotate(2, 2*s, s/10), Rotate(3, s*5/2, s/10)), epoch: 4},
		"one more":        {script: Add(5, s), epoch: 1},
		"one more, fewer": {script: Scripts(Add(5, s), Remove(1, 2*s)), epoch: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				r, err := Play(Scenario{Protocol: p, Seed: seed, Traitors: c.traitors, Script: c.script, Ed25519: seed == 2})
				t.Logf("%+v", r)
				if err != nil || r.Epoch != c.epoch {
					t.Errorf("seed %d: %+v: %v", seed, r, err)
				}
			}
		})
	}
}

// PlayChanges plays a seed in which the members change at random: with other faults, with a traitor
// of one of the strategies, which may be replaced, or with both.
func PlayChanges(p bft.Protocol, seed uint64) (Report, error) {
	sc := Scenario{Protocol: p, Seed: seed, Script: ManyChanges(seed), Ed25519: seed%10 == 0, For: 4 * time.Second}
	if n := uint64(len(p.Strategies)); seed%3 > 0 {
		sc.Traitors = map[int]bft.Traitor{int(seed/n) % 4: p.Traitor(p.Strategies[seed%n])}
	}
	if seed%3 < 2 {
		sc.Faults = sim.Swarm(seed, sim.AllFaults&^sim.LostDisk)
	}
	return Play(sc)
}
