package mencius

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/protocol"
)

// TestLayouts tests what is in front of snapshots.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("front", frontLayout,
		front{number: 3, first: 300, last: 8192, members: []protocol.ID{1, 2, 300}}, cmp.AllowUnexported(front{})))
}
