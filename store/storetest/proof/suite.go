package proof

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// A Subject is the store that the client is played against.
type Subject struct {
	Protocol store.Protocol
	// Test is the directory and the name of the test, for the command that plays a seed again.
	Test string
	// Settle is how long sites may differ when no server has anything left to do, as in
	// storetest.Subject.
	Settle time.Duration
	// Remembers says that decided transactions are not forgotten by their age.
	Remembers bool
}

// swarm returns the scenario of a seed, with a random subset of the faults.
func (s Subject) swarm(seed uint64) scenario {
	return scenario{
		Subject: s, seed: seed, faults: sim.Swarm(seed, faults), crowd: seed%2 == 0, applications: 4,
		modes: []client.Mode{client.Spec, client.GRPC, client.Predicated, client.Off, client.Auto},
	}
}

// A total adds up what worlds have seen.
type total struct {
	committed, aborted, unknown int
	guesses, right              uint64
	faulted                     map[string]int
}

func (x *total) add(w *world) {
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

// Run plays the client in all modes under faults, with so many seeds, counted from the one that
// FORESAY_SEED names, or from 1. A run that does not name it plays a fifth of them, and one with
// the race detector less. FORESAY_SEEDS says how many it is instead.
func Run(t *testing.T, subject Subject, all int) {
	const shards = 2
	first, seeds := seed.First(t, 1), seed.Count(t, all)
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			total := total{faulted: map[string]int{}}
			for i := shard; i < seeds; i += shards {
				synctest.Test(t, func(t *testing.T) {
					sc := subject.swarm(first + uint64(i))
					w, err := play(t.Context(), sc)
					if err != nil {
						// Goroutines meet in an order of their own: the same seed may have to be
						// played again and again.
						t.Fatalf("FORESAY_SEED=%d FORESAY_SEEDS=1 go test %s -count 20; faults %v: %v", sc.seed, subject.Test,
							sc.faults, err)
					}
					total.add(w)
				})
			}
			t.Logf("%+v", total)
			if n := seeds / shards; total.committed < 5*n || total.unknown < n/10 ||
				total.guesses == total.right && n >= 10 && !subject.Protocol.Steps {
				t.Errorf("%d seeds have shown too little", n)
			}
		})
	}
}

// Play plays one seed with clients in mode Spec, without what a swarm adds. Where blind is set
// nobody watches the commits, so that the history and the servers alone can tell what is wrong.
// Goroutines meet in an order of their own: another time the same seed may not show it.
func Play(t *testing.T, subject Subject, seed uint64, faults sim.Faults, blind bool) (err error) {
	sc := scenario{Subject: subject, seed: seed, faults: faults, applications: 6, mode: client.Spec, blind: blind}
	synctest.Test(t, func(t *testing.T) { _, err = play(t.Context(), sc) })
	return err
}
