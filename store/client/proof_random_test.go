package client_test

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// seedFromEnv returns a number of the environment's, or a default.
func seedFromEnv(t *testing.T, name, preset string) uint64 {
	n, err := strconv.ParseUint(cmp.Or(os.Getenv(name), preset), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// proofSwarm returns the scenario of a seed, with a random subset of the faults.
func proofSwarm(seed uint64) proofScenario {
	r := rand.New(rand.NewPCG(seed, 1))
	return proofScenario{
		seed: seed, faults: proofFaults(r.IntN(int(allProofFaults) + 1)), drivers: 4,
		modes: []client.Mode{client.Spec, client.GRPC, client.Predicated, client.Off, client.Auto},
	}
}

// A proofTotal adds up what worlds have seen.
type proofTotal struct {
	committed, aborted, unknown int
	guesses, right              uint64
	faulted                     map[string]int
}

func (x *proofTotal) add(w *proofWorld) {
	for _, t := range w.txns {
		switch t.verdict {
		case store.Committed:
			x.committed++
		case store.Aborted:
			x.aborted++
		}
	}
	x.unknown += w.unknown
	for k, n := range w.faulted {
		x.faulted[k] += n
	}
	for _, l := range w.open {
		s := l.client.Stats()
		x.guesses += s.Guesses
		x.right += s.Right
	}
}

// TestConformance plays the real client in all modes against real machines under faults.
func TestConformance(t *testing.T) {
	const shards = 2
	first, seeds := seedFromEnv(t, "FORESAY_SEED", "1"), seedFromEnv(t, "FORESAY_SEEDS", proofSeeds)
	for shard := range uint64(shards) {
		t.Run(strconv.FormatUint(shard, 10), func(t *testing.T) {
			t.Parallel()
			total := proofTotal{faulted: map[string]int{}}
			for i := shard; i < seeds; i += shards {
				synctest.Test(t, func(t *testing.T) {
					sc := proofSwarm(first + i)
					w, err := playProof(t.Context(), sc)
					if err != nil {
						// Goroutines meet in an order of their own: the same seed may have to be
						// played again and again.
						t.Fatalf("FORESAY_SEED=%d FORESAY_SEEDS=1 go test ./store/client -run TestConformance -count 20; faults %b: %v",
							sc.seed, sc.faults, err)
					}
					total.add(w)
				})
			}
			t.Logf("%+v", total)
			if n := int(seeds / shards); total.committed < 5*n || total.unknown < n/10 || total.guesses == total.right &&
				n >= 10 {
				t.Errorf("%d seeds have shown too little", n)
			}
		})
	}
}
