package smrtest

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
)

// Seeds is how many seeds Suite has for each protocol, counted from the one that FORESAY_SEED
// names, or from 1. A run that does not name it plays a fifth of them.
const Seeds = 200

// Suite is the conformance suite, with so many seeds: a protocol of the family must pass all of it.
func Suite(t *testing.T, p smr.Protocol, n int) {
	first := seed.First(t, 1)
	t.Run("seeds", func(t *testing.T) { seeds(t, p, first, seed.Count(t, n)) })
	t.Run("transfers in steps", func(t *testing.T) { Transfers(t, p) })
	t.Run("queries in bytes", func(t *testing.T) { QueriesInBytes(t, p) })
	t.Run("lost snapshot", func(t *testing.T) { lostSnapshot(t, p) })
	if p.Salvage != nil {
		t.Run("salvage", func(t *testing.T) { salvage(t, p, 5) })
	}
	if p.HandsOver {
		t.Run("hand over", func(t *testing.T) { handOver(t, p, seed.Count(t, 15)) })
	}
	all := scripts()
	if p.Learns {
		all = append(all, learnerScripts()...)
	}
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.play(t, p, first)
		})
	}
}

// Script plays one script of the suite, by its name.
func Script(t *testing.T, p smr.Protocol, name string) {
	all := slices.Concat(scripts(), learnerScripts())
	i := slices.IndexFunc(all, func(s script) bool { return s.name == name })
	if i < 0 {
		t.Fatalf("smrtest: there is no script %q", name)
	}
	all[i].play(t, p, seed.First(t, 1))
}

// seeds plays seed after seed, the first tenth of them twice, each with a random subset of the
// faults. At least in one of six a crash has to lose writes that were not durable: else nobody
// would notice a replica that speaks before they are.
func seeds(t *testing.T, p smr.Protocol, first uint64, n int) {
	const shards = 4
	var losing atomic.Int64
	t.Cleanup(func() {
		if t.Logf("in %d of %d seeds crashes lose writes", losing.Load(), n); !t.Failed() && n >= 20 &&
			6*losing.Load() < int64(n) {
			t.Errorf("in %d of %d seeds crashes lose writes, want a sixth at least", losing.Load(), n)
		}
	})
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < n; i += shards {
				r, err := playSeed(p, first+uint64(i), i < n/10)
				if err != nil {
					t.Errorf("%v\n%v", r, err)
					return
				}
				if r.LostWrites > 0 {
					losing.Add(1)
				}
			}
		})
	}
}

// playSeed plays the scenario of a seed, or plays it twice to see it go the same way. What happened
// is kept only of one that fails, which is played again for that.
func playSeed(p smr.Protocol, seed uint64, twice bool) (Report, error) {
	sc := Swarm(p, seed)
	sc.brief = true
	r, err := Play(sc)
	if err != nil {
		sc.brief = false
		if again, failed := Play(sc); failed != nil {
			return again, failed
		}
		return r, fmt.Errorf("determinism: the same seed went well the second time; the first time: %w", err)
	}
	if !twice {
		return r, nil
	}
	again, err := Play(sc)
	if err == nil && again.Hash != r.Hash {
		err = fmt.Errorf("determinism: the same seed went otherwise the second time: %v", again)
	}
	return r, err
}

// Swarm returns the scenario of a seed: three or five replicas, seven in one of fifty, and a random
// subset of the faults. Three of four seeds have links like TCP's, as in production, where
// connections break; the fourth datagrams, if it draws them. A third has disks so slow that crashes
// lose what was not synced, a sixth commands of some kilobytes, and every other one of those with
// five replicas has two of them replaced. In a seventh faults strike five times as often, so that
// one recovery meets the next; in a ninth logs are short, so that replicas that lag find them cut;
// in an eleventh each client makes several calls at a time; in a fifth one client is idle for long
// enough to miss a change of leaders.
func Swarm(p smr.Protocol, seed uint64) Scenario {
	faults := sim.StreamFaults
	if seed%4 == 3 {
		faults = sim.AllFaults
	}
	sc := Scenario{Protocol: p, Seed: seed, Faults: sim.Swarm(seed, faults)}
	if seed%3 == 1 {
		sc.Disk = sim.Disk{Latency: roundTrip / 4, Jitter: roundTrip / 2}
	}
	switch {
	case seed%5 == 0:
		sc.Replicas = 5
	case seed%50 == 12:
		sc.Replicas = 7
	}
	if seed%10 == 5 {
		sc.Faults &^= sim.LostDisk // which has replicas replaced itself
		sc.Script = func(w *World) {
			first := protocol.ID(len(w.group) + 1)
			w.whenBegun(func() { w.exchange([]protocol.ID{1, 2}, []protocol.ID{first, first + 1}, func() {}) })
		}
	}
	if seed%8 == 6 || seed%20 == 15 { // among those that exchange members too
		sc.Configure = snapshotsInParts
	}
	if seed%7 == 6 {
		sc.FaultEvery = 6 * roundTrip
	}
	if seed%9 == 2 && sc.Configure == nil {
		sc.Configure = func(c *smr.ReplicaConfig) { c.SnapshotEvery = 12 }
	}
	if seed%11 == 8 {
		sc.Calls = 4
	}
	if seed%5 == 4 {
		sc.Idle = 30 * roundTrip
	}
	if seed%6 == 2 {
		sc.ValueBytes = 5 << 10 // protocols send large commands by other ways
	}
	sc.Replay = fmt.Sprintf("go run ./cmd/foresay sim run --protocol %s --seed %d", p.Name, seed)
	return sc
}

// PlaySwarm returns what plays the swarm's scenario of a seed, with which plant.Seeds looks for
// seeds that notice a bug.
func PlaySwarm(p smr.Protocol) func(seed uint64) error {
	return func(seed uint64) error {
		_, err := Play(Swarm(p, seed))
		return err
	}
}
