package quorum_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
)

func Example() {
	var votes quorum.Votes
	for _, from := range []protocol.ID{1, 3, 1} {
		votes.Add(from)
	}
	fmt.Println(votes.Len(), "votes, enough:", votes.Len() >= quorum.Majority(3))
	fmt.Println("fast quorum of 5:", quorum.Fast(5))
	// Output:
	// 2 votes, enough: true
	// fast quorum of 5: 4
}

// sets returns all sets of size members of n, as bits.
func sets(n, size int) []uint {
	var out []uint
	for s := range uint(1) << n {
		if bits.OnesCount(s) == size {
			out = append(out, s)
		}
	}
	return out
}

// meet tells, by trying all, whether any sets of the sizes share a member.
func meet(n int, common uint, sizes []int) bool {
	if len(sizes) == 0 {
		return common != 0
	}
	return !slices.ContainsFunc(sets(n, sizes[0]), func(s uint) bool { return !meet(n, common&s, sizes[1:]) })
}

func TestIntersectIsExact(t *testing.T) {
	for n := 1; n <= 6; n++ {
		for a := 1; a <= n; a++ {
			for b := 1; b <= n; b++ {
				if got, want := quorum.Intersect(n, a, b), meet(n, 1<<n-1, []int{a, b}); got != want {
					t.Errorf("Intersect(%d, %d, %d) = %v, want %v", n, a, b, got, want)
				}
				for c := 1; c <= n; c++ {
					if got, want := quorum.Intersect(n, a, b, c), meet(n, 1<<n-1, []int{a, b, c}); got != want {
						t.Errorf("Intersect(%d, %d, %d, %d) = %v, want %v", n, a, b, c, got, want)
					}
				}
			}
		}
	}
	if quorum.Intersect(3) || quorum.Intersect(3, 4, 4) {
		t.Error("no sets, or sets larger than the group, intersect")
	}
}

func TestSizesAreTheSmallest(t *testing.T) {
	for n := 1; n <= 9; n++ {
		m, f := quorum.Majority(n), quorum.Fast(n)
		if !quorum.Intersect(n, m, m) || quorum.Intersect(n, m-1, m-1) {
			t.Errorf("n = %d: majority %d is not the smallest", n, m)
		}
		if !quorum.Intersect(n, f, f, m) || quorum.Intersect(n, f-1, f-1, m) {
			t.Errorf("n = %d: fast quorum %d is not the smallest", n, f)
		}
		if quorum.Tolerated(n)+m != n {
			t.Errorf("n = %d: %d tolerated failures leave no majority of %d", n, quorum.Tolerated(n), m)
		}
	}
}

// TestOwnedSlots has the sizes that a model checker found to be safe for slots with two possible
// values.
func TestOwnedSlots(t *testing.T) {
	safe := map[int][][2]int{
		3: {{2, 3}, {3, 2}, {3, 3}},
		5: {{3, 5}, {4, 4}, {5, 3}, {4, 5}, {5, 4}, {5, 5}},
	}
	for n, want := range safe {
		f := quorum.Tolerated(n)
		for command := f + 1; command <= n; command++ {
			for noOp := f + 1; noOp <= n; noOp++ {
				got := quorum.Intersect(n, command, noOp, n-f)
				if got != slices.Contains(want, [2]int{command, noOp}) {
					t.Errorf("n = %d: command %d, no-op %d: %v", n, command, noOp, got)
				}
			}
		}
	}
}

func TestVotes(t *testing.T) {
	var v quorum.Votes
	if !v.Add(5) || !v.Add(2) || v.Add(5) {
		t.Error("Add does not tell first votes from others")
	}
	if v.Len() != 2 || !v.Has(2) || v.Has(3) || v.Among([]protocol.ID{2, 3, 4}) != 1 {
		t.Errorf("votes of 5 and 2: %+v", v)
	}
	v.Reset()
	if v.Len() != 0 || v.Has(2) {
		t.Error("votes are left after Reset")
	}
}

func TestKthLargest(t *testing.T) {
	for _, c := range []struct {
		values []uint64
		k      int
		want   uint64
	}{
		{[]uint64{7, 9, 4}, 2, 7},
		{[]uint64{7, 9, 4}, 1, 9},
		{[]uint64{7, 9, 4, 9}, 3, 7},
		{[]uint64{7}, 2, 0},
		{[]uint64{7}, 0, 0},
	} {
		if got := quorum.KthLargest(slices.Clone(c.values), c.k); got != c.want {
			t.Errorf("KthLargest(%v, %d) = %d, want %d", c.values, c.k, got, c.want)
		}
	}
}

// TestWeightedMajorities tries all pairs of disjoint sets of voters.
func TestWeightedMajorities(t *testing.T) {
	w := quorum.Weights{{1, 3}, {2, 1}, {3, 1}, {4, 2}, {5, 0}}
	votes := func(set uint) *quorum.Votes {
		var v quorum.Votes
		for i, m := range w {
			if set>>i&1 == 1 {
				v.Add(m.ID)
			}
		}
		return &v
	}
	all := uint(1)<<len(w) - 1
	majorities := 0
	for a := range all + 1 {
		if w.Majority(votes(a)) {
			majorities++
			if w.Majority(votes(all &^ a)) {
				t.Errorf("both %05b and the others are majorities", a)
			}
		}
	}
	// The weights add up to 7, which is odd: of each pair of complements one is a majority.
	if majorities != 16 {
		t.Errorf("%d majorities of 32 sets, want 16", majorities)
	}
}

// TestFirstDiskIsExact tries all sets: those that said yes to the first disk, those of them
// that lost their own disks since, and those that are asked by the second disk. For each size of a
// group the number is the smallest with which somebody always knows.
func TestFirstDiskIsExact(t *testing.T) {
	for n := 2; n <= 7; n++ {
		k := quorum.FirstDisk(n)
		if k > n-1 {
			t.Errorf("n = %d: %d are needed of %d others", n, k, n-1)
		}
		if !alwaysKnown(n, k) {
			t.Errorf("n = %d: two disks can both hear yes from %d others", n, k)
		}
		if k > 1 && alwaysKnown(n, k-1) {
			t.Errorf("n = %d: %d others are more than needed", n, k)
		}
	}
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 7: 5} {
		if got := quorum.FirstDisk(n); got != want {
			t.Errorf("n = %d: %d, want %d", n, got, want)
		}
	}
}

func alwaysKnown(n, k int) bool {
	others := uint(1)<<(n-1) - 1
	lost := max((n-1)/2-1, 0) // with the own that is what the group tolerates
	for yes := uint(0); yes <= others; yes++ {
		for forgot := uint(0); forgot <= others; forgot++ {
			for asked := uint(0); asked <= others; asked++ {
				if bits.OnesCount(yes) == k && bits.OnesCount(forgot) <= lost && bits.OnesCount(asked) == k &&
					yes&^forgot&asked == 0 {
					return false
				}
			}
		}
	}
	return true
}
