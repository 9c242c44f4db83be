package mencius_test

import (
	"testing"

	"github.com/foresay/foresay/smr/mencius"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, mencius.Protocol(), smrtest.DefaultSeeds())
}
