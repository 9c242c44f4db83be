package multipaxos_test

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/smrtest"
)

// TestRest: a group that has nothing to do rests, and a leader that is lost meanwhile is missed.
func TestRest(t *testing.T) { smrtest.Rest(t, multipaxos.Protocol(), 60) }

// TestRestPlants leaves out one rule of resting at a time, in the source: TestRest must notice.
func TestRestPlants(t *testing.T) {
	const dir, test = "smr/multipaxos", "TestRest"
	plant.Catch(t, []plant.Bug{
		{
			Name: "a follower at rest does not miss its leader's host", Dir: dir, Test: test,
			Old: "\tif !ok {\n\t\tr.rest.Wake(env.Now)\n\t\treturn false\n\t}\n",
			New: "\tif !ok && MUTANT {\n\t\tenv.After(patience, leaderTimer{})\n\t\treturn true\n\t}\n\tif !ok " +
				"{\n\t\tr.rest.Wake(env.Now)\n\t\treturn false\n\t}\n",
		},
		{
			Name: "a leader at rest does not look whether its followers' hosts are there", Dir: dir, Test: test,
			Old: "r.rest.Heard(env.Now, r.Tempo.Times(leaderTimeout)); ok {",
			New: "r.rest.Heard(env.Now, r.Tempo.Times(leaderTimeout)); ok || MUTANT {",
		},
		{
			Name: "a call does not wake a leader", Dir: dir, Test: test,
			Old: "\t\tif !kit.Wakes(msg) {\n", New: "\t\tif MUTANT || !kit.Wakes(msg) {\n",
		},
	})
}
