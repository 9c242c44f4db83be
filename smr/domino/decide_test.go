package domino

import (
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// TestDecisionsAreTakenInOrder: an acceptor says of how many decisions it has the first. So it
// takes none behind a gap, and skips those that are not sent any more only if it has executed what
// they are about.
func TestDecisionsAreTakenInOrder(t *testing.T) {
	for name, c := range map[string]struct {
		base  uint64
		ahead smr.Slot // the causal bound, above what is executed
		first uint64
		want  uint64
	}{
		"the first":                   {0, 0, 1, 1},
		"behind a gap":                {0, 0, 2, 0},
		"behind what is executed":     {5, 0, 6, 6},
		"behind what is not executed": {5, 1000, 6, 0},
		"an old one":                  {5, 0, 4, 5},
	} {
		_, r, env := inHand(t, "na3", 2)
		a := &r.acceptor
		b := kit.NewBallot(a.promised, 3)
		executed := r.learner.executed
		r.onAccept(env, 3, accept{
			Ballot: b, Generation: r.State.Generation(), Base: c.base, Through: executed + c.ahead, First: c.first,
			Closes: []closeSlots{{Track: control, Low: executed, High: executed + 100}},
		})
		if a.promised != b || a.count != c.want {
			t.Errorf("%s: ballot %v, %d decisions, want %v and %d", name, a.promised, a.count, b, c.want)
		}
	}
}

// TestLearnsOfOneBallot: a coordinator's decision is learned when a majority has accepted it in its
// ballot, by those who know the members among whom the ballot holds.
func TestLearnsOfOneBallot(t *testing.T) {
	for name, c := range map[string]struct {
		ballot     kit.Ballot // that the other one follows, relative to the replica's
		generation uint64     // relative to the state's
		learned    bool
	}{
		"a majority":                {0, 0, true},
		"in another ballot":         {1 << 32, 0, false},
		"among members of later on": {0, 1, false},
	} {
		_, r, _ := inHand(t, "na3", 2)
		a := &r.acceptor
		a.begun, a.count = []closeSlots{{Track: control, Low: r.learner.executed, High: r.learner.executed + 100}}, 1
		a.generation = r.State.Generation() + c.generation
		for _, p := range r.peers {
			p.promised, p.accepted = 0, 0
		}
		r.peers[2].promised, r.peers[2].accepted = a.promised, 1
		r.peers[3].promised, r.peers[3].accepted = a.promised+c.ballot, 1
		if r.learnCloses(); (len(a.begun) == 0) != c.learned {
			t.Errorf("%s: %d decisions wait, learned should be %v", name, len(a.begun), c.learned)
		}
	}
}

// TestReadsAskTheMembersOfNow: who was asked before the members changed may not know what the new
// ones have executed since.
func TestReadsAskTheMembersOfNow(t *testing.T) {
	for _, changed := range []bool{false, true} {
		_, r, env := inHand(t, "na3", 2)
		w := read{mark: r.learner.executed, generation: r.State.Generation(), from: 77, queries: []kit.Query{{ID: 1}}}
		if changed {
			w.generation--
		}
		r.reads.marked = []read{w}
		r.answerReads(env)
		answered := slices.ContainsFunc(env.Out, func(e protocol.Effect[smr.Message]) bool { return e.To == 77 })
		if answered == changed || r.reads.asking != changed {
			t.Errorf("members changed %v: answered %v, asks again %v", changed, answered, r.reads.asking)
		}
	}
}

// TestNewCoordinatorFinishesTheOldOnes: it decides nothing else before what earlier coordinators
// have had accepted is decided again.
func TestNewCoordinatorFinishesTheOldOnes(t *testing.T) {
	_, r, _ := inHand(t, "na3", 1)
	clear(r.coord.busy)
	r.acceptor.begun = nil
	for again, want := range map[uint64]bool{r.acceptor.count: true, r.acceptor.count + 1: false} {
		if r.coord.again1 = again; r.idle(shared) != want {
			t.Errorf("%d decisions are learned, %d were to be decided again: idle %v", r.acceptor.count, again, !want)
		}
	}
}
