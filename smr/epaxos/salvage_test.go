package epaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/epaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestSalvage(t *testing.T) { smrtest.Salvage(t, epaxos.Protocol(), 5) }
