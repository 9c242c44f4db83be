package plan

import (
	"iter"
	"slices"

	"github.com/foresay/foresay/wan"
)

// Balanced returns all placements of as many partitions as there are sites in which each site leads
// the partition of its number, and has three copies, as the thesis' ring does [Carousel §3.4.1]. Of
// five sites there are 216. It takes three sites.
func Balanced(sites []wan.Site) iter.Seq[[][]wan.Site] {
	return func(yield func([][]wan.Site) bool) {
		p, follows := make([][]wan.Site, len(sites)), map[wan.Site]int{}
		var place func(k int) bool
		place = func(k int) bool {
			if k == len(sites) {
				return yield(slices.Clone(p))
			}
			for i, a := range sites {
				for _, b := range sites[i+1:] {
					if a == sites[k] || b == sites[k] || follows[a] == 2 || follows[b] == 2 {
						continue
					}
					follows[a]++
					follows[b]++
					p[k] = []wan.Site{sites[k], a, b}
					if !place(k + 1) {
						return false
					}
					follows[a]--
					follows[b]--
				}
			}
			return true
		}
		place(0)
	}
}
