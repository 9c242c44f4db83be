package mencius

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	const dir = "smr/mencius"
	plant.Catch(t, []plant.Bug{
		{
			Name: "a leader goes on though others decided otherwise", Dir: dir, Test: "TestALeaderEndsWhereOthersDecided",
			Old: "\t\t\tl.lead = nil // somebody else has led it since\n", New: "\t\t\tif !MUTANT {\n\t\t\t\tl.lead = nil\n\t\t\t}\n",
		},
		{
			Name: "the commit index is applied to positions of other ballots", Dir: dir, Test: "TestCommitsEndWithTheBallot",
			Old: "\tif to = min(to, l.matched); to > l.commit {\n", New: "\tif MUTANT {\n\t\tl.matched = max(l.matched, min(to, l.end()))\n\t}\n\tif to = min(to, l.matched); to > l.commit {\n",
		},
		{
			Name: "an epoch ends half a window early", Dir: dir, Test: "TestEpochEndsBehindAllProposals",
			Old: "\t\t\tr.epoch.last = s + window\n", New: "\t\t\tr.epoch.last = s + window\n\t\t\tif MUTANT {\n\t\t\t\tr.epoch.last = s + window/2\n\t\t\t}\n",
		},
		{
			Name: "an epoch ends one slot early", Dir: dir, Test: "TestEpochEndsBehindAllProposals",
			Old: "\t\tif r.epoch.last == 0 {\n", New: "\t\tif MUTANT {\n\t\t\tr.epoch.last = s + window - 2\n\t\t}\n\t\tif r.epoch.last == 0 {\n",
		},
		{
			Name: "a leader of a lower ballot is not told", Dir: dir, Test: "TestBeatsSettleBallots",
			Old: "\t\tr.admission.SendAhead(env, from, Refusal{r.place(l, l.promised)})\n\t\treturn\n\tcase led.Ballot > l.promised:\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.admission.SendAhead(env, from, Refusal{r.place(l, l.promised)})\n\t\t}\n\t\treturn\n\tcase led.Ballot > l.promised:\n",
		},
		{
			Name: "the beats of a leader of a higher ballot are ignored", Dir: dir, Test: "TestBeatsSettleBallots",
			Old: "\t\tl.adopt(led.Ballot)\n", New: "\t\tif MUTANT {\n\t\t\treturn\n\t\t}\n\t\tl.adopt(led.Ballot)\n",
		},
		{
			Name: "what a full lane's leader has decided is not asked for", Dir: dir, Test: "TestBeatsSettleBallots",
			Old: "\tif l.matched < led.Commit && ", New: "\tif !MUTANT && l.matched < led.Commit && ",
		},
	})
}
