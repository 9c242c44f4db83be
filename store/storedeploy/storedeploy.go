package storedeploy

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/wan"
)

// Config is what a store is made from. Protocol, Layout and Sim.WAN are needed.
type Config struct {
	Protocol store.Protocol
	// Layout has its sites in the order of the network's.
	Layout store.Layout
	// Clients are the sites of the clients.
	Clients []wan.Site
	// FirstClient is the ID of the first client. 0 is FirstClient.
	FirstClient protocol.ID
	// Node completes a node's configuration, for each of its incarnations and once before. nil: it
	// has an ID and the layout only.
	Node func(*store.Config)
	// Sim is the simulation's. Its codec is the protocol's. Its App gets what is neither an answer nor
	// a server's status or refusal.
	Sim sim.Config[store.Message]
	// Hear gets all that nodes say to their applications. nil: it is as Sim.App says, and a refusal
	// ends the run.
	Hear func(protocol.ID, store.Message)
	// Wrap puts something around each node. nil: nothing.
	Wrap func(protocol.ID, protocol.Node[store.Message]) protocol.Node[store.Message]
}

// FirstClient is the ID of the first client unless a Config says otherwise. The second one's
// follows.
const FirstClient = protocol.ID(200)

// A Store is a running store with its clients.
type Store struct {
	*deploy.Deployment[store.Message]
	Clients []protocol.ID // in the order of Config.Clients
	// Status is what servers said last of themselves.
	Status map[protocol.ID]store.ServerStatus

	config Config
}

// New returns a store at time 0.
func New(c Config) (*Store, error) {
	s := &Store{Status: map[protocol.ID]store.ServerStatus{}, config: c}
	if c.FirstClient == 0 {
		c.FirstClient = FirstClient
	}
	of := deploy.Config[store.Message]{Sim: c.Sim, Answers: answers, Wrap: c.Wrap}
	of.Sim.Codec, of.Sim.App = c.Protocol.Codec, s.app
	if c.Hear != nil {
		of.Sim.App, of.Answers = c.Hear, nil
	}
	var err error
	if s.Deployment, err = deploy.New(of); err != nil {
		return nil, err
	}
	sites := c.Sim.WAN.Sites()
	for i, site := range c.Layout.Sites {
		for _, id := range Nodes(c.Protocol, site) {
			if err := s.AddNode(id, sites[i]); err != nil {
				return nil, err
			}
		}
	}
	for i, site := range c.Clients {
		id := c.FirstClient + protocol.ID(i)
		s.Clients = append(s.Clients, id)
		if err := s.AddNode(id, site); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Nodes returns the coordinators and servers that a protocol has at a site.
func Nodes(p store.Protocol, at store.Site) []protocol.ID {
	var coordinators []protocol.ID
	if p.NewCoordinator != nil {
		coordinators = at.Coordinators
	}
	return slices.Concat(coordinators, at.Servers())
}

// AddNode puts a node in. What it is its layout says: what it does not name is a client.
func (s *Store) AddNode(id protocol.ID, site wan.Site) error {
	return s.Add(id, site, func() (protocol.Node[store.Message], error) {
		p, c := s.config.Protocol, store.Config{ID: id, Layout: s.config.Layout}
		if s.config.Node != nil {
			s.config.Node(&c)
		}
		shards, coordinators := c.Layout.Places()
		if _, ok := shards[id]; ok {
			return p.NewServer(c)
		}
		if _, ok := coordinators[id]; ok {
			return p.NewCoordinator(c)
		}
		return p.NewClient(c)
	})
}

// answers tells which call a message to an application ends.
func answers(msg store.Message) (uint64, bool) {
	switch m := msg.(type) {
	case store.Got:
		return m.Ref, true
	case store.Done:
		return m.Ref, true
	case store.Declared:
		return m.Ref, true
	}
	return 0, false
}

func (s *Store) app(from protocol.ID, msg store.Message) {
	switch m := msg.(type) {
	case store.ServerStatus:
		s.Status[from] = m
	case store.Refused:
		s.Fail("server %d is refused: %s", from, m.Reason)
	default:
		if s.config.Sim.App != nil {
			s.config.Sim.App(from, msg)
		}
	}
}

// Statuses asks the servers of a layout that are up how they are, lets what they send to themselves
// arrive, and returns who they are, in the layout's order.
func (s *Store) Statuses() ([]protocol.ID, error) {
	clear(s.Status)
	var up []protocol.ID
	for _, site := range s.config.Layout.Sites {
		for _, id := range site.Servers() {
			if s.Up(id) {
				up = append(up, id)
				s.Deliver(id, store.StatusQuery{})
			}
		}
	}
	return up, s.Pass(0)
}

// Layout has as many sites and shards; the nodes of site i are 10(i+1), its coordinator, and those
// that follow.
func Layout(sites, shards int) store.Layout {
	var l store.Layout
	for i := range sites {
		base := protocol.ID(10 * (i + 1))
		s := store.Site{Name: string(rune('a' + i)), Coordinators: []protocol.ID{base}}
		for j := range shards {
			s.Shards = append(s.Shards, base+1+protocol.ID(j))
		}
		l.Sites = append(l.Sites, s)
	}
	return l
}

// CopiesAt returns a layout that has each shard at some of its sites only, which at has by their
// numbers: the first one leads the shard.
func CopiesAt(l store.Layout, at [][]int) store.Layout {
	sites := slices.Clone(l.Sites)
	for i := range sites {
		sites[i].Shards = slices.Clone(sites[i].Shards)
		for k, has := range at {
			if !slices.Contains(has, i) {
				sites[i].Shards[k] = 0
			}
		}
	}
	l.Sites, l.First = sites, nil
	for _, has := range at {
		l.First = append(l.First, has[0])
	}
	return l
}
