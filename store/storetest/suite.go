package storetest

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// Swarm returns the scenario of a seed, with a random subset of the faults.
func Swarm(seed uint64) Scenario {
	sc := Scenario{Seed: seed, Clients: 6, Keys: 8, Faults: sim.Swarm(seed, sim.AllFaults), Lose: seed%3 == 0,
		Near: seed%2 == 0}
	if seed%10 == 7 {
		sc.Sites = 5
	}
	return sc
}

// swarm is Swarm. If shards may be at some of the sites only, one world in five has five sites with
// three copies of each shard.
func (s Subject) swarm(seed uint64) Scenario {
	sc := Swarm(seed)
	if s.Protocol.Partial && seed%5 == 3 {
		sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
	}
	sc.Ahead = s.Protocol.Speculates && seed/4%2 == 1
	sc.Replaces = s.Protocol.Leads && seed%5 == 4
	sc.Stale, sc.Moves = s.Protocol.Stale && seed%3 == 2, s.Protocol.Leads && seed%5 == 1
	sc.General, sc.ByArrival = s.Protocol.Declares && seed%3 == 1, s.Protocol.Orders && seed%4 == 2
	return sc
}

// PlaySwarm returns what plays the swarm's scenario of a seed, with which plant.Seeds looks for
// seeds that notice a bug.
func PlaySwarm(subject Subject) func(seed uint64) error {
	return func(seed uint64) error {
		w, err := PlayOnce(subject, Swarm(seed))
		if err == nil {
			err = w.judgeRefused()
		}
		return err
	}
}

// PlaySwarmFor is PlaySwarm for a bug of one kind: other errors than those that contain a text do
// not count. A bug is noticed as what it is then, and each rule of the judge by something.
func PlaySwarmFor(subject Subject, text string) func(seed uint64) error {
	play := PlaySwarm(subject)
	return func(seed uint64) error {
		if err := play(seed); err != nil && strings.Contains(err.Error(), text) {
			return err
		}
		return nil
	}
}

// PlayOnce plays a scenario. The world is nil if there is none.
func PlayOnce(subject Subject, sc Scenario) (*World, error) {
	w, err := New(subject, sc)
	if err != nil {
		return nil, err
	}
	return w, w.Play(6 * time.Second)
}

// Conformance plays so many seeds under faults, a fifth of them twice, counted from the one that
// FORESAY_SEED names, or from 1. A run that does not name it plays a fifth of all. No seed may show
// what the protocol's level forbids, sites that differ in the end, an append that is lost, work
// that never ends, or a server that is refused though its disk has lost nothing. Beside that, a
// site goes away for good, and the others have to go on.
func Conformance(t *testing.T, subject Subject, all int) {
	const shards = 4
	first, seeds := seed.First(t, 1), seed.Count(t, all)
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		siteAway(t, subject)
	})
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			var verdicts [store.Rejected + 1]int
			ahead := 0
			for i := shard; i < seeds; i += shards {
				sc := subject.swarm(first + uint64(i))
				w, err := PlayOnce(subject, sc)
				if err != nil {
					t.Fatalf("seed %d, faults %v: %v", sc.Seed, sc.Faults, err)
				}
				if err := w.judgeRefused(); err != nil {
					t.Fatalf("seed %d, faults %v: %v", sc.Seed, sc.Faults, err)
				}
				for i, n := range w.Verdicts {
					verdicts[i] += n
				}
				ahead += w.ahead
				if i >= seeds/5 {
					continue
				}
				if again, err := PlayOnce(subject, sc); err != nil || again.Sim.Hash() != w.Sim.Hash() {
					_, err := sim.Twice(func(trace io.Writer) sim.Run {
						sc.Trace = trace
						w, err := PlayOnce(subject, sc)
						return w.Sim.Result(err)
					})
					t.Fatalf("seed %d went otherwise the second time: %v", sc.Seed, err)
				}
			}
			t.Log("unknown, committed, aborted, blocked, rejected: ", fmt.Sprint(verdicts))
			if want := seeds * 10 / shards; verdicts[store.Committed] < want {
				t.Errorf("only %d transactions committed, want %d", verdicts[store.Committed], want)
			}
			if want := seeds / shards; seeds > 20 && subject.Protocol.Speculates && ahead < want {
				t.Errorf("clients went on after only %d local commits, want %d", ahead, want)
			}
		})
	}
}
