package epaxos

import (
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/smr/smrtest"
)

// plants leave out one rule at a time, in the source.
func plants() []plant.Bug {
	const dir = "smr/epaxos"
	return []plant.Bug{
		{
			Name: "stamps are not raised by what is heard of", Dir: dir, Test: "TestWhatIsKnownComesBefore",
			Old: "\tr.stamp = max(r.stamp, c.Stamp)\n", New: "\tif !MUTANT {\n\t\tr.stamp = max(r.stamp, c.Stamp)\n\t}\n",
		},
		{
			Name: "after a restart or an install nothing depends on the checkpoint", Dir: dir,
			Test: "TestAllDependsOnTheCheckpoint",
			Old:  "p.checkpoint.Index > 0 {\n", New: "p.checkpoint.Index > 0 && !MUTANT {\n",
		},
		{
			Name: "a replay begins with the sessions' ages of its end", Dir: dir, Test: "TestReplayEvictsTheSameSession",
			Old: "\tr.sessions = p.sessions\n\treturn err\n",
			New: "\tif !MUTANT {\n\t\tr.sessions = p.sessions\n\t}\n\treturn err\n",
		},
		{
			Name: "a proposer vouches for what it does not know", Dir: dir, Test: "TestDurableWaitsForWhatNobodyKnows",
			Old: "\t\tw.seen = max(w.seen, w.base)\n",
			New: "\t\tif len(vouched) == 0 && MUTANT {\n\t\t\treturn false\n\t\t}\n\t\tw.seen = max(w.seen, w.base)\n",
		},
		{
			Name: "an acceptor adds what it does not know", Dir: dir, Test: "TestDurableWaitsForWhatNobodyKnows",
			Old: "\t\t\tfirst = max(first, vouched[p]+1)\n",
			New: "\t\t\tfirst = max(first, vouched[p]+1)\n\t\t\tif MUTANT {\n\t\t\t\tbreak\n\t\t\t}\n",
		},
		{
			Name: "a promise is taken for a vote", Dir: dir, Test: "TestScenarios/4-two-ballots",
			Old: "\ti.ballot = b\n", New: "\ti.ballot = b\n\tif MUTANT && i.phase == phaseAccepted {\n\t\ti.voted = b\n\t}\n",
		},
		{
			Name: "recovery does not decide what the fast path may have decided", Dir: dir, Test: "TestSeedsNotice/2",
			Tests: []string{"TestScenarios/3-recovery"},
			Old:   "\tcase proposer, candidate == nil, ", New: "\tcase MUTANT, proposer, candidate == nil, ",
		},
		{
			Name: "recovery decides what something speaks against", Dir: dir, Test: "TestRecoveryValidates",
			Old: "\tdefault:\n\t\tt.cmd, t.deps, t.stage,",
			New: "\tcase MUTANT:\n\t\tr.startAccept(env, t, candidate.Cmd, candidate.Init)\n\tdefault:\n\t\tt.cmd, t.deps, " +
				"t.stage,",
		},
		{
			Name: "what depends on each other is executed as it comes", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "\tslices.SortFunc(component, order)\n", New: "\tif !MUTANT {\n\t\tslices.SortFunc(component, order)\n\t}\n",
		},
		{
			Name: "nothing is waited for", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "\t\tcase !o.decided() || o.blocked == r.pass:\n",
			New: "\t\tcase !o.decided() && MUTANT:\n\t\tcase !o.decided() || o.blocked == r.pass:\n",
		},
		{
			Name: "pre-accepts are not on disk", Dir: dir, Test: "TestSeedsNotice/28",
			Old: "\t\tr.save(env, i, true)\n\t\tr.Admission.Send(env, from, preAccepted{",
			New: "\t\tif !MUTANT {\n\t\t\tr.save(env, i, true)\n\t\t}\n\t\tr.Admission.Send(env, from, preAccepted{",
		},
		{
			Name: "a decision of the fast path is told before it is on disk", Dir: dir,
			Test: "TestFastDecisionIsOnDiskBeforeItIsTold",
			Old:  "\t\tr.Admission.Send(env, r.Cfg.ID, settled{head: r.head(), ID: i.id})\n",
			New: "\t\tif MUTANT {\n\t\t\tr.settle(env, i, true)\n\t\t\treturn\n\t\t}\n\t\tr.Admission.Send(env, r.Cfg.ID, " +
				"settled{head: r.head(), ID: i.id})\n",
		},
		{
			Name: "a generation has no end", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "!slices.Equal(before, r.State.Members()) {\n", New: "!slices.Equal(before, r.State.Members()) && !MUTANT {\n",
		},
		{
			Name: "a durable acknowledgement does not wait for a change of the members", Dir: dir,
			Test: "TestDurableWaitsForChanges",
			Old:  "p != nil && t.fenced {\n", New: "p != nil && t.fenced && !MUTANT {\n",
		},
		{
			Name: "the fast path is taken by those who do not agree", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "\tif slices.Equal(m.Deps, i.init) {\n", New: "\tif slices.Equal(m.Deps, i.init) || MUTANT {\n",
		},
		{
			Name: "the slow path forgets what others depend on", Dir: dir, Test: "TestSeedsNotice/1",
			Old: "\t\tr.startAccept(env, t, i.cmd, t.joined)\n",
			New: "\t\tif MUTANT {\n\t\t\tt.joined = i.init\n\t\t}\n\t\tr.startAccept(env, t, i.cmd, t.joined)\n",
		},
		{
			Name: "a checkpoint does not speak against what does not depend on it", Dir: dir,
			Test: "TestCheckpointSpeaksAgainstWhatIsBefore",
			Old:  "r.checkpoint.Index > d[p] {\n", New: "r.checkpoint.Index > d[p] && !MUTANT {\n",
		},
	}
}

// TestPlants plants them: the test that is named must notice.
func TestPlants(t *testing.T) { plant.Catch(t, plants()) }

// TestSeedsNotice plays the seeds that notice a bug, of the own swarm and of the suite's.
func TestSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		if _, err := swarm(seed).play(); err != nil {
			return err
		}
		_, err := smrtest.Play(smrtest.Swarm(Protocol(), seed))
		return err
	})
}
