package raft_test

import (
	"testing"

	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestRest: a group that has nothing to do rests, and a leader that is lost meanwhile is missed.
// TestRestPlants of package kit says what it notices.
func TestRest(t *testing.T) { smrtest.Rest(t, raft.Protocol(), 60) }
