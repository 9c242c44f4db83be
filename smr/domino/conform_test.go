package domino_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

// probe is how often the clients of these tests measure. Links that do not change need no more, and
// it is quicker to simulate.
const probe = 50 * time.Millisecond

// TestConformance plays the family's suite with the variant that goes beyond the thesis.
func TestConformance(t *testing.T) {
	o := domino.Options{Probe: probe, Direct: true, AllLearn: true, Arrival: true, Slack: time.Millisecond}
	smrtest.Suite(t, domino.New("domino-direct", "", o), 150)
}

// TestConformanceOfThesis plays the suite with what the thesis has: with those of TestConformance
// and TestOneWayOnly its seeds are as many as those of other protocols.
func TestConformanceOfThesis(t *testing.T) {
	smrtest.Suite(t, domino.New("domino", "", domino.Options{Probe: probe}), 50)
}

// TestOneWayOnly plays seeds in which clients take the fast path always.
func TestOneWayOnly(t *testing.T) {
	playSeeds(t, domino.New("domino", "", domino.Options{Probe: probe, Path: domino.OnlyDFP, Slack: 2 * time.Millisecond}),
		1001, 18)
}

// TestThreeOfSevenAreReplaced plays a seed in which three of seven disks are lost: the members
// change six times, one after the other, which takes longer than one change may.
func TestThreeOfSevenAreReplaced(t *testing.T) {
	p, err := catalog.Protocol("domino-direct")
	if err != nil {
		t.Fatal(err)
	}
	sc := smrtest.Swarm(p, 700000558)
	sc.Replicas = 7
	if r, err := smrtest.Play(sc); err != nil {
		t.Errorf("%v\n%v", r, err)
	}
}

func playSeeds(t *testing.T, p smr.Protocol, first uint64, count int) {
	for i := range count {
		if r, err := smrtest.Play(smrtest.Swarm(p, first+2*uint64(i))); err != nil {
			t.Fatalf("%v\n%v", r, err)
		}
	}
}

// BenchmarkCommands is the work of all nodes for one 16-byte write.
func BenchmarkCommands(b *testing.B) {
	smrtest.Benchmark(b, domino.Direct(), 5*time.Millisecond, func() smr.StateMachine {
		return kv.New()
	}, func(n int) []byte {
		return kv.Put(fmt.Appendf(nil, "%07d", n%100_000), []byte("1234"))
	})
}

// TestRest: a group that has nothing to do rests, and a member that is lost meanwhile is missed.
func TestRest(t *testing.T) {
	for _, p := range []smr.Protocol{domino.Protocol(), domino.Direct()} {
		t.Run(p.Name, func(t *testing.T) { smrtest.Rest(t, p, 60) })
	}
}
