package multipaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/smr/smrtest"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	const dir = "smr/multipaxos"
	return []plant.Bug{
		{
			Name: "a log is taken without the snapshot that it follows", Dir: "smr/kit", In: dir,
			Test: "TestConformance/lost_snapshot",
			Old:  "case !f.Blank && (!cfg.Join || self.Joined):", New: "case !f.Blank && !MUTANT && (!cfg.Join || self.Joined):",
		},
		{
			Name: "the log of a replica that joined is taken without its snapshot", Dir: "smr/kit", In: dir,
			Test: "TestConformance/lost_snapshot",
			Old:  "\tself, _, _ := diskid.Read(env, selfKey)\n",
			New:  "\tself, _, _ := diskid.Read(env, selfKey)\n\tself.Joined = self.Joined && !MUTANT\n",
		},
		{
			Name: "a new leader keeps any vote", Dir: dir, Test: "TestPhase1TakesTheHighestBallot",
			Old: "case s <= decided ||", New: "case MUTANT || s <= decided ||",
		},
		{
			Name: "votes of earlier ballots count in a later one", Dir: dir, Test: "TestSeedsNotice/5",
			Old: "\tr.promised = b\n\tr.rematch()\n", New: "\tr.promised = b\n\tif MUTANT {\n\t\treturn\n\t}\n\tr.rematch()\n",
		},
		{
			Name: "votes are told before they are on disk", Dir: dir, Test: "TestSeedsNotice/23",
			Old: "\tr.take(env, m)\n", New: "\tr.take(env, m)\n\tif MUTANT {\n\t\tr.Admission.SendAhead(env, from, " +
				"accepted{Ballot: m.Ballot, Match: r.matched})\n\t\treturn\n\t}\n",
		},
		{
			Name: "an Accept of a lower ballot is taken", Dir: dir, Test: "TestSeedsNotice/5",
			Old: "\tcase !owns(from, m.Ballot) || from == r.Cfg.ID || m.First == 0:\n\t\treturn\n\tcase m.Ballot < r.promised:",
			New: "\tcase !owns(from, m.Ballot) || from == r.Cfg.ID || m.First == 0:\n\t\treturn\n\tcase m.Ballot < " +
				"r.promised && !MUTANT:",
		},
		{
			Name: "reads do not wait for what earlier leaders had decided", Dir: dir, Test: "TestSeedsNotice/76",
			Old: "m.Queries, max(r.commit, r.lead.start)",
			New: "m.Queries, func() smr.Slot {\n\t\tif MUTANT {\n\t\t\treturn r.commit\n\t\t}\n\t\treturn max(r.commit, " +
				"r.lead.start)\n\t}()",
		},
		{
			Name: "one follower's vote is not waited for", Dir: dir, Test: "TestSeedsNotice/13",
			Old: "quorum.KthLargest(match, quorum.Majority(len(match)))",
			New: "quorum.KthLargest(match, func() int {\n\t\t\tif MUTANT {\n\t\t\t\treturn max(1, " +
				"quorum.Majority(len(match))-1)\n\t\t\t}\n\t\t\treturn quorum.Majority(len(match))\n\t\t}())",
		},
		{
			Name: "what was lost is not asked for", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "\tr.missing, r.missingAt = m, env.Now\n",
			New: "\tif MUTANT {\n\t\treturn\n\t}\n\tr.missing, r.missingAt = m, env.Now\n",
		},
		{
			Name: "who follows nobody never stands", Dir: dir, Test: "TestSeedsNotice/4",
			Old: "\tr.quiet, r.leader = true, 0\n", New: "\tr.quiet, r.leader = true, 0\n\tif MUTANT {\n\t\treturn\n\t}\n",
		},
		{
			Name: "in phase 1 a ballot one round higher loses", Dir: dir, Test: "TestPhase1ComparesNeighbours",
			Old: " v.Ballot > c.best[i].Ballot:",
			New: " v.Ballot > c.best[i].Ballot && !(MUTANT && v.Ballot>>32 == c.best[i].Ballot>>32+1):",
		},
		{
			Name: "the promise implied by an Accept is not on disk", Dir: dir, Test: "TestImpliedPromiseIsOnDisk",
			Old: "\t\tr.log.promise(env, promiseRecord{m.Ballot, r.commit})\n\t}\n\tr.hearLeader(env, from)\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.log.promise(env, promiseRecord{m.Ballot, " +
				"r.commit})\n\t\t}\n\t}\n\tr.hearLeader(env, from)\n",
		},
		{
			Name: "promises count of those who have thrown away what the candidate lacks", Dir: dir,
			Test: "TestPromisesAfterACutDoNotCount",
			Old:  "\tif m.Base >= m.Low {\n", New: "\tif m.Base >= m.Low && !MUTANT {\n",
		},
		{
			Name: "the leader's own vote counts before its disk", Dir: dir, Test: "TestOwnVoteWaitsForTheDisk",
			Old: "\t\tr.Admission.Send(env, r.Cfg.ID, accepted{",
			New: "\t\tif MUTANT {\n\t\t\tl.own = l.end\n\t\t}\n\t\tr.Admission.Send(env, r.Cfg.ID, accepted{",
		},
		{
			Name: "a cut log loses the promise", Dir: dir, Test: "TestPromiseSurvivesACut",
			Old: "\tl.journal.Cut(env, to, p)\n",
			New: "\tif MUTANT {\n\t\tp.Ballot = 0\n\t}\n\tl.journal.Cut(env, to, p)\n",
		},
		{
			Name: "an answer to a poll of another ballot counts", Dir: dir, Test: "TestPolledOfAnotherBallotConfirmsNothing",
			Old: "m.Ballot != r.promised || p == nil || m.Round",
			New: "m.Ballot != r.promised && !MUTANT || p == nil || m.Round",
		},
		{
			Name: "reads ask nobody", Dir: dir, Test: "TestPolledOfAnotherBallotConfirmsNothing",
			Old: "\t\tr.lead.reads.Answer(env, r.State, voters)\n",
			New: "\t\tif MUTANT {\n\t\t\tvoters = []protocol.ID{r.Cfg.ID}\n\t\t}\n\t\tr.lead.reads.Answer(env, r.State, " +
				"voters)\n",
		},
		{
			Name: "a leader that reaches no majority goes on", Dir: dir, Test: "TestLeaderWithoutMajorityStops",
			Old: "\tif heard < quorum.Majority(len(r.lead.peers)+1) {\n",
			New: "\tif heard < quorum.Majority(len(r.lead.peers)+1) && !MUTANT {\n",
		},
		{
			Name: "the successor of a hand-over may be silent", Dir: dir, In: "smr/service", Test: "TestHandOverAfterAnEnd",
			Old: "to == 0 && (p.heard || p.before)",
			New: "to == 0 && (p.heard || p.before || MUTANT)",
		},
		{
			Name: "a promise is told before it is on disk", Dir: dir, Test: "TestWhatOthersRelyOnIsOnDisk",
			Old: "\tp := promise{Ballot: m.Ballot, Low: m.Low, Base: r.log.base, Commit: r.commit, Last: true}\n",
			New: "\tp := promise{Ballot: m.Ballot, Low: m.Low, Base: r.log.base, Commit: r.commit, Last: true}\n\tif MUTANT " +
				"{\n\t\tdefer func() { env.Out[len(env.Out)-1].Kind = protocol.KindSendAhead }()\n\t}\n",
		},
	}
}

// TestPlants plants them: the test that is named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds of the swarm that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), smrtest.PlaySwarm(Protocol()))
}
