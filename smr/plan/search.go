package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/wan"
)

// A Goal is what a placement is to be good for: the latency of a system that a share of the
// clients' weight does not exceed.
type Goal struct {
	System System
	Until  Moment  // one of the system's
	Share  float64 // 0.5 is the median, 1 the longest
}

// A Placement is where replicas are, and what a Goal's latency is then.
type Placement struct {
	Replicas []wan.Site // if one leads, it is the first
	Latency  time.Duration
}

// Search is a search for the best placement.
type Search struct {
	// Setting has the network and the clients. Its Replicas are not used. If it names a Leader,
	// this site has a replica that leads; otherwise the leader is searched too.
	Setting
	// Among are the sites that replicas can be placed at, one at each; nil is all sites of the
	// network.
	Among []wan.Site
	// Replicas is their number.
	Replicas int
	Goal     Goal
	// Limit bounds how many placements are compared, leaders not counted. 0 is DefaultLimit.
	Limit int
}

// DefaultLimit is how many placements are compared at most: five of thirty sites are 142,506.
const DefaultLimit = 200_000

// Best compares all placements, and returns the best one. Of equal ones it is the one with the
// lowest mean, then that with the lowest means of the other moments, then the first in the order of
// Among. Now and then it tells progress, which may be nil, how many it has
// compared; if that returns an error, the search ends with it.
func (q Search) Best(progress func(done, of int) error) (Placement, error) {
	among := q.Among
	if among == nil {
		among = q.WAN.Sites()
	}
	total, err := q.validate(among)
	if err != nil {
		return Placement{}, err
	}
	c := newComparison(q.Setting, q.Goal)
	done := 0
	sites := make([]wan.Site, q.Replicas)
	for chosen := first(q.Replicas); chosen != nil; chosen = next(chosen, len(among)) {
		for i, k := range chosen {
			sites[i] = among[k]
		}
		c.try(sites)
		if done++; progress != nil && done%1024 == 0 {
			if err := progress(done, total); err != nil {
				return Placement{}, err
			}
		}
	}
	if c.best.Replicas == nil {
		return Placement{}, fmt.Errorf("plan: the leader's site %q is not among those for replicas", q.Leader)
	}
	return c.best, nil
}

// BestLeader returns the setting's placement with the replica first that leads best. If the setting
// names a Leader, it is that.
func BestLeader(s Setting, g Goal) (Placement, error) {
	if err := errors.Join(s.Validate(), g.validate()); err != nil {
		return Placement{}, err
	}
	c := newComparison(s, g)
	c.try(s.Replicas)
	return c.best, nil
}

func (g Goal) validate() error {
	if err := g.System.validate(); err != nil {
		return err
	}
	if !slices.Contains(g.System.Moments(), g.Until) {
		return fmt.Errorf("plan: Goal.Until is %v, of which %s has nothing to say", g.Until, g.System)
	}
	if !(g.Share >= 0 && g.Share <= 1) {
		return fmt.Errorf("plan: Goal.Share is %v, not in [0, 1]", g.Share)
	}
	return nil
}

// validate returns how many placements there are.
func (q Search) validate(among []wan.Site) (int, error) {
	if err := q.Goal.validate(); err != nil {
		return 0, err
	}
	for i, s := range among {
		if slices.Contains(among[:i], s) {
			return 0, fmt.Errorf("plan: Search.Among has %q twice", s)
		}
	}
	if q.Replicas < 1 || q.Replicas > len(among) {
		return 0, fmt.Errorf("plan: %d replicas cannot be placed at %d sites, one at each", q.Replicas, len(among))
	}
	all := q.Setting
	if all.Replicas = among; q.Leader != "" && !slices.Contains(among, q.Leader) {
		return 0, fmt.Errorf("plan: the leader's site %q is not among those for replicas", q.Leader)
	}
	if err := all.Validate(); err != nil {
		return 0, err
	}
	total, limit := combinations(len(among), q.Replicas), cmp.Or(q.Limit, DefaultLimit)
	if total > float64(limit) {
		return 0, fmt.Errorf("plan: there are %.0f ways to place %d replicas at %d sites, more than %d: name fewer sites",
			total, q.Replicas, len(among), limit)
	}
	return int(total), nil
}

// comparison keeps the best placement.
type comparison struct {
	Setting
	net    delays.Network
	goal   Goal
	leader wan.Site // "" if any may lead
	best   Placement
	lowest [2 + maxMoments]time.Duration

	// Of the placement that is tried: what each client predicts by and has, and gets.
	predicted, actual []geometry
	got               [maxMoments]delays.Sample // by the system's moments
}

func newComparison(s Setting, g Goal) *comparison {
	return &comparison{Setting: s, net: delays.Of(s.WAN), goal: g, leader: s.Leader,
		lowest: [2 + maxMoments]time.Duration{math.MaxInt64}}
}

// try compares a placement, with each of its replicas as the leader that may lead.
func (c *comparison) try(sites []wan.Site) {
	if c.leader != "" && !slices.Contains(sites, c.leader) {
		return
	}
	c.Replicas = sites
	c.predicted, c.actual = c.predicted[:0], c.actual[:0]
	for _, client := range c.Clients {
		c.predicted = append(c.predicted, newGeometry(c.net, delays.Expected, sites, client.Site))
		c.actual = append(c.actual, newGeometry(c.net, delays.Least, sites, client.Site))
	}
	for i, leader := range sites {
		if c.leader != "" && leader != c.leader || c.leader == "" && i > 0 && !c.goal.System.Leads() {
			continue
		}
		c.Leader = leader
		value := c.value()
		if slices.Compare(value[:], c.lowest[:]) < 0 {
			c.lowest = value
			c.best = Placement{Latency: value[0], Replicas: []wan.Site{leader}}
			c.best.Replicas = append(c.best.Replicas, slices.Concat(sites[:i], sites[i+1:])...)
		}
	}
}

// value returns what is compared of a placement and its leader.
func (c *comparison) value() (v [2 + maxMoments]time.Duration) {
	moments := c.goal.System.Moments()
	for k := range moments {
		c.got[k] = c.got[k][:0]
	}
	for i, client := range c.Clients {
		o := c.goal.System.outcome(c.Setting, c.predicted[i], c.actual[i])
		for k, m := range moments {
			c.got[k] = append(c.got[k], delays.Weighted{Latency: o.at(m), Weight: client.weight()})
		}
	}
	for k, m := range moments {
		if m == c.goal.Until {
			v[0], v[1] = c.got[k].Quantile(c.goal.Share), c.got[k].Mean()
		} else {
			v[2+k] = c.got[k].Mean()
		}
	}
	return v
}

// first returns the first k numbers, and next the next k numbers below n in order, nil after the
// last ones.
func first(k int) []int {
	chosen := make([]int, k)
	for i := range chosen {
		chosen[i] = i
	}
	return chosen
}

func next(chosen []int, n int) []int {
	k := len(chosen)
	for i := k - 1; i >= 0; i-- {
		if chosen[i] < n-k+i {
			chosen[i]++
			for j := i + 1; j < k; j++ {
				chosen[j] = chosen[j-1] + 1
			}
			return chosen
		}
	}
	return nil
}

// combinations returns how many sets of k of n there are.
func combinations(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return math.Round(c)
}
