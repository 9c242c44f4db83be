package kit

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	plant.Catch(t, []plant.Bug{{
		Name: "snapshots forget removed members", Dir: "smr/kit", Test: "TestMembersChange",
		Old: "\twirefmt.List(c, &g.removed, 1, wirefmt.Uint32)\n",
		New: "\tif MUTANT && !c.Reading() {\n\t\tg = &members{now: g.now}\n\t}\n\twirefmt.List(c, &g.removed, 1, " +
			"wirefmt.Uint32)\n",
	}, {
		Name: "a replica that is started again votes before it knows that its log was not cut", Dir: "smr/kit",
		Test: "TestStartedAgain",
		Old:  "\t\ta.vouched = map[protocol.ID]bool{}\n",
		New:  "\t\tif !MUTANT {\n\t\t\ta.vouched = map[protocol.ID]bool{}\n\t\t}\n",
	}, {
		Name: "a replica that is started again asks what others know of its log, and does not wait for it", Dir: "smr/kit",
		Test: "TestStartedAgain",
		Old:  "\t\t\twaits = true\n", New: "\t\t\twaits = !MUTANT\n",
	}, {
		Name: "a newer state takes the place of one that arrives", Dir: "smr/kit", Test: "TestSnapshotsDoNotTakeTurns",
		Old: "\tcase in != nil && in.have > 0 && (c.Offset > 0 || in.refused < most):\n",
		New: "\tcase in != nil && in.have > 0 && (c.Offset > 0 || in.refused < most) && (!MUTANT || c.Slot <= in.slot):\n",
	}, {
		Name: "a replica that lags asks another one each time", Dir: "smr/kit", Test: "TestOneIsAsked",
		Old: "\tcase p.mayTell(applied, knowsGroup, peers):\n",
		New: "\tcase p.mayTell(applied, knowsGroup, peers) && !MUTANT:\n",
	}})
}
