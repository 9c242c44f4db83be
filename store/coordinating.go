package store

import (
	"cmp"
	"slices"
	"time"
)

// coordinatingCopies is how many sites have each group that only coordinates: it outlives one.
const coordinatingCopies = 3

// Coordinating returns the placement of the groups that only coordinate transactions, for a store
// of so many sites: one for each site, which it has first and leads, and the two others that are
// nearest. trip is the round trip between two sites; nil: the sites are a ring, and those that
// follow are nearest.
func Coordinating(sites int, trip func(a, b int) time.Duration) [][]int {
	var groups [][]int
	for own := range sites {
		group := make([]int, sites)
		for i := range group {
			group[i] = (own + i) % sites
		}
		if trip != nil {
			slices.SortStableFunc(group[1:], func(a, b int) int { return cmp.Compare(trip(own, a), trip(own, b)) })
		}
		groups = append(groups, group[:min(sites, coordinatingCopies)])
	}
	return groups
}

// Names returns the names of sites in place of their numbers, for each group.
func Names[S ~string](sites []S, groups [][]int) (out [][]string) {
	for _, group := range groups {
		var names []string
		for _, i := range group {
			names = append(names, string(sites[i]))
		}
		out = append(out, names)
	}
	return out
}
