package store

import (
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/foresay/foresay/protocol"
)

// A Site is a datacentre with copies of some of the shards, in many stores of all.
type Site struct {
	Name string
	// Coordinators share the site's transactions: each has those that its place in the list falls
	// to.
	Coordinators []protocol.ID
	// Shards are the site's servers by shard, as many as each site has; 0 where the site has no copy.
	Shards []protocol.ID
	// Fenced says that the site is lost for good, disks and all: it never votes again, and what is
	// not known of its votes counts as no. All nodes of the other sites must be stopped before the
	// first one starts with a layout that says so. What that can lose is for the protocol to say.
	Fenced bool
	// Since is the epoch in which the site took the place of a lost one, for good; 0: it has been
	// there from the beginning. Its servers have IDs of their own and start with empty disks. They
	// copy the store from the others, while it goes on, before they vote or answer reads. All nodes
	// must be stopped before the first one starts with a layout that has a site more which says so.
	Since uint64
	// Joins are shards whose server here waits to be made a member of its group, by Replace.
	Joins []int
}

// A Layout is which nodes there are. All nodes have the same one.
type Layout struct {
	Sites []Site
	// First are the sites at which shards are led in the beginning, by shard, if a protocol has
	// leaders. nil: the protocol spreads them over the sites.
	First []int
	// Keyless is how many of the shards, the last ones, have no keys. Their groups coordinate
	// transactions, in protocols that have such groups (Protocol.Coordinating).
	Keyless int
	// Founders are the servers that made the group of each shard, the one that led it first in front:
	// groups have replaced members since. nil: those that are there now, but for Joins.
	Founders [][]protocol.ID
}

// Limits of a layout.
const (
	MaxSites  = 15
	maxShards = 4096
)

// Validate returns an error that names what is wrong, or nil.
func (l Layout) Validate() error {
	if len(l.Sites) == 0 || len(l.Sites) > MaxSites {
		return fmt.Errorf("store: a layout of %d sites (want 1 to %d)", len(l.Sites), MaxSites)
	}
	if n := len(l.Unfenced()); n < l.Majority() {
		return fmt.Errorf("store: %d of %d sites are not fenced (want %d at least)", n, len(l.Sites), l.Majority())
	}
	used := map[protocol.ID]bool{protocol.App: true}
	names := map[string]bool{}
	for _, s := range l.Sites {
		switch {
		case names[s.Name]:
			return fmt.Errorf("store: two sites are called %q", s.Name)
		case len(s.Coordinators) == 0:
			return fmt.Errorf("store: site %q: no coordinator", s.Name)
		case len(s.Shards) == 0 || len(s.Shards) > maxShards || len(s.Shards) != len(l.Sites[0].Shards):
			return fmt.Errorf("store: site %q: %d shards (want 1 to %d, as many as site %q has)", s.Name, len(s.Shards),
				maxShards, l.Sites[0].Name)
		case l.Keyless < 0 || l.Keyless >= len(s.Shards):
			return fmt.Errorf("store: %d of %d shards have no keys (want fewer)", l.Keyless, len(s.Shards))
		}
		names[s.Name] = true
		for i, ids := range [][]protocol.ID{s.Coordinators, s.Shards} {
			for _, id := range ids {
				if isShard := i == 1; isShard && id == noServer {
					continue
				}
				if used[id] {
					return fmt.Errorf("store: site %q: the ID %d is 0 or used twice", s.Name, id)
				}
				used[id] = true
			}
		}
	}
	return l.validPlaces()
}

// noServer is in the place of a shard's server at a site that has no copy of the shard.
const noServer protocol.ID = 0

// validPlaces returns an error unless each shard has a server, and is led where it has one.
func (l Layout) validPlaces() error {
	shards := len(l.Sites[0].Shards)
	for k := range shards {
		if len(l.HoldersOf(k)) == 0 {
			return fmt.Errorf("store: no site that takes part has shard %d", k)
		}
	}
	if l.Founders != nil && len(l.Founders) != shards {
		return fmt.Errorf("store: a layout whose Founders are of %d groups, for %d shards", len(l.Founders), shards)
	}
	if l.First == nil {
		return nil
	}
	if len(l.First) != shards {
		return fmt.Errorf("store: a layout whose First has %d sites for %d shards", len(l.First), shards)
	}
	for k, i := range l.First {
		if !slices.Contains(l.HoldersOf(k), i) {
			return fmt.Errorf("store: shard %d is led first at site %d, which has no copy of it", k, i)
		}
	}
	return nil
}

// Has reports whether the site has a copy of a shard.
func (s Site) Has(shard int) bool { return s.Shards[shard] != noServer }

// SitesOf returns the sites that take part and have a copy of a shard, in ascending order.
func (l Layout) SitesOf(shard int) []int {
	return slices.DeleteFunc(l.Unfenced(), func(i int) bool { return !l.Sites[i].Has(shard) })
}

// ServersOf returns the servers of a shard, in the order of the sites.
func (l Layout) ServersOf(shard int) []protocol.ID {
	var out []protocol.ID
	for _, i := range l.SitesOf(shard) {
		out = append(out, l.Sites[i].Shards[shard])
	}
	return out
}

// HoldersOf returns those of SitesOf whose servers are members of the shard's group already, as far
// as the layout says: the others may hold nothing yet.
func (l Layout) HoldersOf(shard int) []int {
	return slices.DeleteFunc(l.SitesOf(shard), func(i int) bool { return slices.Contains(l.Sites[i].Joins, shard) })
}

// Whole reports whether each site has a copy of every shard.
func (l Layout) Whole() bool {
	return !slices.ContainsFunc(l.Sites, func(s Site) bool { return slices.Contains(s.Shards, noServer) })
}

// Servers returns the site's servers.
func (s Site) Servers() []protocol.ID {
	return slices.DeleteFunc(slices.Clone(s.Shards), func(id protocol.ID) bool { return id == noServer })
}

// FirstOf returns the site at which a shard is led in the beginning.
func (l Layout) FirstOf(shard int) int {
	if l.First != nil {
		return l.First[shard]
	}
	sites := l.HoldersOf(shard)
	return sites[shard%len(sites)]
}

// ShardOf returns the shard that a key belongs to, at every site.
func (l Layout) ShardOf(key Key) int { return ShardOf(key, len(l.Sites[0].Shards)-l.Keyless) }

// ShardOf returns which of so many shards a key belongs to.
func ShardOf(key Key, shards int) int {
	h := fnv.New64a()
	h.Write([]byte(key)) // which returns no error
	return int(h.Sum64() % uint64(shards))
}

// Split returns the parts of a transaction and the shards that they belong to, in order.
func (l Layout) Split(t Txn) (parts []Txn, shards []uint32) {
	part := func(key Key) *Txn {
		s := uint32(l.ShardOf(key))
		i, ok := slices.BinarySearch(shards, s)
		if !ok {
			shards = slices.Insert(shards, i, s)
			parts = slices.Insert(parts, i, Txn{ID: t.ID, Priority: t.Priority})
		}
		return &parts[i]
	}
	for _, a := range t.Reads {
		p := part(a.Key)
		p.Reads = append(p.Reads, a)
	}
	for _, w := range t.Writes {
		p := part(w.Key)
		p.Writes = append(p.Writes, w)
	}
	return parts, shards
}

// Coordinator returns the node that has a transaction at a site.
func (l Layout) Coordinator(site int, id TxnID) protocol.ID {
	all := l.Sites[site].Coordinators
	return all[(id.Time^uint64(id.Client))%uint64(len(all))]
}

// Majority returns how many sites are enough.
func (l Layout) Majority() int { return len(l.Sites)/2 + 1 }

// Unfenced returns the sites that take part.
func (l Layout) Unfenced() []int {
	var sites []int
	for i, s := range l.Sites {
		if !s.Fenced {
			sites = append(sites, i)
		}
	}
	return sites
}

// Original reports whether all sites have been there from the beginning, and still are.
func (l Layout) Original() bool {
	return !slices.ContainsFunc(l.Sites, func(s Site) bool { return s.Fenced || s.Since > 0 })
}

// A Place is where a node belongs: at which site of a layout, and which of that its coordinators or
// shards it is.
type Place struct{ Site, Index int }

// Places returns the nodes of each kind, without those of fenced sites: nobody listens to them.
// A shard's server is found only at sites that have a copy.
func (l Layout) Places() (shards, coordinators map[protocol.ID]Place) {
	shards, coordinators = map[protocol.ID]Place{}, map[protocol.ID]Place{}
	for _, i := range l.Unfenced() {
		s := l.Sites[i]
		for j, id := range s.Shards {
			if s.Has(j) {
				shards[id] = Place{i, j}
			}
		}
		for j, id := range s.Coordinators {
			coordinators[id] = Place{i, j}
		}
	}
	return shards, coordinators
}

// ValidShards reports whether a list of participating shards makes sense.
func (l Layout) ValidShards(shards []uint32) bool {
	if len(shards) == 0 || len(shards) > len(l.Sites[0].Shards) {
		return false
	}
	for i, s := range shards {
		if int(s) >= len(l.Sites[0].Shards) || i > 0 && s <= shards[i-1] {
			return false
		}
	}
	return true
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
