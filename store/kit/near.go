package kit

import (
	"time"

	"github.com/foresay/foresay/store"
)

// Near is how long a client's reads take, by site and shard, when nothing is in the way; 0 is not
// known. By it a client knows which site is the nearest: nobody tells it where it is.
type Near [][]time.Duration

// NewNear returns what a client knows at first.
func NewNear(l store.Layout) Near {
	var n Near
	for range l.Sites {
		n = append(n, make([]time.Duration, len(l.Sites[0].Shards)))
	}
	return n
}

// Answered learns how long a read took. What is sooner counts at once; what is later by and by, and
// most at most: it may have waited for something else than the network.
func (n Near) Answered(p store.Place, took, most time.Duration) {
	took = max(took, 1)
	switch old := n[p.Site][p.Index]; {
	case old == 0 || took < old:
		n[p.Site][p.Index] = took
	default:
		n[p.Site][p.Index] += (min(took, most) - old) / 16
	}
}

// Waited learns that a site has not answered for so long.
func (n Near) Waited(site, shard int, waited time.Duration) {
	n[site][shard] = max(n[site][shard], waited)
}

// Silent learns that a site has not answered for so long, whatever it was asked.
func (n Near) Silent(site int, waited time.Duration) {
	for k := range n[site] {
		n.Waited(site, k, waited)
	}
}

// Site returns which of the sites is the nearest as far as is known, whatever the shard;
// store.NoSite if nothing is.
func (n Near) Site(among []int) int {
	best, least := store.NoSite, time.Duration(0)
	for _, i := range among {
		for _, near := range n[i] {
			if near != 0 && (best == store.NoSite || near < least) {
				best, least = i, near
			}
		}
	}
	return best
}
