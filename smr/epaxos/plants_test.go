package epaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	const dir = "smr/epaxos"
	plant.Catch(t, []plant.Bug{
		{
			Name: "stamps are not raised by what is heard of", Dir: dir, Test: "TestWhatIsKnownComesBefore",
			Old: "\tr.stamp = max(r.stamp, c.Stamp)\n", New: "\tif !MUTANT {\n\t\tr.stamp = max(r.stamp, c.Stamp)\n\t}\n",
		},
		{
			Name: "after a restart or an install nothing depends on the checkpoint", Dir: dir, Test: "TestAllDependsOnTheCheckpoint",
			Old: "p.checkpoint.Index > 0 {\n", New: "p.checkpoint.Index > 0 && !MUTANT {\n",
		},
		{
			Name: "a proposer vouches for what it does not know", Dir: dir, Test: "TestDurableWaitsForWhatNobodyKnows",
			Old: "\t\tw.seen = max(w.seen, w.base)\n", New: "\t\tif len(vouched) == 0 && MUTANT {\n\t\t\treturn false\n\t\t}\n\t\tw.seen = max(w.seen, w.base)\n",
		},
		{
			Name: "an acceptor adds what it does not know", Dir: dir, Test: "TestDurableWaitsForWhatNobodyKnows",
			Old: "\t\t\tfirst = max(first, vouched[p]+1)\n", New: "\t\t\tfirst = max(first, vouched[p]+1)\n\t\t\tif MUTANT {\n\t\t\t\tbreak\n\t\t\t}\n",
		},
	})
}
