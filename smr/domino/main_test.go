package domino

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain collects garbage less often than usual: simulated worlds are small and make much of it,
// and it would take a third of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
