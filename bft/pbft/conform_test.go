package pbft_test

import (
	"os"
	"testing"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/pbft"
	"github.com/foresay/foresay/internal/heap"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

func TestCalm(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: pbft.Protocol(), Seed: 1})
	t.Logf("%+v", r)
	if err != nil {
		t.Fatal(err)
	}
	if r.View != 0 || r.Guesses == 0 || r.Right != r.Guesses || r.Aborted+r.Retried > 0 {
		t.Errorf("a calm run came to %+v", r)
	}
}

// TestSeeds plays seeds of the suite, as TestTraitors does.
func TestSeeds(t *testing.T) { bfttest.TestSeeds(t, pbft.Protocol(), 200) }

func TestTraitors(t *testing.T) { bfttest.TestTraitors(t, pbft.Protocol(), 256) }

func TestEveryStrategy(t *testing.T) { bfttest.TestEveryStrategy(t, pbft.Protocol(), 0) }

func TestTooManyTraitors(t *testing.T) { bfttest.TestTooManyTraitors(t, pbft.Protocol()) }
