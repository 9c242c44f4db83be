package replicatedcommit

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
)

// firstSeed is that of FORESAY_SEED, or 1.
func firstSeed(t *testing.T) uint64 {
	text := os.Getenv("FORESAY_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("FORESAY_SEED: %v", err)
	}
	return seed
}

// swarm returns the scenario of a seed, with a random subset of the faults.
func swarm(seed uint64) scenario {
	sc := scenario{seed: seed, clients: 6, keys: 8, faults: sim.Swarm(seed, sim.AllFaults), lose: seed%3 == 0, near: seed%2 == 0}
	if seed%10 == 7 {
		sc.sites = 5
	}
	return sc
}

func playOnce(sc scenario) (*world, error) {
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	return w, w.play(6 * time.Second)
}

// TestConformance plays 200 seeds under faults; twenty of them twice.
func TestConformance(t *testing.T) {
	const seeds, shards = 200, 4
	first := firstSeed(t)
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			var verdicts [5]int
			for i := shard; i < seeds; i += shards {
				sc := swarm(first + uint64(i))
				w, err := playOnce(sc)
				if err != nil {
					t.Fatalf("seed %d, faults %v: %v", sc.seed, sc.faults, err)
				}
				if len(w.refused) > 0 {
					t.Fatalf("seed %d, faults %v: servers whose disks lost nothing are refused: %v", sc.seed, sc.faults, w.refused)
				}
				for i, n := range w.verdicts {
					verdicts[i] += n
				}
				if i >= 20 {
					continue
				}
				if again, err := playOnce(sc); err != nil || again.sim.Hash() != w.sim.Hash() {
					_, err := sim.Twice(func(trace io.Writer) sim.Run {
						sc.trace = trace
						w, err := playOnce(sc)
						return w.sim.Result(err)
					})
					t.Fatalf("seed %d went otherwise the second time: %v", sc.seed, err)
				}
			}
			t.Log("unknown, committed, aborted, blocked, rejected: ", fmt.Sprint(verdicts))
			if verdicts[1] < 500 {
				t.Errorf("only %d transactions committed", verdicts[1])
			}
		})
	}
}
