package store

import (
	"fmt"
	"slices"

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
}

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

// ShardID returns the ID of a site's server of a shard.
func (s TopologySite) ShardID(shard int) protocol.ID {
	return siteBase(s.Number) + protocol.ID(shard)
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
	if t.Shards < 1 || t.Shards > maxTopoShards {
		return fmt.Errorf("store: %d shards (want 1 to %d)", t.Shards, maxTopoShards)
	}
	if len(t.Sites) == 0 || len(t.Sites) > MaxSites {
		return fmt.Errorf("store: %d sites (want 1 to %d)", len(t.Sites), MaxSites)
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
			for _, k := range s.shardsOf(j, t.Shards) {
				if k < 0 || k >= t.Shards {
					return fmt.Errorf("store: machine %q: there is no shard %d (there are %d, from 0 on)", m.Name, k, t.Shards)
				}
				if o, ok := owner[k]; ok {
					return fmt.Errorf("store: machine %q: shard %d is at machine %q of the site already", m.Name, k, o)
				}
				owner[k] = m.Name
			}
		}
		for k := range t.Shards {
			if _, ok := owner[k]; !ok {
				return fmt.Errorf("store: site %q: no machine has shard %d", s.Name, k)
			}
		}
	}
	return t.layout().Validate()
}

// shardsOf returns the shards of a machine.
func (s TopologySite) shardsOf(machine, shards int) []int {
	if len(s.Machines[machine].Shards) > 0 {
		return s.Machines[machine].Shards
	}
	var own []int
	for k := machine; k < shards; k += len(s.Machines) {
		own = append(own, k)
	}
	return own
}

// ShardsOf returns the shards of a machine of a site, both by their places in the topology.
func (t Topology) ShardsOf(site, machine int) []int {
	return slices.Clone(t.Sites[site].shardsOf(machine, t.Shards))
}

// MachineOf returns the place of the machine that has a shard at a site, -1 if none has.
func (t Topology) MachineOf(site, shard int) int {
	for j := range t.Sites[site].Machines {
		if slices.Contains(t.Sites[site].shardsOf(j, t.Shards), shard) {
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
	for _, s := range t.Sites {
		site := Site{Name: s.Name, Fenced: s.Fenced, Since: s.Since}
		for j := range s.Machines {
			site.Coordinators = append(site.Coordinators, s.CoordinatorID(j))
		}
		for k := range t.Shards {
			site.Shards = append(site.Shards, s.ShardID(k))
		}
		l.Sites = append(l.Sites, site)
	}
	return l
}
