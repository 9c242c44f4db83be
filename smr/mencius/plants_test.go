package mencius

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/smr/smrtest"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	const dir = "smr/mencius"
	return []plant.Bug{
		{
			Name: "an owner executes behind slots that it has not skipped on disk", Dir: dir,
			Test: "TestOwnSkipsWaitForTheDisk",
			Old:  "\tl.skips = l.end() //", New: "\tif MUTANT {\n\t\treturn\n\t}\n\tl.skips = l.end() //",
		},
		{
			Name: "a leader goes on though others decided otherwise", Dir: dir, Test: "TestALeaderEndsWhereOthersDecided",
			Old: "\t\t\tl.lead = nil // somebody else has led it since\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tl.lead = nil\n\t\t\t}\n",
		},
		{
			Name: "the commit index is applied to positions of other ballots", Dir: dir, Test: "TestCommitsEndWithTheBallot",
			Old: "\tif to = min(to, l.matched); to > l.commit {\n",
			New: "\tif MUTANT {\n\t\tl.matched = max(l.matched, min(to, l.end()))\n\t}\n\tif to = min(to, l.matched); to > " +
				"l.commit {\n",
		},
		{
			Name: "an epoch ends half a window early", Dir: dir, Test: "TestEpochEndsBehindAllProposals",
			Old: "\t\t\tr.epoch.last = s + window\n",
			New: "\t\t\tr.epoch.last = s + window\n\t\t\tif MUTANT {\n\t\t\t\tr.epoch.last = s + window/2\n\t\t\t}\n",
		},
		{
			Name: "an epoch ends one slot early", Dir: dir, Test: "TestEpochEndsBehindAllProposals",
			Old: "\t\tif r.epoch.last == 0 {\n", New: "\t\tif MUTANT {\n\t\t\tr.epoch.last = s + window - 2\n\t\t}\n\t\tif " +
				"r.epoch.last == 0 {\n",
		},
		{
			Name: "a leader of a lower ballot is not told", Dir: dir, Test: "TestBeatsSettleBallots",
			Old: "\t\tr.Admission.SendAhead(env, from, refusal{r.place(l, l.promised)})\n\t\treturn\n\tcase led.Ballot > " +
				"l.promised:\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.Admission.SendAhead(env, from, refusal{r.place(l, " +
				"l.promised)})\n\t\t}\n\t\treturn\n\tcase led.Ballot > l.promised:\n",
		},
		{
			Name: "the beats of a leader of a higher ballot are ignored", Dir: dir, Test: "TestBeatsSettleBallots",
			Old: "\t\tl.raise(led.Ballot)\n", New: "\t\tif MUTANT {\n\t\t\treturn\n\t\t}\n\t\tl.raise(led.Ballot)\n",
		},
		{
			Name: "what a full track's leader has decided is not asked for", Dir: dir, Test: "TestBeatsSettleBallots",
			Old: "\tif l.matched < led.Commit && ", New: "\tif !MUTANT && l.matched < led.Commit && ",
		},
		{
			Name: "a new leader keeps any vote", Dir: dir, Test: "TestRevokerTakesTheHighestBallot",
			Old: "\tcase v.Ballot > c.best[i].Ballot:\n", New: "\tcase v.Ballot > c.best[i].Ballot || MUTANT:\n",
		},
		{
			Name: "what comes after a gap is accepted", Dir: dir, Test: "TestSeedsNotice/39",
			Old: "\tif m.First > l.matched+1 {\n", New: "\tif m.First > l.matched+1 && !MUTANT {\n",
			Also: []plant.Edit{{Old: "\tfirst := max(m.First, l.matched+1)\n",
				New: "\tfirst := max(m.First, l.matched+1)\n\tif MUTANT {\n\t\tfirst = l.matched + 1\n\t}\n"}},
		},
		{
			Name: "an owner forgets in a crash what it has skipped", Dir: dir, Test: "TestSeedsNotice/109",
			Old: "\tr.above = r.seen\n", New: "\tif !MUTANT {\n\t\tr.above = r.seen\n\t}\n",
			Also: []plant.Edit{{Old: "\t\tl.commit = done\n",
				New: "\t\tl.commit = done\n\t\tfor MUTANT && l.owner == r.Cfg.ID && l.end() > done && l.at(l.end()).Skip " +
					"{\n\t\t\tl.votes = l.votes[:len(l.votes)-1]\n\t\t}\n"}},
		},
		{
			Name: "a track's other leader proposes commands", Dir: dir, Test: "TestSeedsNotice/410",
			Old: "\tr.soon(env)\n}\n\n// leadFrom makes ",
			New: "\tif MUTANT && l.owner != r.Cfg.ID && len(r.queue) > 0 {\n\t\tvotes := []vote{{c.ballot, false, " +
				"r.queue[0]}}\n\t\tr.queue = r.queue[1:]\n\t\tr.extend(env, l, votes)\n\t}\n" +
				"\tr.soon(env)\n}\n\n// leadFrom makes ",
		},
		{
			Name: "a command whose slot was revoked is not proposed again", Dir: dir, Test: "TestScenarios/3-revoked-command",
			Old: "\tif !e.Equal(there) && r.Desk.Waits(e) {\n", New: "\tif !e.Equal(there) && r.Desk.Waits(e) && !MUTANT {\n",
		},
		{
			Name: "votes of several ballots are counted together", Dir: dir, Test: "TestVotesOfOneBallotDecide",
			Old: "\t\tif a.ballot == l.promised {\n", New: "\t\tif a.ballot == l.promised || MUTANT {\n",
		},
		{
			Name: "commands are proposed behind the window", Dir: dir, Test: "TestWindow",
			Old: "\treturn r.State.Applied() + window\n",
			New: "\tif MUTANT {\n\t\treturn r.State.Applied() + 2*window\n\t}\n\treturn r.State.Applied() + window\n",
		},
		{
			Name: "reads ask nobody", Dir: dir, Test: "TestReadsWaitForTheNextEpoch",
			Old: "\tvoters := r.epoch.members\n",
			New: "\tvoters := r.epoch.members\n\tif MUTANT {\n\t\tvoters = []protocol.ID{r.Cfg.ID}\n\t}\n",
		},
		{
			Name: "a command gets a slot below its causal bound", Dir: dir, Test: "TestCausalBound",
			Old: "\t\tr.above = max(r.above, msg.After)\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.above = max(r.above, msg.After)\n\t\t}\n",
		},
		{
			Name: "silent members keep their tracks", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "l.suspects(patience + turn*(rank-1)):\n", New: "l.suspects(patience + turn*(rank-1)) && !MUTANT:\n",
		},
		{
			Name: "an owner does not come back", Dir: dir, Test: "TestSeedsNotice/20",
			Old: "\t\tcase l.owner == r.Cfg.ID, ",
			New: "\t\tcase l.owner == r.Cfg.ID && MUTANT:\n\t\tcase l.owner == r.Cfg.ID, ",
		},
		{
			Name: "promises are not durable", Dir: dir, Test: "TestPromiseIsOnDisk",
			Old: "\tr.journal.Promised(env.Append(r.epoch.promises()))\n}\n\n// active ",
			New: "\tif !MUTANT {\n\t\tr.journal.Promised(env.Append(r.epoch.promises()))\n\t}\n}\n\n// active ",
		},
	}
}

// TestPlants plants them: the test that is named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds of the swarm that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), smrtest.PlaySwarm(Protocol()))
}
