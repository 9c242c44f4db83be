package domino

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests what acceptors have under keys of their disks.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t,
		wiretest.Sample("promises", promisesLayout, promises{300, 7}, cmp.AllowUnexported(promises{})),
		wiretest.Sample("stream", streamLayout, uint64(300)),
		wiretest.Sample("revoked", revokedLayout, revokedRecord{3, 300}, cmp.AllowUnexported(revokedRecord{})))
}
