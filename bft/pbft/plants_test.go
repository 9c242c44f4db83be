package pbft

import (
	"cmp"
	"testing"

	"github.com/foresay/foresay/internal/plant"
)

// TestPlants leaves out one rule at a time, in the source: the test that is named must notice.
func TestPlants(t *testing.T) {
	bugs := []plant.Bug{
		{
			Name: "tentative replies of different views confirm", Test: "TestConfirmedIsExact",
			Old: "case h.tentative && o.view == h.view && o.seq == h.seq:",
			New: "case h.tentative && (o.view == h.view || MUTANT) && o.seq == h.seq:",
		},
		{
			Name: "a new view takes the batch of an older view", Test: "TestChoiceIsExact",
			Old: "c.Prepared[i].Order.Body().View > best.View) {",
			New: "(c.Prepared[i].Order.Body().View > best.View) != MUTANT) {",
		},
		{
			Name: "a minority prepares", Test: "TestEveryStrategy",
			Old: "\tif len(votes) < r.dir.Quorum()-1 {\n",
			New: "\tif len(votes) < r.dir.Quorum()-1 && !MUTANT || len(votes) == 0 {\n",
		},
		{
			Name: "what one member says is committed is believed", Test: "TestLiarsOfCommits",
			Old: "case committed >= r.dir.Witness():",
			New: "case committed >= r.dir.Witness() || MUTANT && committed > 0:",
		},
		{
			Name: "a starved client waits for ever", Test: "TestEveryStrategy",
			Old: "\tif age > r.timeout() {\n",
			New: "\tif age > r.timeout() && !MUTANT {\n",
		},
		{
			Name: "f replies that match the early one confirm", Test: "TestFMatchingIsNotEnough",
			Old: "if committed >= enough || tentative >= quorum {",
			New: "if committed >= enough || tentative >= quorum || MUTANT && committed >= witness-1 {",
		},
		{
			Name: "a view begins as its primary likes", Test: "TestTraitorLeads",
			Old: "\t\treturn got.By(primary.Key) && *got.Body() == want\n",
			New: "\t\treturn got.By(primary.Key) && (*got.Body() == want || MUTANT)\n",
		},
		{
			Name: "a view begins with one word", Test: "TestTraitorLeads",
			Old: "\tif len(signers) < d.Quorum() {\n",
			New: "\tif len(signers) < d.Quorum() && !MUTANT {\n",
		},
		{
			Name: "only one member is asked for a state", Test: "TestTransfer",
			Old: "\t\tr.asked++\n",
			New: "\t\tif r.asked == 0 || !MUTANT {\n\t\t\tr.asked++\n\t\t}\n",
		},
		{
			Name: "a crash forgets what was prepared", Test: "TestAllCrash",
			Old: "\t\t\tp.prepared = &m.Prepared\n",
			New: "\t\t\tif !MUTANT {\n\t\t\t\tp.prepared = &m.Prepared\n\t\t\t}\n",
		},
		{
			Name: "a crash forgets that a checkpoint was reached", Test: "TestAllCrash",
			Old: "seq > r.low() && seq <= r.committed {",
			New: "seq > r.low() && seq <= r.committed && !MUTANT {",
		},
		{
			Name: "what names a null operation is executed", Dir: "bft/sessions", In: "bft/pbft",
			Test: "TestPredicatesAcrossAViewChange",
			Old:  "if !ok || e.Result.Outcome != bft.Executed {",
			New:  "if (!ok || e.Result.Outcome != bft.Executed) && !MUTANT {",
			Also: []plant.Edit{{Old: "\t\tcase !ok:\n\t\t\toutcome = bft.Retry\n",
				New: "\t\tcase !ok && !MUTANT:\n\t\t\toutcome = bft.Retry\n\t\tcase !ok:\n"}},
		},
	}
	for i := range bugs {
		bugs[i].Dir = cmp.Or(bugs[i].Dir, "bft/pbft")
	}
	plant.Catch(t, bugs)
}

// TestLiarsOfCommits: one member alone cannot make another one believe that a batch is committed.
func TestLiarsOfCommits(t *testing.T) {
	r := member(t)
	p := r.place(1)
	p.told[2] = [32]byte{1}
	if r.decide(p) {
		t.Error("one member's word decides")
	}
	p.told[3] = [32]byte{1}
	if !r.decide(p) {
		t.Error("two words do not decide, one of which is honest")
	}
}
