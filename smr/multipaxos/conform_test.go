package multipaxos_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
	"github.com/foresay/foresay/smr/smrtest/talk"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

func TestConformance(t *testing.T) {
	smrtest.Suite(t, multipaxos.Protocol(), smrtest.Seeds)
}

// TestScenarios has the protocol talk: testdata/scenarios, which are there to be read.
func TestScenarios(t *testing.T) { talk.Play(t, multipaxos.Protocol(), nil) }

// TestRest: a group that has nothing to do rests, and a leader that is lost meanwhile is missed.
// TestRestPlants of package kit says what it notices.
func TestRest(t *testing.T) { smrtest.Rest(t, multipaxos.Protocol(), 60) }

// BenchmarkCommands is the work of all nodes for one 16-byte write.
func BenchmarkCommands(b *testing.B) {
	smrtest.Benchmark(b, multipaxos.Protocol(), 0, func() smr.StateMachine { return kv.New() }, func(n int) []byte {
		return kv.Put(fmt.Appendf(nil, "%07d", n%100_000), []byte("1234"))
	})
}
