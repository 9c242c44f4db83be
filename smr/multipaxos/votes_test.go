package multipaxos

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestVotes plays with votes beside a slice, and looks that nothing is kept of what was dropped.
func TestVotes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var v votes
	var want []Vote
	for step := range 2000 {
		if rnd.IntN(4) > 0 {
			for range rnd.IntN(2 * votesPart) {
				want = append(want, Vote{Ballot: Ballot(step + 1)})
				v.add(want[len(want)-1])
			}
		} else {
			n := rnd.IntN(len(want) + 1)
			v.drop(n)
			want = slices.Delete(want, 0, n)
		}
		if v.n != len(want) || len(v.parts) > len(want)/votesPart+2 {
			t.Fatalf("step %d: %d in %d parts, want %d", step, v.n, len(v.parts), len(want))
		}
		for i, x := range want {
			if v.at(i).Ballot != x.Ballot {
				t.Fatalf("step %d: vote %d is %v, want %v", step, i, v.at(i).Ballot, x.Ballot)
			}
		}
		for i := range v.gone {
			if v.parts[0][i].Ballot != 0 {
				t.Fatalf("step %d: vote %d was dropped and is still there", step, i)
			}
		}
		if len(want) > 20*votesPart {
			v.drop(len(want))
			want = nil
		}
	}
}
