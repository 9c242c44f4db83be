package domino

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	const dir = "smr/domino"
	plant.Catch(t, []plant.Bug{
		{
			Name: "an acceptor of a Close may still vote in ballot 0 for its slots", Dir: dir, Test: "TestAcceptedCloseEndsVotes",
			Old: "\t\ta.close(env, c.High)\n", New: "\t\tif !MUTANT {\n\t\t\ta.close(env, c.High)\n\t\t}\n",
		},
		{
			Name: "an acceptor of a Close may still accept what the lane's owner proposes", Dir: dir, Test: "TestAcceptedCloseEndsVotes",
			Old: "\t\ta.revoke(env, protocol.ID(c.Lane), c.High)\n", New: "\t\tif !MUTANT {\n\t\t\ta.revoke(env, protocol.ID(c.Lane), c.High)\n\t\t}\n",
		},
		{
			Name: "no snapshot when the members have changed", Dir: dir, Test: "TestMembersOutliveRestarts",
			Old: "\tr.membersChanged(env)\n\tr.takeSnapshot(env)\n", New: "\tr.membersChanged(env)\n\tif !MUTANT {\n\t\tr.takeSnapshot(env)\n\t}\n",
		},
		{
			Name: "who is no member here is never asked", Dir: dir, Test: "TestMembersFindTheirSuccessors",
			Old: "\t\t\tr.met(from)\n", New: "\t\t\tif !MUTANT {\n\t\t\t\tr.met(from)\n\t\t\t}\n",
		},
		{
			Name: "time stands still where clocks were set back", Dir: dir, Test: "TestClocksThatWereAhead",
			Old: "\tif r.stood >= behindTicks {\n", New: "\tif r.stood >= behindTicks && !MUTANT {\n",
		},
	})
}
