package bftdeploy

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// Config is what a group is made from. Protocol, Service, Replicas and Sim.WAN are needed.
type Config struct {
	Protocol bft.Protocol
	Service  bft.Service
	// Replicas and Clients are the sites of each. The first replica is the first primary.
	Replicas, Clients []wan.Site
	// RoundTrip is about the longest between two replicas. 0 is what the network says.
	RoundTrip time.Duration
	// Replica, Node and Client complete configurations: of a replica, of a client's node and of the
	// client that makes its calls. nil: they are as they are.
	Replica func(*bft.ReplicaConfig)
	Node    func(*bft.ClientConfig)
	Client  func(protocol.ID, *client.Config)
	// Wrap puts something around each replica, a traitor say. nil: nothing.
	Wrap func(node protocol.Node[bft.Message], cfg bft.ReplicaConfig) protocol.Node[bft.Message]
	// Hear gets what client nodes say before the clients do. nil: nobody.
	Hear func(protocol.ID, bft.Message)
	// Sim is the simulation's. Its codec is the protocol's, and its App hears what others than clients
	// say.
	Sim sim.Config[bft.Message]
}

// FirstClient is the ID of the first client. The second one's follows. Replicas begin with 1.
const FirstClient = protocol.ID(100)

// A Group is a simulated group that goes on beside goroutines. Its time is theirs, so they are in
// one bubble of testing/synctest, in which Run runs as long as anybody uses the group.
type Group struct {
	*sim.Beside[bft.Message]
	Clients   []*client.Client // in the order of Config.Clients
	Directory bft.Directory

	config Config
	scheme *bft.Scheme
	keys   bft.Secrets
}

// New returns a group that begins now.
func New(cfg Config) (*Group, error) {
	g := &Group{config: cfg}
	g.scheme = bft.NewScheme("group", &g.keys)
	g.config.RoundTrip = cmp.Or(cfg.RoundTrip, longest(cfg.Sim.WAN, cfg.Replicas), time.Millisecond)
	g.Directory.Clients = map[protocol.ID]bft.Key{}
	for i := range cfg.Replicas {
		id := protocol.ID(i + 1)
		g.Directory.Members = append(g.Directory.Members, bft.Party{ID: id, Key: g.signer(id).Key()})
	}
	for i := range cfg.Clients {
		id := FirstClient + protocol.ID(i)
		g.Directory.Clients[id] = g.signer(id).Key()
	}
	cfg.Sim.Codec, cfg.Sim.App = cfg.Protocol.Codec(g.scheme), g.app
	s, err := sim.New(cfg.Sim)
	if err != nil {
		return nil, err
	}
	for i, site := range cfg.Replicas {
		if err := g.addReplica(s, protocol.ID(i+1), site); err != nil {
			return nil, err
		}
	}
	for i, site := range cfg.Clients {
		if err := g.addClient(s, FirstClient+protocol.ID(i), site); err != nil {
			return nil, err
		}
	}
	g.Beside = sim.NewBeside(s)
	return g, nil
}

func (g *Group) signer(id protocol.ID) *bft.Signer { return g.keys.Signer(uint64(id)) }

func longest(network wan.Matrix, sites []wan.Site) time.Duration {
	var most time.Duration
	for _, a := range sites {
		for _, b := range sites {
			most = max(most, network.RTT(a, b))
		}
	}
	return most
}

func (g *Group) addReplica(s *sim.Sim[bft.Message], id protocol.ID, site wan.Site) error {
	cfg := bft.ReplicaConfig{ID: id, Directory: &g.Directory, Scheme: g.scheme, Signer: g.signer(id),
		Service: g.config.Service, RoundTrip: g.config.RoundTrip}
	if g.config.Replica != nil {
		g.config.Replica(&cfg)
	}
	build := func() (protocol.Node[bft.Message], error) {
		n, err := g.config.Protocol.NewReplica(cfg)
		if err == nil && g.config.Wrap != nil {
			n = g.config.Wrap(n, cfg)
		}
		return n, err
	}
	return add(s, id, site, build)
}

func (g *Group) addClient(s *sim.Sim[bft.Message], id protocol.ID, site wan.Site) error {
	cfg := bft.ClientConfig{ID: id, Directory: &g.Directory, Scheme: g.scheme, Signer: g.signer(id),
		RoundTrip: g.config.RoundTrip}
	if g.config.Node != nil {
		g.config.Node(&cfg)
	}
	err := add(s, id, site, func() (protocol.Node[bft.Message], error) { return g.config.Protocol.NewClient(cfg) })
	if err != nil {
		return err
	}
	of := client.Config{Deliver: func(_ context.Context, msg bft.Message) error {
		return g.Do(func(s *sim.Sim[bft.Message]) { s.Deliver(id, msg) })
	}}
	if g.config.Client != nil {
		g.config.Client(id, &of)
	}
	c, err := client.New(of)
	if err != nil {
		return err
	}
	g.Clients = append(g.Clients, c)
	return nil
}

// add adds a node, which build makes now to see whether it can be, and then for each incarnation.
func add(
	s *sim.Sim[bft.Message], id protocol.ID, site wan.Site, build func() (protocol.Node[bft.Message], error),
) error {
	if _, err := build(); err != nil {
		return fmt.Errorf("bftdeploy: node %d: %w", id, err)
	}
	return s.Add(sim.Node[bft.Message]{ID: id, Site: site, New: func() protocol.Node[bft.Message] {
		n, err := build()
		if err != nil {
			panic(err) // it could be made before
		}
		return n
	}})
}

func (g *Group) app(from protocol.ID, msg bft.Message) {
	switch i := int(from) - int(FirstClient); {
	case i >= 0 && i < len(g.Clients):
		if g.config.Hear != nil {
			g.config.Hear(from, msg)
		}
		g.Clients[i].Receive(msg)
	case g.config.Sim.App != nil:
		g.config.Sim.App(from, msg)
	}
}
