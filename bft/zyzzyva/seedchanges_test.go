package zyzzyva_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bfttest"
	"github.com/foresay/foresay/bft/zyzzyva"
	"github.com/foresay/foresay/internal/seed"
)

func TestSeedsOfChanges(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 60)); s++ {
		if r, err := bfttest.PlayChanges(zyzzyva.Protocol(), s); err != nil {
			t.Errorf("seed %d: %+v: %v", s, r, err)
		}
	}
	_ = time.Second
	_ = bft.Add
}
