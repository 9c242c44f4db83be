package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/foresay/foresay/internal/cluster"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// ClusterOptions say what a group in one process is like.
type ClusterOptions struct {
	Dir      string // where the files and disks are; it must hold no group
	Protocol string
	Service  string
	Replicas int
	Clients  int // how many have keys
	// WAN is the network between the replicas, which are at its Sites, in their order. No Sites are
	// this machine's own network, where each replica has a site, and Elsewhere is one more.
	WAN    wan.Matrix
	Sites  []wan.Site
	Logger *slog.Logger // nil: none
}

// Elsewhere is a site without replicas in a group without Sites.
const Elsewhere wan.Site = "elsewhere"

// A Cluster is a group's replicas in one process, for development: real hosts, disks, keys and
// connections, over a network that has the delays of another. Its methods may be called
// concurrently.
type Cluster struct {
	o     ClusterOptions
	net   *shape.Network
	nodes *cluster.Cluster
	group *Group

	mu       sync.Mutex
	replicas []*devReplica // by ID, from 1 on
}

// devReplica is a replica of a cluster, whether it runs or not.
type devReplica struct {
	id      protocol.ID
	site    wan.Site
	cfg     *Config
	traitor string
}

// name is how the cluster's nodes are called.
func (p *devReplica) name() string { return fmt.Sprint(p.id) }

// A Place is where a replica of a cluster is, and whether it runs.
type Place struct {
	ID      protocol.ID
	Site    wan.Site
	Address string
	Running bool
	Cut     bool
	Traitor string // how it betrays the others, "" if it does not
	Err     error  // why it stopped, if it did not because it was asked to
}

// OpenCluster makes a group and starts its replicas. Close ends it.
func OpenCluster(o ClusterOptions) (c *Cluster, err error) {
	if len(o.Sites) == 0 {
		for i := range o.Replicas {
			o.Sites = append(o.Sites, wan.Site("site"+strconv.Itoa(i+1)))
		}
		o.WAN = wan.Uniform(0, append(slices.Clone(o.Sites), Elsewhere)...)
	}
	if o.Replicas > len(o.Sites) {
		return nil, fmt.Errorf("cluster: %d replicas at %d sites", o.Replicas, len(o.Sites))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c = &Cluster{o: o, net: shape.NewLoopback(o.WAN, 1)}
	c.nodes = cluster.New("replica", c.net, o.WAN.Sites())
	defer func() {
		if err != nil {
			err = fmt.Errorf("cluster: %w", errors.Join(err, c.Close()))
		}
	}()
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close() // those that no replica took
		}
	}()
	var addresses []string
	for i := range o.Replicas {
		l, err := c.net.Listen(o.Sites[i])
		if err != nil {
			return c, err
		}
		listeners = append(listeners, l)
		addresses = append(addresses, l.Addr().String())
	}
	c.group, err = Init(InitOptions{Dir: o.Dir, Protocol: o.Protocol, Service: o.Service, Cluster: "dev",
		Clients: o.Clients, RoundTrip: cluster.RoundTrip(o.WAN, o.Sites).String(), Addresses: addresses})
	if err != nil {
		return c, err
	}
	for i := range o.Replicas {
		p := &devReplica{id: protocol.ID(i + 1), site: o.Sites[i]}
		c.replicas = append(c.replicas, p)
		if p.cfg, err = ReadConfig(filepath.Join(o.Dir, ConfigFile(p.id))); err != nil {
			return c, err
		}
		first := listeners[0]
		listeners = listeners[1:]
		if err := c.start(p, func() (l net.Listener, err error) {
			if l, first = first, nil; l == nil {
				l, err = c.listen(p)
			}
			return l, err
		}); err != nil {
			return c, err
		}
	}
	return c, nil
}

// start runs a replica at the listeners that listen returns, which it owns from then on.
func (c *Cluster) start(p *devReplica, listen func() (net.Listener, error)) error {
	return c.nodes.Start(p.name(), func() (func(context.Context) error, error) {
		c.mu.Lock()
		traitor := p.traitor
		c.mu.Unlock()
		r, err := OpenReplica(p.cfg, ReplicaOptions{Logger: c.o.Logger.With("replica", p.id), Listen: listen,
			Dial: c.net.DialContext(p.site), Traitor: traitor})
		if err != nil {
			return nil, err
		}
		return r.Run, nil
	})
}

// Client returns the configuration of a client, by its place from 0 on.
func (c *Cluster) Client(place int) (*ClientConfig, error) {
	return ReadClientConfig(filepath.Join(c.o.Dir, ClientFile(place)))
}

// At returns the options of a client at a site.
func (c *Cluster) At(site wan.Site) ClientOptions {
	return ClientOptions{Dial: c.net.DialContext(site)}
}

// Strategies are how a replica can betray the others.
func (c *Cluster) Strategies() []string { return c.group.proto.Strategies }

// Places returns where the replicas are, in order of their IDs.
func (c *Cluster) Places() []Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Place
	for i, p := range c.replicas {
		running, err := c.nodes.State(p.name())
		out = append(out, Place{ID: p.id, Site: p.site, Address: c.group.Members[i].Address, Running: running,
			Cut: c.nodes.IsCut(p.site), Traitor: p.traitor, Err: err})
	}
	return out
}

func (c *Cluster) find(id protocol.ID) (*devReplica, error) {
	i := slices.IndexFunc(c.replicas, func(p *devReplica) bool { return p.id == id })
	if i < 0 {
		return nil, fmt.Errorf("there is no replica %d", id)
	}
	return c.replicas[i], nil
}

// Stop stops a replica: its connections end, its disk stays.
func (c *Cluster) Stop(id protocol.ID) error {
	p, err := c.find(id)
	if err == nil && !c.nodes.Stop(p.name()) {
		err = fmt.Errorf("replica %d does not run", id)
	}
	return err
}

// Start starts a replica that was stopped, with its disk.
func (c *Cluster) Start(id protocol.ID) error {
	p, err := c.find(id)
	if err != nil {
		return err
	}
	return c.start(p, func() (net.Listener, error) { return c.listen(p) })
}

// listen listens again where a replica has listened before.
func (c *Cluster) listen(p *devReplica) (net.Listener, error) {
	l, err := c.net.Listen(p.site)
	if err != nil {
		return nil, err
	}
	if got, want := l.Addr().String(), c.group.Members[p.id-1].Address; got != want {
		l.Close()
		return nil, fmt.Errorf("replica %d listened at %s, which another program has taken", p.id, want)
	}
	return l, nil
}

// Betray starts a replica again with its disk, as a traitor with a strategy, or an honest one if
// that is "".
func (c *Cluster) Betray(id protocol.ID, strategy string) error {
	p, err := c.find(id)
	if err != nil {
		return err
	}
	if strategy != "" && !slices.Contains(c.Strategies(), strategy) {
		return fmt.Errorf("there is no strategy %q; want one of %v", strategy, c.Strategies())
	}
	c.nodes.Stop(p.name())
	c.mu.Lock()
	p.traitor = strategy
	c.mu.Unlock()
	return c.Start(id)
}

// Lose takes away the disk of a replica that was stopped.
func (c *Cluster) Lose(id protocol.ID) error {
	p, err := c.find(id)
	if err != nil {
		return err
	}
	return c.nodes.Lose(p.name(), p.cfg.Data)
}

// Cut cuts a replica's site off from all others, or ends that.
func (c *Cluster) Cut(id protocol.ID, cut bool) error {
	p, err := c.find(id)
	if err == nil {
		c.nodes.Cut(p.site, cut)
	}
	return err
}

// Close stops all replicas. It returns why those ended that failed before.
func (c *Cluster) Close() error {
	err := c.nodes.StopAll(func(err error) bool { return errors.As(err, new(*RefusedError)) })
	return errors.Join(err, c.net.Close())
}
