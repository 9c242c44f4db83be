package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
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

// Coordinated returns the layout with shards without keys for these groups, which are as
// Coordinating has them. id names the server of one of them at a site.
func (l Layout) Coordinated(groups [][]int, id func(site, group int) protocol.ID) Layout {
	shards := len(l.Sites[0].Shards)
	first := make([]int, 0, shards+len(groups))
	for k := range shards {
		first = append(first, l.FirstOf(k))
	}
	sites := slices.Clone(l.Sites)
	for i := range sites {
		sites[i].Shards = slices.Clone(sites[i].Shards)
		for j, group := range groups {
			server := noServer
			if slices.Contains(group, i) {
				server = id(i, j)
			}
			sites[i].Shards = append(sites[i].Shards, server)
		}
	}
	for _, group := range groups {
		first = append(first, group[0])
	}
	return Layout{Sites: sites, First: first, Keyless: l.Keyless + len(groups)}
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
