package bftsim

import (
	"cmp"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/wan"
)

// Config is what a group is made from. Protocol, Service and Place are needed.
type Config struct {
	Protocol bft.Protocol
	Service  bft.Service
	// Place has the network, and where the replicas 1, 2, ... are. The first one is the first
	// primary.
	Place wan.Deployment
	// Clients are the sites of the clients. nil: all sites of the network.
	Clients []wan.Site
	// FirstClient is the ID of the first client. 0 is 101.
	FirstClient protocol.ID
	// RoundTrip is what all nodes are told. 0 is the longest one between two sites of the network,
	// but at least 10 ms.
	RoundTrip time.Duration
	// Replica and Client change configurations. nil: nothing.
	Replica func(*bft.ReplicaConfig)
	Client  func(*bft.ClientConfig)
	// Traitors are the replicas that do as they like from the time Turn on. Until then they are
	// honest.
	Traitors map[protocol.ID]bft.Traitor
	Turn     time.Duration
	// Sim is the simulation's. Its WAN is Place's, and its App gets what answers no call.
	Sim sim.Config[bft.Message]
}

// A Group is a running group with its clients. Signatures are cheap, and every message goes through
// the codec only if Config.Sim says so.
type Group struct {
	*deploy.Deployment[bft.Message]
	Directory bft.Directory
	Clients   []protocol.ID // in the order of Config.Clients

	config  Config
	secrets bft.Secrets
	scheme  *bft.Scheme
	asked   map[asked]Told
}

type asked struct {
	client protocol.ID
	call   bft.CallID
}

// Told is who is told of a call. A nil field is nobody.
type Told struct {
	First     func(bft.Result)
	Withdrawn func()
	Done      func(r bft.Result, took time.Duration)
}

const shortestTrip = 10 * time.Millisecond

// New returns a group at time 0.
func New(c Config) (*Group, error) {
	if c.Clients == nil {
		c.Clients = c.Place.Matrix.Sites()
	}
	c.FirstClient = cmp.Or(c.FirstClient, 101)
	c.RoundTrip = cmp.Or(c.RoundTrip, max(c.Place.Matrix.MaxRTT(c.Place.Matrix.Sites()), shortestTrip))
	g := &Group{config: c, asked: map[asked]Told{}}
	g.scheme = bft.NewScheme("simulated", &g.secrets)
	c.Sim.WAN, c.Sim.App = c.Place.Matrix, g.app
	var err error
	if g.Deployment, err = deploy.New(deploy.Config[bft.Message]{Sim: c.Sim, Answers: answers}); err != nil {
		return nil, err
	}
	g.Directory.Clients = map[protocol.ID]bft.Key{}
	for i := range c.Place.Replicas {
		id := protocol.ID(i + 1)
		g.Directory.Members = append(g.Directory.Members, bft.Party{ID: id, Key: g.signer(id).Key()})
	}
	for i := range c.Clients {
		id := c.FirstClient + protocol.ID(i)
		g.Clients = append(g.Clients, id)
		g.Directory.Clients[id] = g.signer(id).Key()
	}
	for i, m := range g.Directory.Members {
		if err := g.addReplica(m.ID, c.Place.Replicas[i]); err != nil {
			return nil, err
		}
	}
	for i, id := range g.Clients {
		if err := g.addClient(id, c.Clients[i]); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Group) signer(id protocol.ID) *bft.Signer { return g.secrets.Signer(uint64(id)) }

func (g *Group) addReplica(id protocol.ID, site wan.Site) error {
	return g.Add(id, site, func() (protocol.Node[bft.Message], error) {
		c := bft.ReplicaConfig{ID: id, Directory: &g.Directory, Scheme: g.scheme, Signer: g.signer(id),
			Service: g.config.Service, RoundTrip: g.config.RoundTrip}
		if g.config.Replica != nil {
			g.config.Replica(&c)
		}
		node, err := g.config.Protocol.NewReplica(c)
		if traitor := g.config.Traitors[id]; traitor != nil && err == nil {
			node = &turncoat{honest: node, traitor: traitor(node, c), trip: c.RoundTrip, turned: func() bool {
				return g.Now() >= g.config.Turn
			}}
		}
		return node, err
	})
}

func (g *Group) addClient(id protocol.ID, site wan.Site) error {
	return g.Add(id, site, func() (protocol.Node[bft.Message], error) {
		c := bft.ClientConfig{ID: id, Directory: &g.Directory, Scheme: g.scheme, Signer: g.signer(id),
			RoundTrip: g.config.RoundTrip}
		if g.config.Client != nil {
			g.config.Client(&c)
		}
		return g.config.Protocol.NewClient(c)
	})
}

func answers(msg bft.Message) (uint64, bool) {
	done, ok := msg.(bft.Done)
	return uint64(done.ID), ok
}

// Make has a client make a call, whose ID it chooses and returns.
func (g *Group) Make(client protocol.ID, c bft.Call, told Told) bft.CallID {
	n := g.Call(client, func(n uint64) bft.Message {
		c.ID = bft.CallID(n)
		g.asked[asked{client, c.ID}] = told
		return c
	}, func(a deploy.Answer[bft.Message]) {
		delete(g.asked, asked{client, bft.CallID(a.Call)})
		if told.Done != nil {
			told.Done(a.Msg.(bft.Done).Result, a.Took)
		}
	})
	return bft.CallID(n)
}

// app tells what is known of a call before it is done.
func (g *Group) app(from protocol.ID, msg bft.Message) {
	switch m := msg.(type) {
	case bft.First:
		if told := g.asked[asked{from, m.ID}]; told.First != nil {
			told.First(m.Result)
		}
	case bft.Withdrawn:
		if told := g.asked[asked{from, m.ID}]; told.Withdrawn != nil {
			told.Withdrawn()
		}
	case bft.Refused:
		g.Fail("replica %d is refused: %s", from, m.Reason)
	}
	if g.config.Sim.App != nil {
		g.config.Sim.App(from, msg)
	}
}

// Standing returns how far a replica is, none if it is down.
func (g *Group) Standing(id protocol.ID) bft.Standing {
	if n, ok := g.Get(id).(interface{ Standing() bft.Standing }); ok {
		return n.Standing()
	}
	return bft.Standing{}
}
