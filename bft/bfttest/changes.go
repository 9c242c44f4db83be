package bfttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
)

// TestMembers changes the members in all ways, while clients make calls.
func TestMembers(t *testing.T, p bft.Protocol) {
	const s = time.Second
	for name, c := range map[string]struct {
		script  func(*World)
		traitor string // in the place of the third
		epoch   bft.Epoch
	}{
		"a disk is lost and replaced":       {script: Replace(2, s, s/5), epoch: 1},
		"that of the first primary":         {script: Replace(0, s, s/5), epoch: 1},
		"a traitor is replaced":             {script: Replace(2, s, s/5), traitor: "conspire", epoch: 1},
		"keys are rotated":                  {script: Scripts(Rotate(1, s, s/10), Rotate(0, 2*s, s/10)), epoch: 2},
		"keys are rotated beside a traitor": {script: Rotate(1, s, s/10), traitor: "equivocate", epoch: 1},
		"asleep while all rotate": {script: Scripts(CutOff(3, s/2, 4*s), Rotate(0, s, s/10), Rotate(1, s*3/2, s/10),
			Rotate(2, 2*s, s/10), Rotate(3, s*5/2, s/10)), epoch: 4},
		"one more":        {script: Add(5, s), epoch: 1},
		"one more, fewer": {script: Scripts(Add(5, s), Remove(1, 2*s)), epoch: 2},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(2) {
				sc := Scenario{Protocol: p, Seed: seed, Script: c.script, Ed25519: seed == 1}
				if c.traitor != "" {
					sc.Traitors = map[int]bft.Traitor{2: p.Traitor(c.traitor)}
				}
				if r, err := Play(sc); err != nil || r.Epoch != c.epoch {
					t.Errorf("seed %d: %+v: %v", seed, r, err)
				}
			}
		})
	}
}

// TestChanges plays seeds in which the members change at random: with other faults, with a traitor
// of one of the strategies, which may be replaced, or with both.
func TestChanges(t *testing.T, p bft.Protocol) {
	t.Parallel()
	first, changes := seed.First(t, 1), 0
	n := seed.Count(t, 200)
	for s := first; s < first+uint64(n); s++ {
		sc := Scenario{Protocol: p, Seed: s, Script: ManyChanges(s), Ed25519: s%10 == 0, For: 4 * time.Second}
		if n := uint64(len(p.Strategies)); s%3 > 0 {
			sc.Traitors = map[int]bft.Traitor{int(s/n) % 4: p.Traitor(p.Strategies[s%n])}
		}
		if s%3 < 2 {
			sc.Faults = sim.Swarm(s, sim.AllFaults&^sim.LostDisk)
		}
		r, err := Play(sc)
		if err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
		changes += r.Changes
	}
	if changes < n {
		t.Errorf("%d seeds with %d changes", n, changes)
	}
}

// TestCrashAtATurn has a replica crash in each call in which it writes while an epoch ends and the
// next one begins: that is between two of the others' writes, wherever they are.
func TestCrashAtATurn(t *testing.T, p bft.Protocol) {
	sc := Scenario{Protocol: p, Seed: 1, Replicas: 5, For: 350 * time.Millisecond}
	remove := Remove(5, 120*time.Millisecond)
	sc.Script = remove
	calm, err := Play(sc)
	if err != nil || calm.Epoch != 1 {
		t.Fatalf("%+v: %v", calm, err)
	}
	for place := range 2 {
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			t.Parallel()
			for n := uint64(5); n <= calm.Writes[place]; n++ {
				sc := sc
				sc.Script = Scripts(remove, CrashInWrite(place, n, []sim.Keep{sim.KeepNone, sim.KeepAll, 1}[n%3]))
				if r, err := Play(sc); err != nil || r.Crashes != 1 || r.Epoch != 1 {
					t.Errorf("write %d: %+v: %v", n, r, err)
				}
			}
		})
	}
}
