package replicatedcommit

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/store"
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

// measured learns how long a read took.
func (c *client) measured(p store.Place, took time.Duration) {
	took = max(took, 1)
	if usual := &c.usual[p.Site][p.Index]; *usual == 0 {
		*usual = took
	} else {
		*usual = max(*usual+(took-*usual)/8, 1)
	}
	c.near.Answered(p, took, 4*c.cfg.RoundTrip)
}
