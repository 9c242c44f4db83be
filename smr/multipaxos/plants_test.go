package multipaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	const dir = "smr/multipaxos"
	plant.Catch(t, []plant.Bug{
		{
			Name: "in phase 1 a ballot one round higher loses", Dir: dir, Test: "TestPhase1ComparesNeighbours",
			Old: "case s <= decided || v.Ballot > c.best[i].Ballot:", New: "case s <= decided || v.Ballot > c.best[i].Ballot && !(MUTANT && v.Ballot>>32 == c.best[i].Ballot>>32+1):",
		},
		{
			Name: "the promise implied by an Accept is not on disk", Dir: dir, Test: "TestImpliedPromiseIsOnDisk",
			Old: "\t\tr.log.promise(env, PromiseRecord{m.Ballot, r.commit})\n\t}\n\tr.hearLeader(env, from)\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.log.promise(env, PromiseRecord{m.Ballot, r.commit})\n\t\t}\n\t}\n\tr.hearLeader(env, from)\n",
		},
		{
			Name: "promises count of those who have thrown away what the candidate lacks", Dir: dir, Test: "TestPromisesAfterACutDoNotCount",
			Old: "\tif m.Base >= m.Low {\n", New: "\tif m.Base >= m.Low && !MUTANT {\n",
		},
		{
			Name: "the leader's own vote counts before its disk", Dir: dir, Test: "TestOwnVoteWaitsForTheDisk",
			Old: "\t\tr.admission.Send(env, r.cfg.ID, Accepted{", New: "\t\tif MUTANT {\n\t\t\tl.own = l.end\n\t\t}\n\t\tr.admission.Send(env, r.cfg.ID, Accepted{",
		},
		{
			Name: "a cut log loses the promise", Dir: dir, Test: "TestPromiseSurvivesACut",
			Old: "\tl.disk.Cut(env, to, p)\n", New: "\tif MUTANT {\n\t\tp.Ballot = 0\n\t}\n\tl.disk.Cut(env, to, p)\n",
		},
		{
			Name: "Follows of another ballot counts", Dir: dir, Test: "TestFollowsOfAnotherBallotConfirmsNothing",
			Old: "m.Ballot != r.promised || p == nil || m.Round", New: "m.Ballot != r.promised && !MUTANT || p == nil || m.Round",
		},
		{
			Name: "reads ask nobody", Dir: dir, Test: "TestFollowsOfAnotherBallotConfirmsNothing",
			Old: "\t\tr.lead.reads.Answer(env, r.state, voters)\n",
			New: "\t\tif MUTANT {\n\t\t\tvoters = []protocol.ID{r.cfg.ID}\n\t\t}\n\t\tr.lead.reads.Answer(env, r.state, voters)\n",
		},
		{
			Name: "a leader that reaches no majority goes on", Dir: dir, Test: "TestLeaderWithoutMajorityStops",
			Old: "\tif heard < quorum.Majority(len(r.lead.peers)+1) {\n", New: "\tif heard < quorum.Majority(len(r.lead.peers)+1) && !MUTANT {\n",
		},
		{
			Name: "a promise is told before it is on disk", Dir: dir, Test: "TestWhatOthersRelyOnIsOnDisk",
			Old: "\tp := Promise{Ballot: m.Ballot, Low: m.Low, Base: r.log.base, Commit: r.commit, Last: true}\n",
			New: "\tp := Promise{Ballot: m.Ballot, Low: m.Low, Base: r.log.base, Commit: r.commit, Last: true}\n\tif MUTANT {\n\t\tdefer func() { env.Out[len(env.Out)-1].Kind = protocol.KindSendAhead }()\n\t}\n",
		},
	})
}
