package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, multipaxos.Protocol(), smrtest.DefaultSeeds())
}
