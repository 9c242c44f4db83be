package quorum

import (
	"slices"

	"github.com/foresay/foresay/protocol"
)

// Majority returns the smallest number of n members of which any two sets share one: f+1 of 2f+1.
func Majority(n int) int { return n/2 + 1 }

// Tolerated returns how many of n members may fail so that a majority is left.
func Tolerated(n int) int { return n - Majority(n) }

// Fast returns the size of the smallest fast quorum of n members: any two of them and a majority
// share a member (Fast Paxos, §2.2 and §4). It is ⌈3f/2⌉+1 of 2f+1: 3 of 3, 4 of 5.
func Fast(n int) int { return (2*n-Majority(n))/2 + 1 }

// Intersect reports whether any sets of n members that have these sizes share a member. A set
// cannot be larger than n.
//
// Two examples. A fast protocol is safe if Intersect(n, fast, fast, classic). A slot that has only
// two possible values, with a quorum size for each, is safe if Intersect(n, command, noOp,
// classic): whoever recovers it from a classic quorum cannot take one for the other.
func Intersect(n int, sizes ...int) bool {
	sum := 0
	for _, s := range sizes {
		if s > n {
			return false
		}
		sum += s
	}
	return len(sizes) > 0 && sum > (len(sizes)-1)*n
}

// Votes is a set of members that have said the same. The zero value is empty.
type Votes struct {
	by []protocol.ID // in order
}

// Add notes a vote, and reports whether it is the member's first.
func (v *Votes) Add(id protocol.ID) bool {
	i, found := slices.BinarySearch(v.by, id)
	if !found {
		v.by = slices.Insert(v.by, i, id)
	}
	return !found
}

// Has reports whether a member has voted.
func (v *Votes) Has(id protocol.ID) bool {
	_, found := slices.BinarySearch(v.by, id)
	return found
}

// Len returns the number of members that have voted.
func (v *Votes) Len() int { return len(v.by) }

// Among returns how many of the given members have voted.
func (v *Votes) Among(members []protocol.ID) int {
	n := 0
	for _, id := range members {
		if v.Has(id) {
			n++
		}
	}
	return n
}

// Reset forgets all votes.
func (v *Votes) Reset() { v.by = v.by[:0] }

// KthLargest returns the greatest value that at least k of the members have reached, each of which
// has come as far as its value says; the zero value if there are fewer than k. It changes the order
// of the values.
func KthLargest[T ~uint64](values []T, k int) T {
	var none T
	if k < 1 || k > len(values) {
		return none
	}
	slices.Sort(values)
	return values[len(values)-k]
}

// Weights gives members votes that count for more or less than others.
type Weights []Weight

// Weight is what a member's vote counts for.
type Weight struct {
	ID     protocol.ID
	Weight uint32
}

// Majority reports whether the voters have more than half of the weight, so that any two such sets
// share a member.
func (w Weights) Majority(v *Votes) bool {
	var all, have uint64
	for _, m := range w {
		all += uint64(m.Weight)
		if v.Has(m.ID) {
			have += uint64(m.Weight)
		}
	}
	return 2*have > all
}

// FirstDisk returns how many of the n-1 other members of a group must say that they know no other
// disk of a member's, if each says so of one disk for good: then no two disks of one member hear it
// from as many.
//
// With f = (n-1)/2 lost disks at once, the member's own is one, and f-1 others may have forgotten:
// the k that said yes to the earlier disk, less f-1, and the k that say yes now must share a
// member, so 2k-(f-1) > n-1. For n = 3 and 5 that is f+1. A group of one has nobody to ask.
func FirstDisk(n int) int {
	if n <= 1 {
		return 0
	}
	f := (n - 1) / 2
	return (n-1+max(f-1, 0))/2 + 1
}
