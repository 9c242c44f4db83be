package quorum_test

import (
	"math/bits"
	"testing"

	"github.com/foresay/foresay/quorum"
)

// TestByzantineSizesAreExact tries all traitors and all pairs of quorums of small groups.
func TestByzantineSizesAreExact(t *testing.T) {
	for n := 1; n <= 8; n++ {
		f, q, w := quorum.Traitors(n), quorum.Byzantine(n), quorum.Witness(n)
		if 3*f+1 > n || 3*(f+1)+1 <= n {
			t.Errorf("n = %d: %d traitors are not the most of which the others are more than twice as many", n, f)
		}
		if q > n-f {
			t.Errorf("n = %d: without %d traitors there are less than %d", n, f, q)
		}
		if !shareAnHonest(n, f, q) {
			t.Errorf("n = %d: two sets of %d may share traitors only", n, q)
		}
		if shareAnHonest(n, f, q-1) {
			t.Errorf("n = %d: two sets of %d share one who is no traitor as well, so %d is too large", n, q-1, q)
		}
		if !alwaysHonest(n, f, w) || alwaysHonest(n, f, w-1) {
			t.Errorf("n = %d: %d is not the smallest set with one who is no traitor", n, w)
		}
	}
	for n, want := range map[int][3]int{4: {1, 3, 2}, 5: {1, 4, 2}, 6: {1, 4, 2}, 7: {2, 5, 3}, 10: {3, 7, 4}} {
		if got := [3]int{quorum.Traitors(n), quorum.Byzantine(n), quorum.Witness(n)}; got != want {
			t.Errorf("n = %d: traitors, quorum and witnesses are %v, want %v", n, got, want)
		}
	}
}

func shareAnHonest(n, f, size int) bool {
	for _, traitors := range sets(n, f) {
		for _, a := range sets(n, size) {
			for _, b := range sets(n, size) {
				if a&b&^traitors == 0 {
					return false
				}
			}
		}
	}
	return true
}

func alwaysHonest(n, f, size int) bool {
	for _, traitors := range sets(n, f) {
		for _, s := range sets(n, size) {
			if bits.OnesCount(s&^traitors) == 0 {
				return false
			}
		}
	}
	return true
}
