package raft_test

import (
	"testing"

	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestSalvage(t *testing.T) { smrtest.Salvage(t, raft.Protocol(), 5) }
