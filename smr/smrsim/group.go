package smrsim

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// Config is what a group is made from. Protocol is needed, and a machine, which Replica gives.
type Config struct {
	Protocol smr.Protocol
	// Place has the network, and where the replicas 1, 2, ... are. Its zero value is three sites,
	// a, b and c, 20 ms apart.
	Place wan.Deployment
	// Clients are the sites of the clients. nil: all sites of the network.
	Clients []wan.Site
	// FirstClient is the ID of the first client. 0 is 101.
	FirstClient protocol.ID
	// RoundTrip is what all nodes are told. 0 is the default of package smr.
	RoundTrip time.Duration
	// Replica completes a replica's configuration, for each of its incarnations and once before.
	Replica func(*smr.ReplicaConfig)
	// Client changes a client's configuration, whose Nearest is the nearest replica. nil: nothing.
	Client func(*smr.ClientConfig)
	// Sim is the simulation's. Its WAN is Place's, and its App gets what is neither an answer nor
	// a replica's status or refusal.
	Sim sim.Config[smr.Message]
	// Clock is how a node's clock differs from the simulation's time. nil: all are right.
	Clock func(protocol.ID) sim.Clock
	// Wrap puts something around each node. nil: nothing.
	Wrap func(protocol.ID, protocol.Node[smr.Message]) protocol.Node[smr.Message]
}

// A Group is a running group with its clients.
type Group struct {
	*deploy.Deployment[smr.Message]
	Place   wan.Deployment
	Members []smr.Member  // the first ones
	Clients []protocol.ID // in the order of Config.Clients
	// Status is what replicas said last of themselves, and Refused those who are not let in.
	Status  map[protocol.ID]smr.Status
	Refused map[protocol.ID]string

	config Config
}

// An Answer is what became of a call.
type Answer struct {
	Client protocol.ID
	Site   wan.Site
	smr.Done
	Began, Took time.Duration
}

// New returns a group at time 0.
func New(c Config) (*Group, error) {
	if c.Place.Replicas == nil {
		sites := []wan.Site{"a", "b", "c"}
		c.Place = wan.Deployment{Matrix: wan.Uniform(20*time.Millisecond, sites...), Replicas: sites}
	}
	g := &Group{Place: c.Place, Status: map[protocol.ID]smr.Status{}, Refused: map[protocol.ID]string{}, config: c}
	if c.FirstClient == 0 {
		g.config.FirstClient = 101
	}
	c.Sim.WAN, c.Sim.App = c.Place.Matrix, g.app
	var err error
	if g.Deployment, err = deploy.New(deploy.Config[smr.Message]{Sim: c.Sim, Answers: Answers, Clock: c.Clock,
		Wrap: c.Wrap}); err != nil {
		return nil, err
	}
	for i := range c.Place.Replicas {
		g.Members = append(g.Members, smr.Member{ID: protocol.ID(i + 1)})
	}
	for i, m := range g.Members {
		if err := g.addReplica(m.ID, c.Place.Replicas[i]); err != nil {
			return nil, err
		}
	}
	sites := c.Clients
	if sites == nil {
		sites = c.Place.Matrix.Sites()
	}
	for _, site := range sites {
		if err := g.addClient(site); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Answers tells which call a message to an application ends.
func Answers(msg smr.Message) (uint64, bool) {
	done, ok := msg.(smr.Done)
	return uint64(done.ID), ok
}

func (g *Group) addReplica(id protocol.ID, site wan.Site) error {
	return g.Add(id, site, func() (protocol.Node[smr.Message], error) {
		c := smr.ReplicaConfig{ID: id, Members: g.Members, RoundTrip: g.config.RoundTrip}
		if g.config.Replica != nil {
			g.config.Replica(&c)
		}
		return g.config.Protocol.NewReplica(c)
	})
}

func (g *Group) addClient(site wan.Site) error {
	id := g.config.FirstClient + protocol.ID(len(g.Clients))
	g.Clients = append(g.Clients, id)
	return g.Add(id, site, func() (protocol.Node[smr.Message], error) {
		c := smr.ClientConfig{ID: id, Members: g.Members, RoundTrip: g.config.RoundTrip, Nearest: g.Nearest(site)}
		if g.config.Client != nil {
			g.config.Client(&c)
		}
		return g.config.Protocol.NewClient(c)
	})
}

// Client returns the first client at a site, 0 if there is none.
func (g *Group) Client(site wan.Site) protocol.ID {
	for _, id := range g.Clients {
		if g.Site(id) == site {
			return id
		}
	}
	return 0
}

// Nearest returns the replica that is nearest to a site.
func (g *Group) Nearest(site wan.Site) protocol.ID {
	near := g.Place.Matrix.Nearest(site, g.Place.Replicas)
	return protocol.ID(1 + slices.Index(g.Place.Replicas, near))
}

// Trip returns the round trip from a site to its kth nearest replica: to a quorum of k.
func (g *Group) Trip(from wan.Site, k int) time.Duration {
	var trips []time.Duration
	for _, r := range g.Place.Replicas {
		trips = append(trips, g.Place.Matrix.RTT(from, r))
	}
	slices.Sort(trips)
	return trips[k-1]
}

// Make has a client make a call, and calls then with what became of it.
func (g *Group) Make(client protocol.ID, c smr.Call, then func(Answer)) smr.CallID {
	n := g.Call(client, func(n uint64) smr.Message {
		c.ID = smr.CallID(n)
		return c
	}, func(a deploy.Answer[smr.Message]) {
		then(Answer{Client: a.Client, Site: a.Site, Done: a.Msg.(smr.Done), Began: a.Began, Took: a.Took})
	})
	return smr.CallID(n)
}

func (g *Group) app(from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Status:
		g.Status[from] = msg
	case smr.Refused:
		g.Refused[from] = msg.Reason
		if !msg.Removed {
			g.Fail("replica %d is refused: %s", from, msg.Reason)
		}
	}
	if g.config.Sim.App != nil {
		g.config.Sim.App(from, msg)
	}
}

// Statuses asks the replicas that are up how they are, and lets a millisecond pass.
func (g *Group) Statuses() (map[protocol.ID]smr.Status, error) {
	clear(g.Status)
	for _, m := range g.Members {
		g.Deliver(m.ID, smr.StatusQuery{})
	}
	err := g.Pass(time.Millisecond)
	return maps.Clone(g.Status), err
}
