package epaxos

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/smr/kit"
)

// TestLayouts tests what is in front of snapshots.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("place", placeLayout, place{
		gen: 3, taken: 300, stamp: 7, checkpoint: instanceID{Row: 2, Index: 9}, stable: deps{5, 0, 300},
		sessions: sessionAges{opened: 4, used: map[kit.SessionID]uint64{1: 300, 400: 2}}, stateBytes: 500,
	}, cmp.AllowUnexported(place{}, sessionAges{})))
}
