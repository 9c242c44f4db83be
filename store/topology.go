package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/foresay/foresay/protocol"
)

// A Topology is a store as its operators see it: sites with machines that share the site's shards.
// IDs follow from it.
type Topology struct {
	// Epoch rises with every change of the rest. Machines of different epochs do not talk to each
	// other.
	Epoch  uint64
	Shards int
	Sites  []TopologySite
	// Placement are the names of the sites that have a copy of each shard, by shard; the first of
	// them leads the shard in the beginning, if the protocol has leaders. nil: all sites have all.
	Placement [][]string
	// Coordinating are likewise the sites of groups that only coordinate transactions, if the protocol
	// has any. They are numbered behind the shards, and are like shards that have no keys.
	Coordinating [][]string
	// Moves are the copies that were moved while the store ran, in the order in which that began. The
	// last one may be under way.
	Moves []Move
}

// Groups returns how many shards there are, those without keys among them.
func (t Topology) Groups() int { return t.Shards + len(t.Coordinating) }

// A TopologySite is a datacentre.
type TopologySite struct {
	Name string
	// Number is the site's for good, 1 to MaxSiteNumber: a site that replaces a lost one has a
	// number of its own.
	Number   int
	Fenced   bool   // see Site.Fenced
	Since    uint64 // the epoch in which it took a lost one's place: see Site.Since
	Machines []Machine
}

// A Machine is a process that runs some of a site's shards, and one of its coordinators.
type Machine struct {
	Name   string // unique within the store
	Peers  string // the address at which other machines find it, and no other; empty where they have means of their own
	Client string // the address at which clients find it, likewise
	Shards []int  // none: the site's shards are dealt to its machines in turn
}

// Limits of a topology. They follow from protocol IDs of members, which are below 1<<16.
const (
	MaxSiteNumber    = 56
	maxTopoShards    = 1024
	maxSiteMachines  = 64
	idsOfSite        = maxTopoShards + 2*maxSiteMachines
	firstCoordinator = maxTopoShards
	firstGate        = maxTopoShards + maxSiteMachines
)

func siteBase(number int) protocol.ID { return protocol.ID((number-1)*idsOfSite + 1) }

// ShardID returns the ID of the site's server of a number: a shard's, unless a copy of one was
// moved to there (Topology.ServerID).
func (s TopologySite) ShardID(number int) protocol.ID {
	return siteBase(s.Number) + protocol.ID(number)
}

// CoordinatorID returns the ID of the coordinator at a site's machine.
func (s TopologySite) CoordinatorID(machine int) protocol.ID {
	return siteBase(s.Number) + firstCoordinator + protocol.ID(machine)
}

// GateID returns the ID of the gate at a site's machine.
func (s TopologySite) GateID(machine int) protocol.ID {
	return siteBase(s.Number) + firstGate + protocol.ID(machine)
}

// Validate returns an error that names what is wrong, or nil.
func (t Topology) Validate() error {
	if t.Shards < 1 || t.Groups() > maxTopoShards {
		return fmt.Errorf("store: %d shards (want 1 to %d)", t.Groups(), maxTopoShards)
	}
	if len(t.Sites) == 0 || len(t.Sites) > MaxSites {
		return fmt.Errorf("store: %d sites (want 1 to %d)", len(t.Sites), MaxSites)
	}
	if err := cmp.Or(t.ValidPlacement(), t.ValidCoordinating()); err != nil {
		return err
	}
	if err := t.ValidMoves(); err != nil {
		return err
	}
	sites, numbers, machines, addresses := map[string]bool{}, map[int]bool{}, map[string]bool{}, map[string]string{}
	for i, s := range t.Sites {
		switch {
		case s.Name == "":
			return fmt.Errorf("store: site %d of %d has no name", i+1, len(t.Sites))
		case sites[s.Name]:
			return fmt.Errorf("store: two sites are called %q", s.Name)
		case s.Number < 1 || s.Number > MaxSiteNumber:
			return fmt.Errorf("store: site %q: its number is %d (want 1 to %d)", s.Name, s.Number, MaxSiteNumber)
		case numbers[s.Number]:
			return fmt.Errorf("store: site %q: the number %d is another site's", s.Name, s.Number)
		case len(s.Machines) == 0 || len(s.Machines) > maxSiteMachines:
			return fmt.Errorf("store: site %q: %d machines (want 1 to %d)", s.Name, len(s.Machines), maxSiteMachines)
		}
		sites[s.Name], numbers[s.Number] = true, true
		owner := map[int]string{}
		for j, m := range s.Machines {
			if m.Name == "" || machines[m.Name] {
				return fmt.Errorf("store: site %q: machine %d: its name %q is empty or used twice", s.Name, j+1, m.Name)
			}
			machines[m.Name] = true
			for _, a := range []string{m.Peers, m.Client} {
				if other, ok := addresses[a]; ok && a != "" && !s.Fenced {
					return fmt.Errorf("store: machine %q: its address %s is one of machine %q too", m.Name, a, other)
				}
				if !s.Fenced { // what is left of a lost site may be others' by now
					addresses[a] = m.Name
				}
			}
			if (len(m.Shards) == 0) != (len(s.Machines[0].Shards) == 0) {
				return fmt.Errorf("store: site %q: either all of its machines list their shards or none does", s.Name)
			}
			for _, k := range m.Shards {
				if k < 0 || k >= t.Groups() {
					return fmt.Errorf("store: machine %q: there is no shard %d (there are %d, from 0 on)", m.Name, k, t.Groups())
				}
				if !t.founded(i, k) {
					return fmt.Errorf("store: machine %q: its site %s has no copy of shard %d, as the placement says", m.Name,
						s.Name, k)
				}
				if o, ok := owner[k]; ok {
					return fmt.Errorf("store: machine %q: shard %d is at machine %q of the site already", m.Name, k, o)
				}
				owner[k] = m.Name
			}
		}
		for k := range t.Groups() {
			if _, ok := owner[k]; !ok && t.founded(i, k) && len(s.Machines[0].Shards) > 0 {
				return fmt.Errorf("store: site %q: no machine has shard %d", s.Name, k)
			}
		}
	}
	return t.layout().Validate()
}

// ValidPlacement returns an error that names the shard and the site that are wrong, or nil.
// Validate looks at the placement too.
func (t Topology) ValidPlacement() error {
	if t.Placement != nil && len(t.Placement) != t.Shards {
		return fmt.Errorf("store: a placement of %d shards (there are %d)", len(t.Placement), t.Shards)
	}
	for k, sites := range t.Placement {
		if err := t.validSites("the placement", k, sites); err != nil {
			return err
		}
	}
	return nil
}

// ValidCoordinating is the same of the groups that only coordinate.
func (t Topology) ValidCoordinating() error {
	for i, sites := range t.Coordinating {
		if err := t.validSites("the list of groups that coordinate", t.Shards+i, sites); err != nil {
			return err
		}
	}
	return nil
}

// validSites returns an error unless what a list says of a shard makes sense.
func (t Topology) validSites(list string, k int, sites []string) error {
	if len(sites) == 0 {
		return fmt.Errorf("store: %s has no site for shard %d", list, k)
	}
	for j, name := range sites {
		switch {
		case t.siteNamed(name) < 0:
			return fmt.Errorf("store: %s has shard %d at %q, which is no site", list, k, name)
		case slices.Contains(sites[:j], name):
			return fmt.Errorf("store: %s has two copies of shard %d at site %s", list, k, name)
		}
	}
	return nil
}

// Ring returns the placement of shards at so many sites each: the one that leads the shard first,
// and those that follow it in the list, which is a ring. leaders are dealt to the shards in turn;
// if there are none, all sites are.
func Ring(sites []string, shards, replicas int, leaders []string) ([][]string, error) {
	if replicas < 1 || replicas > len(sites) {
		return nil, fmt.Errorf("%d replicas of each shard at different sites (there are %d sites)", replicas, len(sites))
	}
	if len(leaders) == 0 {
		leaders = sites
	}
	var out [][]string
	for k := range shards {
		first := slices.Index(sites, leaders[k%len(leaders)])
		if first < 0 {
			return nil, fmt.Errorf("the leader %q is no site (they are %s)", leaders[k%len(leaders)], strings.Join(sites, ", "))
		}
		var at []string
		for j := range replicas {
			at = append(at, sites[(first+j)%len(sites)])
		}
		out = append(out, at)
	}
	return out, nil
}

// siteNamed returns the place of a site, -1 if there is none of the name.
func (t Topology) siteNamed(name string) int {
	return slices.IndexFunc(t.Sites, func(s TopologySite) bool { return s.Name == name })
}

// Has reports whether a site, by its place in the topology, has a copy of a shard, or is getting
// one.
func (t Topology) Has(site, shard int) bool {
	sites, name := t.copies(shard), t.Sites[site].Name
	return sites == nil || slices.Contains(sites, name) || t.Gets(site, shard)
}

// Gets reports whether a shard's copy is being moved to a site.
func (t Topology) Gets(site, shard int) bool {
	m, ok := t.UnderWay()
	return ok && m.Shard == shard && m.To == t.Sites[site].Name
}

// shardsOf returns the shards of a machine of a site, both by their places: of those that were
// there in the beginning its own or, if machines have no lists of their own, its part; and of those
// that came later those whose servers' numbers fall to it. So no server goes from one machine to
// another when the site gets or loses a shard.
func (t Topology) shardsOf(site, machine int) []int {
	machines := t.Sites[site].Machines
	var own []int
	n := 0
	for k := range t.Groups() {
		here := false
		if t.founded(site, k) {
			if here = n%len(machines) == machine; len(machines[machine].Shards) > 0 {
				here = slices.Contains(machines[machine].Shards, k)
			}
			n++
		}
		if number := t.ServerNumber(site, k); number != k {
			here = number%len(machines) == machine
		}
		if here && t.Has(site, k) {
			own = append(own, k)
		}
	}
	return own
}

// ShardsOf returns the shards of a machine of a site, both by their places in the topology.
func (t Topology) ShardsOf(site, machine int) []int {
	return slices.Clone(t.shardsOf(site, machine))
}

// MachineOf returns the place of the machine that has a shard at a site, -1 if none has.
func (t Topology) MachineOf(site, shard int) int {
	for j := range t.Sites[site].Machines {
		if slices.Contains(t.shardsOf(site, j), shard) {
			return j
		}
	}
	return -1
}

// Find returns the places of the site and the machine of that name.
func (t Topology) Find(machine string) (site, at int, ok bool) {
	for i, s := range t.Sites {
		for j, m := range s.Machines {
			if m.Name == machine {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// Layout returns the nodes of a valid topology.
func (t Topology) Layout() (Layout, error) {
	if err := t.Validate(); err != nil {
		return Layout{}, err
	}
	return t.layout(), nil
}

func (t Topology) layout() Layout {
	var l Layout
	for i, s := range t.Sites {
		site := Site{Name: s.Name, Fenced: s.Fenced, Since: s.Since}
		for j := range s.Machines {
			site.Coordinators = append(site.Coordinators, s.CoordinatorID(j))
		}
		for k := range t.Shards {
			id := noServer
			if t.Has(i, k) {
				id = t.ServerID(i, k)
			}
			site.Shards = append(site.Shards, id)
		}
		for k := range t.Groups() {
			if t.Gets(i, k) {
				site.Joins = append(site.Joins, k)
			}
		}
		l.Sites = append(l.Sites, site)
	}
	for _, sites := range t.Placement {
		l.First = append(l.First, t.siteNamed(sites[0]))
	}
	var groups [][]int
	for k := range t.Coordinating {
		var group []int
		for _, name := range t.copies(t.Shards + k) {
			group = append(group, t.siteNamed(name))
		}
		for i := range t.Sites {
			if t.Gets(i, t.Shards+k) {
				group = append(group, i)
			}
		}
		groups = append(groups, group)
	}
	if len(groups) > 0 {
		l = l.Coordinated(groups, func(site, group int) protocol.ID { return t.ServerID(site, t.Shards+group) })
	}
	for k := range t.Groups() {
		var founders []protocol.ID
		for _, name := range t.founding(k) {
			founders = append(founders, t.Sites[t.siteNamed(name)].ShardID(k))
		}
		if len(t.Moves) > 0 && founders != nil {
			l.Founders = append(l.Founders, founders)
		}
	}
	return l
}
