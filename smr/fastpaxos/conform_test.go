package fastpaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/fastpaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, fastpaxos.Protocol(), smrtest.DefaultSeeds())
}
