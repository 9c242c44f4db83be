package replicatedcommit

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// silence returns for how long a site that is there says nothing at most. Reads tell how long
// answers take that no transaction holds up; where there are none, votes do.
func (c *client) silence() time.Duration {
	answer := c.ReadPatience()
	if c.reading.mean == 0 {
		answer = c.pace.lag(2, c.cfg.RoundTrip)
	}
	return answer + store.SendTime(c.pace.bytes)
}

// sites is a set of places in a layout.
type sites uint16

// all reports whether all sites that take part are in a set.
func (s sites) all(l store.Layout) bool {
	return !slices.ContainsFunc(l.Unfenced(), func(i int) bool { return s&(1<<i) == 0 })
}

// away returns the sites that have been silent for longer than one that is there: as many of them
// as a majority can do without, those that have been silent for longest. More cannot be away, as
// then nothing goes on; so a site that is only slow is not taken for one beside another that is.
func (c *client) away(env *protocol.Env[message]) []int {
	silent := c.cfg.Layout.Unfenced()
	spare := max(len(silent)-c.cfg.Layout.Majority(), 0)
	silent = slices.DeleteFunc(silent, func(i int) bool { return c.silent[i] == 0 || env.Now-c.silent[i] <= c.silence() })
	slices.SortFunc(silent, func(a, b int) int { return cmp.Or(cmp.Compare(c.silent[a], c.silent[b]), cmp.Compare(b, a)) })
	return silent[:min(spare, len(silent))]
}

// firstHealthy returns the site that is asked before others while some site is away, or
// store.NoSite if none is. Two of three that vote differently could not decide then, and would lock
// what others need, so that they could not either. All clients ask the same site first, whose no is
// the end of it, and whose yes keeps others from asking the second.
func (c *client) firstHealthy(env *protocol.Env[message]) int {
	away := c.away(env)
	if len(away) == 0 {
		return store.NoSite
	}
	sites := c.cfg.Layout.Unfenced()
	return sites[slices.IndexFunc(sites, func(i int) bool { return !slices.Contains(away, i) })]
}
