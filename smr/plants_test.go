package smr

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	plant.Catch(t, []plant.Bug{{
		Name: "snapshots forget removed members", Dir: "smr", Test: "TestMembersChange",
		Old: "\tw.List(len(g.removed))\n\tfor _, id := range g.removed {\n", New: "\tif MUTANT {\n\t\tg = &members{}\n\t}\n\tw.List(len(g.removed))\n\tfor _, id := range g.removed {\n",
	}})
}
