package zyzzyva_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/zyzzyva"
)

func TestCalm(t *testing.T) {
	r, err := bfttest.Play(bfttest.Scenario{Protocol: zyzzyva.Protocol(), Seed: 1})
	t.Logf("%+v", r)
	if err != nil {
		t.Fatal(err)
	}
	if r.View != 0 || r.Aborted+r.Retried > 0 {
		t.Errorf("a calm run came to %+v", r)
	}
}

// TestSeeds plays seeds of the suite, as TestTraitors does.
func TestSeeds(t *testing.T) { bfttest.TestSeeds(t, zyzzyva.Protocol(), 80) }

func TestTraitors(t *testing.T) { bfttest.TestTraitors(t, zyzzyva.Protocol(), 80) }

func TestEveryStrategy(t *testing.T) { bfttest.TestEveryStrategy(t, zyzzyva.Protocol(), 2*time.Second) }

func TestTooManyTraitors(t *testing.T) { bfttest.TestTooManyTraitors(t, zyzzyva.Protocol()) }
