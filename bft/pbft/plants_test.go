package pbft

import (
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
	}
	for i := range bugs {
		bugs[i].Dir = "bft/pbft"
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
