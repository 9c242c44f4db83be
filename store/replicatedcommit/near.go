package replicatedcommit

import (
	"cmp"
	"github.com/foresay/foresay/store"
	"slices"
	"time"
)

// probeEvery is how many reads from the nearest sites there are to one that asks all, to see who is
// the nearest by now.
const probeEvery = 128

// nearest returns so many sites whose servers of a shard answer soonest, the first one first, by
// what is known of how long they take; nil if all are to be asked. What more sites than a majority
// say about a read comes too late to count, and costs them as much as the rest.
func (c *client) nearest(shard int, took [][]time.Duration, n int) []int {
	c.nearGets++
	if c.nearGets%probeEvery == 0 {
		return nil
	}
	known := slices.DeleteFunc(c.cfg.Layout.Unfenced(), func(i int) bool { return took[i][shard] == 0 })
	slices.SortStableFunc(known, func(a, b int) int { return cmp.Compare(took[a][shard], took[b][shard]) })
	if len(known) < n {
		return nil
	}
	return known[:n]
}

// home returns the site that is the nearest as far as reads have told, whatever the shard;
// store.NoSite if none has been made.
func (c *client) home() int {
	best, least := store.NoSite, time.Duration(0)
	for _, i := range c.cfg.Layout.Unfenced() {
		for _, near := range c.near[i] {
			if near != 0 && (best == store.NoSite || near < least) {
				best, least = i, near
			}
		}
	}
	return best
}

// measured learns how long a read took. What is sooner counts at once, what is later by and by: it
// may have waited for something else than the network.
func (c *client) measured(p store.Place, took time.Duration) {
	took = max(took, 1)
	if usual := &c.usual[p.Site][p.Index]; *usual == 0 {
		*usual = took
	} else {
		*usual = max(*usual+(took-*usual)/8, 1)
	}
	switch old := c.near[p.Site][p.Index]; {
	case old == 0 || took < old:
		c.near[p.Site][p.Index] = took
	default:
		c.near[p.Site][p.Index] += (min(took, 4*c.cfg.RoundTrip) - old) / 16
	}
}
