package bfttest

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
)

// TestSeeds plays seeds with all faults of the simulator, of replicas that are honest.
func TestSeeds(t *testing.T, p bft.Protocol, all int) {
	t.Parallel()
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, all)); s++ {
		r, err := Play(Scenario{Protocol: p, Seed: s, Faults: sim.Swarm(s, sim.AllFaults&^sim.LostDisk),
			Ed25519: s%10 == 0, Ordered: s%4 == 0})
		if err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
	}
}

// TestTraitors plays seeds with a traitor of each strategy in turn, in the place of the first
// primary or of another one, with bad clients, and with other faults or none.
func TestTraitors(t *testing.T, p bft.Protocol, all int) {
	t.Parallel()
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, all)); s++ {
		if r, err := Play(withTraitors(p, s)); err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
	}
}

func withTraitors(p bft.Protocol, seed uint64) Scenario {
	all, n := p.Strategies, uint64(len(p.Strategies))
	sc := Scenario{Protocol: p, Seed: seed, Replicas: 4, Ed25519: seed%10 == 0, Ordered: seed%4 == 0,
		BadClients: int(seed % 3), Traitors: map[int]bft.Traitor{int(seed/n) % 2: p.Traitor(all[seed%n])}}
	if seed%5 == 4 {
		sc.Replicas = 7
		sc.Traitors[2+int(seed)%5] = p.Traitor(all[(seed/7)%n])
	}
	if seed%2 == 0 {
		sc.Faults = sim.Swarm(seed, sim.AllFaults&^sim.LostDisk)
	}
	return sc
}

// TestEveryStrategy has each strategy in the first primary, and in the next one, without other
// faults.
func TestEveryStrategy(t *testing.T, p bft.Protocol, lasting time.Duration) {
	for i, s := range p.Strategies {
		t.Run(s, func(t *testing.T) {
			for place := range 2 {
				r, err := Play(Scenario{Protocol: p, Seed: uint64(i), For: lasting, Traitors: Of(p, s, place)})
				if err != nil {
					t.Errorf("at %d: %+v: %v", place, r, err)
				}
			}
		})
	}
}

// Of makes traitors of one strategy of the replicas in some places.
func Of(p bft.Protocol, strategy string, places ...int) map[int]bft.Traitor {
	out := map[int]bft.Traitor{}
	for _, at := range places {
		out[at] = p.Traitor(strategy)
	}
	return out
}

// TestTooManyTraitors: with more than f the suite finds that what was confirmed is lost, or two
// replicas differ. So it can.
func TestTooManyTraitors(t *testing.T, p bft.Protocol) {
	for s := range uint64(10) {
		if _, err := Play(Scenario{Protocol: p, Seed: s, Traitors: Of(p, "conspire", 0, 1)}); err != nil {
			t.Logf("seed %d: %.200s", s, err)
			return
		}
	}
	t.Error("two conspirators of four are not noticed")
}

// TestTransfer cuts a replica off until the others have forgotten what it lacks: it fetches the
// state, also if the first f of those whom it asks give it wrong parts.
func TestTransfer(t *testing.T, p bft.Protocol) {
	for _, c := range []struct {
		replicas int
		traitors map[int]bft.Traitor
	}{{4, nil}, {4, Of(p, "lie-reads", 1)}, {7, Of(p, "lie-reads", 0, 1)}} {
		r, err := Play(Scenario{Protocol: p, Seed: 1, Replicas: c.replicas, Traitors: c.traitors,
			Script: CutOff(c.replicas-1, 500*time.Millisecond, 4*time.Second)})
		if err != nil {
			t.Error(err)
		}
		if r.Transfers == 0 || r.Refused > 0 != (len(c.traitors) > 0) {
			t.Errorf("%d replicas, %d traitors: %+v", c.replicas, len(c.traitors), r)
		}
	}
}

// TestCrashAtEachWrite has the primary, and then a backup, crash in calls in which it writes, one
// in so many, in turn with nothing, all, and a part of what was not durable yet. Its first write is
// at its start, and there are so many at least.
func TestCrashAtEachWrite(t *testing.T, p bft.Protocol, step, least uint64) {
	sc := Scenario{Protocol: p, Seed: 1, For: 500 * time.Millisecond}
	calm, err := Play(sc)
	if err != nil {
		t.Fatal(err)
	}
	if seed.Named() {
		step = 1
	}
	for place := range 2 {
		if calm.Writes[place] < least {
			t.Fatalf("%d writes %d times only", place, calm.Writes[place])
		}
		t.Run(fmt.Sprint(place), func(t *testing.T) {
			t.Parallel()
			for n := uint64(2); n <= calm.Writes[place]; n += step {
				sc := sc
				sc.Script = CrashInWrite(place, n, []sim.Keep{sim.KeepNone, sim.KeepAll, 1}[n%3])
				r, err := Play(sc)
				if err != nil {
					t.Errorf("write %d: %v", n, err)
				}
				if r.Crashes != 1 || r.Restarts != 1 {
					t.Errorf("write %d: %+v", n, r)
				}
			}
		})
	}
}
