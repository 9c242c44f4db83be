package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestSalvage(t *testing.T) { smrtest.Salvage(t, multipaxos.Protocol(), 5) }
