package epaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, epaxos.Protocol(), smrtest.DefaultSeeds())
}
