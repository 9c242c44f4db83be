package domino_test

import (
	"testing"

	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, domino.Direct(), smrtest.DefaultSeeds())
}
