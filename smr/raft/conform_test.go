package raft_test

import (
	"testing"

	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestConformance(t *testing.T) {
	smrtest.Suite(t, raft.Protocol(), smrtest.DefaultSeeds())
}
