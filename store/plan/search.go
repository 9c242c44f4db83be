package plan

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/wan"
)

// A Measure is one of the latencies of a Row.
type Measure string

// The measures.
const (
	Mean   Measure = "mean"
	Median Measure = "p50"
	P95    Measure = "p95"
	Worst  Measure = "worst"
)

// Measures returns all measures.
func Measures() []Measure { return []Measure{Mean, Median, P95, Worst} }

// Of returns one of the row's latencies.
func (r Row) Of(m Measure) time.Duration {
	switch m {
	case Median:
		return r.Median
	case P95:
		return r.P95
	case Worst:
		return r.Worst
	}
	return r.Mean
}

// A Goal is what a placement is to be good for.
type Goal struct {
	System  System
	Class   Class
	Measure Measure
}

// A Search is a search for the best placement among the balanced ones: no site has more than its
// part of the copies, nor leads more than its part of the partitions, rounded up.
type Search struct {
	// Setting has the network, the clients and the load. Its Placement has as many partitions as are
	// to be placed, each with as many copies, and is where the search begins.
	Setting
	// Among are the sites that copies can be placed at; nil is all sites of the network.
	Among []wan.Site
	Goal  Goal
	// Starts is how many times the search begins anew, the first time at the setting's placement and
	// then at random ones; 0 is DefaultStarts.
	Starts int
}

// DefaultStarts is how often a search begins.
const DefaultStarts = 4

// searchTxns is how many transactions of each client a search looks at.
const searchTxns = 300

// A Found is the best placement of a search, and what the goal's latency is there, of as many
// transactions as the search's setting says.
type Found struct {
	Placement [][]wan.Site
	Latency   time.Duration
}

// Best improves placements step by step, until no single step makes one better: another leader, a
// copy at another site, two copies that change places. So it is the best of its neighbours, and not
// always the best of all. Now and then it tells progress, which may be nil, how many starts are
// done; if that returns an error, the search ends with it.
func (q Search) Best(progress func(done, of int) error) (Found, error) {
	if err := q.Validate(); err != nil {
		return Found{}, err
	}
	if err := q.Goal.System.validate(); err != nil {
		return Found{}, err
	}
	if !slices.Contains(Classes(), q.Goal.Class) || !slices.Contains(Measures(), q.Goal.Measure) {
		return Found{}, fmt.Errorf("plan: there is no class %q, or no measure %q", q.Goal.Class, q.Goal.Measure)
	}
	if q.Among == nil {
		q.Among = q.WAN.Sites()
	}
	c := climb{Search: q}
	if err := c.bound(); err != nil {
		return Found{}, err
	}
	c.Load.Txns = searchTxns
	c.draws = c.draw()
	starts := cmp.Or(q.Starts, DefaultStarts)
	for n := range starts {
		start := clonePlacement(q.Placement)
		if n > 0 || !c.balanced(start) {
			start = c.random(rand.New(rand.NewPCG(q.Load.Seed, uint64(n))))
		}
		if err := c.climb(start, func() error {
			if progress == nil {
				return nil
			}
			return progress(n, starts)
		}); err != nil {
			return Found{}, err
		}
	}
	c.Load.Txns = q.Load.Txns
	c.draws = c.draw()
	return Found{c.best, c.value(c.best)[0]}, nil
}

// climb is a search under way.
type climb struct {
	Search
	draws          [][]draw
	copies         int // of each partition
	most, mostLead int // copies at a site, partitions led there
	best           [][]wan.Site
	lowest         [2]time.Duration
}

// bound computes what a site may have.
func (c *climb) bound() error {
	c.copies = len(c.Placement[0])
	for k, at := range c.Placement {
		if len(at) != c.copies {
			return fmt.Errorf("plan: partition %d has %d copies and partition 0 has %d: a search wants as many of each", k,
				len(at), c.copies)
		}
	}
	if c.copies > len(c.Among) {
		return fmt.Errorf("plan: %d copies cannot be placed at %d sites, one at each", c.copies, len(c.Among))
	}
	c.most = (len(c.Placement)*c.copies + len(c.Among) - 1) / len(c.Among)
	c.mostLead = (len(c.Placement) + len(c.Among) - 1) / len(c.Among)
	return nil
}

// balanced reports whether a placement is one of those that are searched.
func (c *climb) balanced(p [][]wan.Site) bool {
	copies, leads := map[wan.Site]int{}, map[wan.Site]int{}
	for _, at := range p {
		leads[at[0]]++
		for i, s := range at {
			if copies[s]++; !slices.Contains(c.Among, s) || slices.Contains(at[:i], s) || copies[s] > c.most {
				return false
			}
		}
		if leads[at[0]] > c.mostLead {
			return false
		}
	}
	return true
}

// random returns a balanced placement: sites in a random order, dealt in turn.
func (c *climb) random(r *rand.Rand) [][]wan.Site {
	sites := slices.Clone(c.Among)
	r.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	var p [][]wan.Site
	for k := range c.Placement {
		var at []wan.Site
		for i := range c.copies {
			at = append(at, sites[(k+i)%len(sites)])
		}
		p = append(p, at)
	}
	return p
}

// value is what is compared of a placement: the goal, and of equal ones the mean.
func (c *climb) value(p [][]wan.Site) [2]time.Duration {
	s := c.Setting
	s.Placement = p
	for _, r := range newModel(s, c.Goal.System).rows(c.draws) {
		if r.Client != "" || r.Class != c.Goal.Class {
			continue
		}
		if r.Blocked > 0 {
			break
		}
		return [2]time.Duration{r.Of(c.Goal.Measure), r.Mean}
	}
	return [2]time.Duration{math.MaxInt64, math.MaxInt64}
}

// climb goes from a placement to the first of its neighbours that is better, and on from there.
func (c *climb) climb(p [][]wan.Site, step func() error) error {
	value := c.value(p)
	for {
		if err := step(); err != nil {
			return err
		}
		var better [][]wan.Site
		for next := range c.neighbours(p) {
			if v := c.value(next); slices.Compare(v[:], value[:]) < 0 {
				better, value = clonePlacement(next), v
				break
			}
		}
		if better == nil {
			break
		}
		p = better
	}
	if c.best == nil || slices.Compare(value[:], c.lowest[:]) < 0 {
		c.best, c.lowest = p, value
	}
	return nil
}

func clonePlacement(p [][]wan.Site) [][]wan.Site {
	var out [][]wan.Site
	for _, at := range p {
		out = append(out, slices.Clone(at))
	}
	return out
}
