package storesim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/wan"
)

// ProtocolOf returns what runs as a system of the model: a protocol, or one of its modes; false if
// there is none.
func ProtocolOf(s plan.System) (store.Protocol, bool) {
	name, mode, _ := strings.Cut(string(s), "-")
	p, err := catalog.Store(name)
	if err == nil {
		p, err = p.In(mode)
	}
	return p, err == nil
}

// NodesConfig says which nodes a store has.
type NodesConfig struct {
	System plan.System // see ProtocolOf
	// Protocol, if it has a name, is what runs in place of the System's own.
	Protocol store.Protocol
	// Placement has the sites of each partition, that of its first leader first, as plan.Setting has
	// it. Systems that need a whole copy at each site have that.
	Placement [][]wan.Site
	Agents    int // coordinators at each site; 0 is 1
	// Machines says that a site has as many machines as agents, each with one of them. Of the
	// partitions, each machine has servers of as many in a row as there are sites, and so on in turn.
	// Nodes of a machine share its processor.
	Machines bool
	Clients  []wan.Site // where each client is
	// RoundTrip is what nodes are told of the network: see store.Config.
	RoundTrip time.Duration
	MaxOffset time.Duration // the same
	Readers   int           // the same
	// Sim and Hear are as in storedeploy.Config. WAN has the sites.
	Sim  sim.Config[store.Message]
	Hear func(protocol.ID, store.Message)
}

// Nodes are a store's nodes, and its clients', in the simulator.
type Nodes struct {
	*storedeploy.Store
	Protocol store.Protocol
	Layout   store.Layout

	settling time.Duration
}

// Where the IDs of servers and clients begin.
const (
	firstServer = 1000
	firstClient = 1 << 20
)

// NewNodes returns them at time 0.
func NewNodes(c NodesConfig) (*Nodes, error) {
	p, ok := ProtocolOf(c.System)
	if c.Protocol.Name != "" {
		p, ok = c.Protocol, true
	}
	if !ok {
		return nil, fmt.Errorf("storesim: %q is a model only", c.System)
	}
	c.Agents = max(c.Agents, 1)
	sites := c.Sim.WAN.Sites()
	if n := c.Agents * len(sites); n >= firstServer {
		return nil, fmt.Errorf("storesim: %d agents (want fewer than %d)", n, firstServer)
	}
	n := &Nodes{Protocol: p, Layout: c.layout(p), settling: 5*time.Second + 20*c.RoundTrip}
	if c.Machines {
		machines := machinesOf(n.Layout)
		c.Sim.Machine = func(id protocol.ID) protocol.ID { return cmp.Or(machines[id], id) }
	}
	var err error
	n.Store, err = storedeploy.New(storedeploy.Config{Protocol: p, Layout: n.Layout, Clients: c.Clients,
		FirstClient: firstClient, Sim: c.Sim, Hear: c.Hear,
		Node: func(of *store.Config) { of.RoundTrip, of.MaxOffset, of.Readers = c.RoundTrip, c.MaxOffset, c.Readers }})
	return n, err
}

// machinesOf returns the agent on whose machine each server is.
func machinesOf(l store.Layout) map[protocol.ID]protocol.ID {
	machines := map[protocol.ID]protocol.ID{}
	for _, s := range l.Sites {
		for k, id := range s.Shards {
			machines[id] = s.Coordinators[k/len(l.Sites)%len(s.Coordinators)]
		}
	}
	return machines
}

// Settle lets time pass until leaders are elected, and nodes have measured how far they are from
// each other.
func (n *Nodes) Settle() error { return n.Pass(n.settling) }

// layout has the agents at each site, and the shards where there are partitions.
func (c NodesConfig) layout(p store.Protocol) store.Layout {
	var l store.Layout
	sites := c.Sim.WAN.Sites()
	for i, name := range sites {
		s := store.Site{Name: string(name)}
		for j := range c.Agents {
			s.Coordinators = append(s.Coordinators, protocol.ID(1+j*len(sites)+i))
		}
		for k := range c.Placement {
			s.Shards = append(s.Shards, protocol.ID(firstServer+k*len(sites)+i))
		}
		l.Sites = append(l.Sites, s)
	}
	if !c.System.Whole() {
		at := make([][]int, len(c.Placement))
		for k, copies := range c.Placement {
			for _, name := range copies {
				at[k] = append(at[k], slices.Index(sites, name))
			}
		}
		l = storedeploy.CopiesAt(l, at)
	}
	if !p.Coordinating {
		return l
	}
	groups := store.Coordinating(len(sites), func(a, b int) time.Duration { return c.Sim.WAN.RTT(sites[a], sites[b]) })
	return l.Coordinated(groups, func(site, group int) protocol.ID {
		return protocol.ID(firstServer + (len(c.Placement)+group)*len(sites) + site)
	})
}
