package layered

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/store/storetest"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	bugs := []plant.Bug{
		{
			Name: "reads are not validated", Test: "TestSeedsNotice/1",
			Old: "\t\tcase s.values[r.Key].Version != r.Version:\n",
			New: "\t\tcase s.values[r.Key].Version != r.Version && !MUTANT:\n",
		},
		{
			Name: "what was read is not locked", Test: "TestSeedsNotice/1",
			Old: "\t\tl.readers += n\n", New: "\t\tif !MUTANT {\n\t\t\tl.readers += n\n\t\t}\n",
		},
		{
			Name: "a key that is to be written may be read", Test: "TestSeedsNotice/1",
			Old: "\t\tcase !s.locks[r.Key].writer.IsZero():\n", New: "\t\tcase !s.locks[r.Key].writer.IsZero() && !MUTANT:\n",
		},
		{
			Name: "a version may be below the one that it replaces", Test: "TestSeedsNotice/1",
			Old: "\t\tcase !t.id.After(s.values[w.Key].Version):\n",
			New: "\t\tcase !t.id.After(s.values[w.Key].Version) && !MUTANT:\n",
		},
		{
			Name: "a shard that was told to abort may vote yes later", Test: "TestShard",
			Old: "\t\ts.txns[m.ID] = t\n\t\treturn s.end(t, false, m.Reason)\n",
			New: "\t\tif MUTANT {\n\t\t\treturn result{aborted, m.Reason}\n\t\t}\n\t\ts.txns[m.ID] = t\n\t\treturn s.end(t, " +
				"false, m.Reason)\n",
		},
		{
			Name: "a transaction whose coordinator is gone is aborted, whatever its anchor knows", Test: "TestSeedsNotice/1",
			Old: "\tc.askAnchor(env, e, false, store.Fenced)\n",
			New: "\tif MUTANT {\n\t\tc.settle(env, e, 1<<31, result{aborted, " +
				"store.Fenced})\n\t\treturn\n\t}\n\tc.askAnchor(env, e, false, store.Fenced)\n",
		},
		{
			Name: "a commit is told before its anchor has decided it", Test: "TestSeedsNotice/1",
			Old: "\t\t\tc.askAnchor(env, e, true, store.NoReason)\n",
			New: "\t\t\tif MUTANT {\n\t\t\t\tc.settle(env, e, 1<<31, result{State: " +
				"committed})\n\t\t\t\treturn\n\t\t\t}\n\t\t\tc.askAnchor(env, e, true, store.NoReason)\n",
		},
		{
			Name: "nobody finishes what a coordinator has left", Test: "TestSeedsNotice/1",
			Old: "\t\t\tenv.Send(s.cfg.Layout.Coordinator(",
			New: "\t\t\tif MUTANT {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tenv.Send(s.cfg.Layout.Coordinator(",
		},
	}
	for i := range bugs {
		bugs[i].Dir = "store/layered"
	}
	return bugs
}

// TestPlants plants them: the tests that are named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		_, err := storetest.PlayOnce(subject(), storetest.Swarm(seed))
		return err
	})
}
