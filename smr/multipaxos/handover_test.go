package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestHandOver(t *testing.T) { smrtest.HandOver(t, multipaxos.Protocol(), 5) }
