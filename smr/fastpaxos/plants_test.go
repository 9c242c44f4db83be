package fastpaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrtest"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	const dir = "smr/fastpaxos"
	return []plant.Bug{
		{
			Name: "who stands gives up for a lower era", Dir: dir, Test: "TestHigherAttemptGoesOn",
			Old: "\tcase r.cand != nil && r.cand.era > e:\n", New: "\tcase r.cand != nil && r.cand.era > e && !MUTANT:\n",
		},
		{
			Name: "a no-op vote is told and not made", Dir: dir, Test: "TestVotesForNothingAreMade",
			Old: "\t\t\te := kit.Entry{Kind: kit.NoOp}\n\t\t\tr.accept(vote{Slot: s, Era: r.promised, Entry: e})\n",
			New: "\t\t\te := kit.Entry{Kind: kit.NoOp}\n\t\t\tif !MUTANT {\n\t\t\t\tr.accept(vote{Slot: s, Era: r.promised, " +
				"Entry: e})\n\t\t\t}\n",
		},
		{
			Name: "what a majority of all has is kept, or else any", Dir: dir, Test: "TestValueChoice",
			Old: "asked+quorum.Fast(n)-n\n", New: "asked+quorum.Fast(n)-n\n\tif MUTANT {\n\t\tbest.bound = most >= " +
				"quorum.Majority(n)\n\t}\n",
		},
		{
			Name: "a majority is a fast quorum", Dir: dir, Test: "TestSeedsNotice/4",
			Old: "\treturn quorum.Fast(len(r.State.Members()))\n",
			New: "\tif MUTANT {\n\t\treturn quorum.Majority(len(r.State.Members()))\n\t}\n\treturn " +
				"quorum.Fast(len(r.State.Members()))\n",
		},
		{
			Name: "a coordinator keeps any vote", Dir: dir, Test: "TestSeedsNotice/16",
			Old: "\t\tif found := choose(c.found[s], ",
			New: "\t\tif MUTANT && len(c.found[s]) > 0 {\n\t\t\tc.found[s] = c.found[s][:1]\n\t\t}\n\t\tif found := " +
				"choose(c.found[s], ",
		},
		{
			Name: "an acceptor votes twice in a slot", Dir: dir, Test: "TestSeedsNotice/3",
			Old: "\ts := max(max(r.top, after, r.State.Applied())+1, r.open)\n",
			New: "\ts := max(max(r.top, after, r.State.Applied())+1, r.open)\n\tif MUTANT && r.top > r.State.Applied()+1 && " +
				"r.top >= r.open {\n\t\ts = r.top\n\t}\n",
		},
		{
			Name: "promises are not durable", Dir: dir, Test: "TestPromiseIsOnDisk",
			Old: "\tr.journal.Promised(env.Append(promiseRecord{e}))\n",
			New: "\tif !MUTANT {\n\t\tr.journal.Promised(env.Append(promiseRecord{e}))\n\t}\n",
		},
		{
			Name: "votes are not durable", Dir: dir, Test: "TestSeedsNotice/4",
			Old: "\tr.journal.Wrote(env.Append(voteRecord{r.pending}), last)\n",
			New: "\tif !MUTANT {\n\t\tr.journal.Wrote(env.Append(voteRecord{r.pending}), last)\n\t}\n",
		},
		{
			Name: "a decision against the own vote is not on disk", Dir: dir, Test: "TestConformance/salvage",
			Old: "\t\tr.against = append(r.against, item{s, e})\n",
			New: "\t\tif !MUTANT {\n\t\t\tr.against = append(r.against, item{s, e})\n\t\t}\n",
		},
		{
			Name: "reads ask nobody", Dir: dir, Test: "TestReadsAskAMajority",
			Old: "\t\tvoters := r.State.MemberIDs()\n",
			New: "\t\tvoters := r.State.MemberIDs()\n\t\tif MUTANT {\n\t\t\tvoters = []protocol.ID{r.Cfg.ID}\n\t\t}\n",
		},
		{
			Name: "slots wait for all votes", Dir: dir, Test: "TestSeedsNotice/5",
			Old: "\tlate := t.age >= recoverAfter\n", New: "\tlate := t.age >= recoverAfter && !MUTANT\n",
			Also: []plant.Edit{{Old: "\tif shut > 0 && !l.classic {\n", New: "\tif shut > 0 && !l.classic && !MUTANT {\n"}},
		},
		{
			Name: "commands without a slot are not voted on again", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "\t\tcase w.age >= suggestAfter<<w.tries:\n", New: "\t\tcase w.age >= suggestAfter<<w.tries && !MUTANT:\n",
		},
		{
			Name: "fast rounds that collide are not given up", Dir: dir, Test: "TestCollisions/given up",
			Old: "\tif g.collided > g.slots/2 && r.cand == nil {\n",
			New: "\tif g.collided > g.slots/2 && r.cand == nil && !MUTANT {\n",
		},
		{
			Name: "a command gets a slot below its causal bound", Dir: dir, Test: "TestCausalBound",
			Old: "\t\tif s := r.vote(e, req.After, false); ",
			New: "\t\tif MUTANT {\n\t\t\treq.After = 0\n\t\t}\n\t\tif s := r.vote(e, req.After, false); ",
		},
	}
}

// TestPlants plants them: the test that is named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds of the swarm that notice a bug.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), smrtest.PlaySwarm(Protocol()))
}

// TestVotesForNothingAreMade: an acceptor that says to the coordinator that it has voted for
// nothing in a slot has, and knows it after a crash: it votes there for no command, and tells a new
// coordinator.
func TestVotesForNothingAreMade(t *testing.T) {
	r, env, disk := begun(t, 3)
	era := kit.NewBallot(0, 2)
	follow(r, env, era, 5)
	disk.Write(env, 0)
	h := head{Era: era, Generation: r.State.Generation()}
	r.Receive(env, 2, kit.Letter{Disk: 2, Msg: closeSlots{head: h, Slot: 7}})
	told := map[smr.Slot]bool{}
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(voted); ok && e.Kind == protocol.KindSend {
			for _, p := range m.Items {
				told[p.Slot] = p.Entry.Kind == kit.NoOp
			}
		}
	}
	if len(told) != 3 || !told[5] || !told[6] || !told[7] {
		t.Fatalf("told of votes in %v, want of votes for nothing in the slots 5 to 7", told)
	}
	disk.Write(env, 0)
	for _, crash := range []bool{false, true} {
		if crash {
			r, env = smrtest.OnDisk(t, disk, newReplica, one(3))
			disk.Write(env, 0)
		}
		next := kit.NewBallot(era, 3)
		r.silent = courtesy // the old coordinator is gone
		r.Receive(env, 3, kit.Letter{Disk: 3, Msg: prepare{head{Era: next, Generation: r.State.Generation()}, 5}})
		promised := map[smr.Slot]bool{}
		for _, e := range env.Out {
			if m, ok := kit.Inside(e.Msg).(promise); ok {
				for _, v := range m.Votes {
					promised[v.Slot] = v.Entry.Kind == kit.NoOp && v.Era == era && !v.Classic
				}
			}
		}
		if len(promised) != 3 || !promised[5] || !promised[6] || !promised[7] {
			t.Errorf("crashed %v: a new coordinator is told of votes %v, want for nothing in the slots 5 to 7", crash, promised)
		}
		disk.Write(env, 0)
		if !crash {
			continue
		}
		follow(r, env, next, 5)
		r.Receive(env, 77, command(1))
		if r.fastTop != 8 {
			t.Errorf("the next vote is in slot %d, want 8", r.fastTop)
		}
	}
}
