package replicatedcommit

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Message is what nodes send and applications exchange with them: one of the types of this package.
type Message any

// A Site is a datacentre with a whole copy of the store.
type Site struct {
	Name string
	// Coordinators share the site's transactions: each has those that its place in the list falls
	// to.
	Coordinators []protocol.ID
	// Shards are the site's servers, as many as each site has.
	Shards []protocol.ID
	// Fenced says that the site is lost for good, disks and all: it never votes again, and what is
	// not known of its votes counts as no. All nodes of the other sites must be stopped before the
	// first one starts with a layout that says so. See DESIGN.md for what that can lose.
	Fenced bool
	// Since is the epoch in which the site took the place of a lost one, for good; 0: it has been
	// there from the beginning. Its servers have IDs of their own and start with empty disks. They
	// copy the store from the others, while it goes on, before they vote or answer reads. All nodes
	// must be stopped before the first one starts with a layout that has a site more which says so.
	Since uint64
}

// A Layout is which nodes there are. All nodes have the same one.
type Layout struct{ Sites []Site }

// Limits of a layout.
const (
	maxSites  = 15
	maxShards = 4096
)

// Validate returns an error that names what is wrong, or nil.
func (l Layout) Validate() error {
	if len(l.Sites) == 0 || len(l.Sites) > maxSites {
		return fmt.Errorf("replicatedcommit: a layout of %d sites (want 1 to %d)", len(l.Sites), maxSites)
	}
	if n := len(l.unfenced()); n < l.majority() {
		return fmt.Errorf("replicatedcommit: %d of %d sites are not fenced (want %d at least)", n, len(l.Sites), l.majority())
	}
	used := map[protocol.ID]bool{protocol.App: true}
	names := map[string]bool{}
	for _, s := range l.Sites {
		switch {
		case names[s.Name]:
			return fmt.Errorf("replicatedcommit: two sites are called %q", s.Name)
		case len(s.Coordinators) == 0:
			return fmt.Errorf("replicatedcommit: site %q: no coordinator", s.Name)
		case len(s.Shards) == 0 || len(s.Shards) > maxShards || len(s.Shards) != len(l.Sites[0].Shards):
			return fmt.Errorf("replicatedcommit: site %q: %d shards (want 1 to %d, as many as site %q has)", s.Name, len(s.Shards), maxShards, l.Sites[0].Name)
		}
		names[s.Name] = true
		for _, ids := range [][]protocol.ID{s.Coordinators, s.Shards} {
			for _, id := range ids {
				if used[id] {
					return fmt.Errorf("replicatedcommit: site %q: the ID %d is 0 or used twice", s.Name, id)
				}
				used[id] = true
			}
		}
	}
	return nil
}

// shardOf returns the shard that a key belongs to, at every site.
func (l Layout) shardOf(key store.Key) int {
	h := fnv.New64a()
	h.Write([]byte(key)) // which returns no error
	return int(h.Sum64() % uint64(len(l.Sites[0].Shards)))
}

// coordinator returns the node that has a transaction at a site.
func (l Layout) coordinator(site int, id store.TxnID) protocol.ID {
	all := l.Sites[site].Coordinators
	return all[(id.Time^uint64(id.Client))%uint64(len(all))]
}

// majority returns how many sites are enough.
func (l Layout) majority() int { return len(l.Sites)/2 + 1 }

// unfenced returns the sites that take part.
func (l Layout) unfenced() []int {
	var sites []int
	for i, s := range l.Sites {
		if !s.Fenced {
			sites = append(sites, i)
		}
	}
	return sites
}

// place is where a node belongs.
type place struct{ site, index int }

// places returns the nodes of each kind, without those of fenced sites: nobody listens to them.
func (l Layout) places() (shards, coordinators map[protocol.ID]place) {
	shards, coordinators = map[protocol.ID]place{}, map[protocol.ID]place{}
	for _, i := range l.unfenced() {
		s := l.Sites[i]
		for j, id := range s.Shards {
			shards[id] = place{i, j}
		}
		for j, id := range s.Coordinators {
			coordinators[id] = place{i, j}
		}
	}
	return shards, coordinators
}

// Config is what a node is made from. Zero fields have the defaults that they name.
type Config struct {
	ID     protocol.ID
	Layout Layout
	// Epoch rises with each change of the layout. A server that has seen a later one refuses to
	// start. 0 is the first.
	Epoch uint64
	// RoundTrip is between the sites that are farthest from each other; 0 is 250 ms. Timeouts are
	// multiples of it.
	RoundTrip time.Duration
	// Retain is how long decided transactions are remembered for clients that ask; 0 is a minute. A
	// transaction that comes to a site later than this is not accepted.
	Retain time.Duration
	// MaxAhead bounds how far a transaction's version, or a priority, may be ahead of a server's
	// clock; 0 is a minute.
	MaxAhead time.Duration
	// MaxTxns bounds the transactions that a server or a coordinator remembers; 0 is a million. A
	// server that has as many forgets those that are carried out everywhere before their time, and
	// if there are none takes no new ones: their clients are told that it is Overloaded.
	MaxTxns int
	// MaxWaiting bounds the reads of a server that wait for locked keys, its reservations, the
	// votes that it holds back, and the calls of a client; 0 is 10000 of each.
	MaxWaiting int

	// Retired has a server vote for nothing new from its start on: see Retire.
	Retired bool

	page    int                          // how many entries a page has at most; 0 is maxPageEntries
	applied func(store.Key, store.Value) // tells a test what is applied; nil: nobody
}

func (c Config) withDefaults() (Config, error) {
	if err := c.Layout.Validate(); err != nil {
		return c, err
	}
	if err := c.validSince(); err != nil {
		return c, err
	}
	switch {
	case c.ID == protocol.App:
		return c, fmt.Errorf("replicatedcommit: Config.ID is 0")
	case c.RoundTrip < 0 || c.Retain < 0 || c.MaxAhead < 0:
		return c, fmt.Errorf("replicatedcommit: Config.RoundTrip, Retain or MaxAhead of %v, %v, %v is negative", c.RoundTrip, c.Retain, c.MaxAhead)
	case c.MaxTxns < 0 || c.MaxWaiting < 0:
		return c, fmt.Errorf("replicatedcommit: Config.MaxTxns or MaxWaiting of %d, %d is negative", c.MaxTxns, c.MaxWaiting)
	}
	c.RoundTrip = cmp.Or(c.RoundTrip, 250*time.Millisecond)
	c.Retain = cmp.Or(c.Retain, time.Minute)
	c.MaxAhead = cmp.Or(c.MaxAhead, time.Minute)
	c.MaxTxns = cmp.Or(c.MaxTxns, 1_000_000)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, 10_000)
	c.page = cmp.Or(c.page, maxPageEntries)
	return c, nil
}

// isNew tells whether a site took the place of a lost one in this epoch.
func (c Config) isNew(site int) bool {
	since := c.Layout.Sites[site].Since
	return since > 0 && since == c.Epoch
}

// validSince returns an error unless there is enough to copy from for sites that are new.
func (c Config) validSince() error {
	old := 0
	for i, s := range c.Layout.Sites {
		if s.Since > c.Epoch {
			return fmt.Errorf("replicatedcommit: site %q is of epoch %d, and Config.Epoch is %d", s.Name, s.Since, c.Epoch)
		}
		if !s.Fenced && !c.isNew(i) {
			old++
		}
	}
	if want := neededSources(c.Layout); old < want {
		return fmt.Errorf("replicatedcommit: %d of %d sites are neither fenced nor new in epoch %d (want %d at least)", old, len(c.Layout.Sites), c.Epoch, want)
	}
	return nil
}

// validShards tells whether a list of participating shards makes sense.
func (l Layout) validShards(shards []uint32) bool {
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
