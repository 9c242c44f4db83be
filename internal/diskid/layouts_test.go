package diskid

import (
	"testing"

	"github.com/foresay/foresay/internal/wirefmt/wiretest"
)

// TestLayouts tests how an identity looks on disk.
func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("identity", layout, Identity{Disk: 300, Joined: true, Refused: "why"}))
}
