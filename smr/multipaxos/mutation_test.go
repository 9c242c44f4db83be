package multipaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/smr/smrtest"
)

// mutations are rules that seeds of the swarm notice the lack of. Those that take a schedule of
// their own are in TestPlants.
func mutations() []plant.Bug {
	const dir, test = "smr/multipaxos", "TestSeedsThatNotice"
	return []plant.Bug{
		{
			Name: "a new leader keeps any vote", Dir: dir, Test: "TestPhase1TakesTheHighestBallot",
			Old: "case s <= decided || v.Ballot > c.best[i].Ballot:", New: "case MUTANT || s <= decided || v.Ballot > c.best[i].Ballot:",
		},
		{
			Name: "votes of earlier ballots count in a later one", Dir: dir, Test: test,
			Old: "\tr.promised = b\n\tr.rematch()\n", New: "\tr.promised = b\n\tif MUTANT {\n\t\treturn\n\t}\n\tr.rematch()\n",
		},
		{
			Name: "votes are told before they are on disk", Dir: dir, Test: test,
			Old: "\tr.take(env, m)\n", New: "\tr.take(env, m)\n\tif MUTANT {\n\t\tr.admission.SendAhead(env, from, Accepted{Ballot: m.Ballot, Match: r.matched})\n\t\treturn\n\t}\n",
		},
		{
			Name: "an Accept of a lower ballot is taken", Dir: dir, Test: test,
			Old: "\tcase !owns(from, m.Ballot) || from == r.cfg.ID || m.First == 0:\n\t\treturn\n\tcase m.Ballot < r.promised:",
			New: "\tcase !owns(from, m.Ballot) || from == r.cfg.ID || m.First == 0:\n\t\treturn\n\tcase m.Ballot < r.promised && !MUTANT:",
		},
		{
			Name: "reads do not wait for what earlier leaders had decided", Dir: dir, Test: test,
			Old: "m.Queries, max(r.commit, r.lead.start)", New: "m.Queries, func() smr.Slot {\n\t\tif MUTANT {\n\t\t\treturn r.commit\n\t\t}\n\t\treturn max(r.commit, r.lead.start)\n\t}()",
		},
		{
			Name: "one follower's vote is not waited for", Dir: dir, Test: test,
			Old: "quorum.KthLargest(match, quorum.Majority(len(match)))", New: "quorum.KthLargest(match, func() int {\n\t\t\tif MUTANT {\n\t\t\t\treturn max(1, quorum.Majority(len(match))-1)\n\t\t\t}\n\t\t\treturn quorum.Majority(len(match))\n\t\t}())",
		},
		{
			Name: "what was lost is not asked for", Dir: dir, Test: test,
			Old: "\tr.missing, r.asked = m, env.Now\n", New: "\tif MUTANT {\n\t\treturn\n\t}\n\tr.missing, r.asked = m, env.Now\n",
		},
		{
			Name: "who follows nobody never stands", Dir: dir, Test: test,
			Old: "\tr.quiet, r.leader = true, 0\n", New: "\tr.quiet, r.leader = true, 0\n\tif MUTANT {\n\t\treturn\n\t}\n",
		},
	}
}

// TestMutations leaves out one rule at a time, in the source: a seed of the swarm must notice.
func TestMutations(t *testing.T) { plant.Catch(t, mutations()) }

// TestSeedsThatNotice plays the seeds of the swarm that did notice when the test was written.
func TestSeedsThatNotice(t *testing.T) {
	for _, seed := range []uint64{1, 10, 18, 23, 60, 87, 121, 232, 241, 366, 427, 718, 957, 993, 5793} {
		if r, err := smrtest.Play(smrtest.Swarm(Protocol(), seed)); err != nil {
			t.Fatalf("%v\n%.700v", r, err)
		}
	}
}
