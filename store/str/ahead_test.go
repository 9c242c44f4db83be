package str

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/store/storetest"
)

// aheadPlants have clients go on with what does not last.
func aheadPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "what is held is committed before its client's word", Test: "TestAheadNotices/1",
			Old: "t.agreed || t.held || t.staged ||",
			New: "t.agreed || (t.held || t.staged) && !MUTANT ||",
		},
		{
			Name: "who finishes it commits what is held", Test: "TestAheadNotices/1",
			Old: "\tif r.states[first].Reason == store.Lapsed {", New: "\tif r.states[first].Reason == store.Lapsed && !MUTANT {",
		},
		{
			Name: "who finishes it aborts what was held, and is confirmed since", Test: "TestAheadNotices/46",
			Old: "\tif m.Held && !h.part.Held {\n", New: "\tif m.Held && !h.part.Held && !MUTANT {\n",
		},
		{
			Name: "what follows another one does not depend on it", Test: "TestAheadNotices/1",
			Old: "\t\tc.depend(t, x)\n\t\tc.saw(event{what: follows,",
			New: "\t\tif !MUTANT {\n\t\t\tc.depend(t, x)\n\t\t}\n\t\tc.saw(event{what: follows,",
		},
		{
			Name: "what has only read stands for nothing", Test: "TestAheadNotices/1",
			Old: "\tfor id, on := range x.on { //pure:ok sets are added to\n",
			New: "\tfor id, on := range x.on { //pure:ok sets are added to\n\t\tif MUTANT {\n\t\t\tbreak\n\t\t}\n",
		},
		{
			Name: "what follows one that only read may be later than what that saw", Test: "TestAheadNotices/31",
			Old: "\t\tt.limits[id] = min(t.limitOf(id), x.limitOf(id))\n",
			New: "\t\tif !MUTANT {\n\t\t\tt.limits[id] = min(t.limitOf(id), x.limitOf(id))\n\t\t}\n",
		},
		{
			Name: "a local commit is not above what was read of one that is aborted since", Test: "TestAheadNotices/205",
			Old: "\t\tc.table.readAt(w.Key, t.read)", New: "\t\tif !MUTANT {\n\t\t\tc.table.readAt(w.Key, t.read)\n\t\t}",
		},
		{
			Name: "an outcome that is not known is told before what becomes of those that follow",
			Test: "TestAheadNotices/3036",
			Old:  "\tif !sure && !s.right && c.followed(env, s) {\n", New: "\tif !sure && !s.right && c.followed(env, s) && !MUTANT {\n",
		},
	}
}

// TestAheadNotices plays the seeds that notice a bug, with clients that go on at local commits.
func TestAheadNotices(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		sc := storetest.Swarm(seed)
		if seed%5 == 3 {
			sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
		}
		sc.Replaces, sc.Moves, sc.Ahead = seed%5 == 4, seed%5 == 1, true
		_, err := storetest.PlayOnce(subject(untuned(modes()[0])), sc)
		return err
	})
}
