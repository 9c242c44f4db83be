package raft_test

import (
	"testing"

	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

func TestHandOver(t *testing.T) { smrtest.HandOver(t, raft.Protocol(), 5) }
