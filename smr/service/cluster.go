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

// ClusterOptions say what a cluster in one process is like.
type ClusterOptions struct {
	Dir      string // where the files and disks are; it must hold no cluster
	Protocol string
	Replicas int
	// WAN is the network between the replicas, which are at its Sites, in their order. The zero
	// matrix is this machine's own network.
	WAN     wan.Matrix
	Sites   []wan.Site
	Logger  *slog.Logger // nil: none
	Routing              // among groups
}

// A Cluster is replicas in one process, for development: real hosts, disks, certificates and
// connections, over a network that has the delays of another. Its methods may be called
// concurrently.
type Cluster struct {
	o      ClusterOptions
	net    *shape.Network
	nodes  *cluster.Cluster
	client *ClientConfig

	mu       sync.Mutex
	replicas map[protocol.ID]*devReplica
	lastID   protocol.ID
}

// devReplica is a replica of a cluster, whether it runs or not.
type devReplica struct {
	id      protocol.ID
	site    wan.Site
	address string
	cfg     *Config
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
	Err     error // why it stopped, if it did not because it was asked to
}

// OpenCluster makes a cluster and starts its replicas. Close ends it.
func OpenCluster(o ClusterOptions) (c *Cluster, err error) {
	if len(o.Sites) == 0 {
		for i := range o.Replicas + spareSites {
			o.Sites = append(o.Sites, wan.Site("site"+strconv.Itoa(i+1)))
		}
		o.WAN = wan.Uniform(0, o.Sites...)
	}
	if o.Replicas < 1 || o.Replicas > len(o.Sites) {
		return nil, fmt.Errorf("cluster: %d replicas at %d sites", o.Replicas, len(o.Sites))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c = &Cluster{o: o, net: shape.NewLoopback(o.WAN, 1), replicas: map[protocol.ID]*devReplica{}}
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
	for _, site := range o.Sites[:o.Replicas] {
		l, err := c.net.Listen(site)
		if err != nil {
			return c, err
		}
		listeners = append(listeners, l)
		addresses = append(addresses, l.Addr().String())
	}
	c.client, err = Init(InitOptions{
		Dir: o.Dir, Protocol: o.Protocol, Cluster: "dev", RoundTrip: cluster.RoundTrip(o.WAN, o.Sites).String(),
		Leader: 1, Addresses: addresses, Routing: c.o.Routing,
	})
	if err != nil {
		return c, err
	}
	for i, a := range addresses {
		p := &devReplica{id: protocol.ID(i + 1), site: o.Sites[i], address: a}
		c.replicas[p.id], c.lastID = p, p.id
		if p.cfg, err = ReadConfig(filepath.Join(o.Dir, ConfigFile(p.id))); err != nil {
			return c, err
		}
		l := listeners[0]
		listeners = listeners[1:]
		if err := c.start(p, func() (net.Listener, error) { return l, nil }); err != nil {
			return c, err
		}
	}
	return c, nil
}

// spareSites is where replicas go that join, on a network that has no sites of its own.
const spareSites = 6

// start runs a replica at the listener that listen returns, which it owns from then on.
func (c *Cluster) start(p *devReplica, listen func() (net.Listener, error)) error {
	return c.nodes.Start(p.name(), func() (func(context.Context) error, error) {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		r, err := OpenReplica(p.cfg, ReplicaOptions{
			Logger: c.o.Logger.With("replica", p.id), Listener: l, Dial: c.net.DialContext(p.site),
		})
		if err != nil {
			return nil, err
		}
		return r.Run, nil
	})
}

// Client returns the configuration of clients. That of processes elsewhere is in the file
// ClientFile.
func (c *Cluster) Client() *ClientConfig { return c.client }

// At returns the options of a client at a site.
func (c *Cluster) At(site wan.Site) ClientOptions {
	o := ClientOptions{Dial: c.net.DialContext(site)}
	c.mu.Lock()
	defer c.mu.Unlock()
	var sites []wan.Site
	for _, p := range c.replicas {
		sites = append(sites, p.site)
	}
	slices.Sort(sites)
	nearest := c.o.WAN.Nearest(site, sites)
	for id, p := range c.replicas {
		if p.site == nearest && slices.ContainsFunc(c.client.Members, func(m Member) bool { return m.ID == id }) {
			o.Nearest = id
		}
	}
	return o
}

// Places returns where the replicas are, in order of their IDs.
func (c *Cluster) Places() []Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Place
	for _, p := range c.replicas {
		running, err := c.nodes.State(p.name())
		out = append(out, Place{ID: p.id, Site: p.site, Address: p.address, Running: running, Cut: c.nodes.IsCut(p.site),
			Err: err})
	}
	slices.SortFunc(out, func(a, b Place) int { return int(a.ID) - int(b.ID) })
	return out
}

func (c *Cluster) find(id protocol.ID) (*devReplica, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.replicas[id]
	if p == nil {
		return nil, fmt.Errorf("there is no replica %d", id)
	}
	return p, nil
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

// listen listens where a replica did before.
func (c *Cluster) listen(p *devReplica) (net.Listener, error) {
	l, err := c.net.Listen(p.site)
	if err != nil {
		return nil, err
	}
	if got := l.Addr().String(); got != p.address {
		l.Close()
		return nil, fmt.Errorf("replica %d listened at %s, which another program has taken", p.id, p.address)
	}
	return l, nil
}

// Lose takes away the disk of a replica that was stopped.
func (c *Cluster) Lose(id protocol.ID) error {
	p, err := c.find(id)
	if err != nil {
		return err
	}
	return c.nodes.Lose(p.name(), p.cfg.Data)
}

// Join starts one more replica, with an empty disk, at a site where there is none if there is such
// a one. It is still to be added to the group.
func (c *Cluster) Join() (Member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.lastID + 1
	site := c.o.Sites[int(c.lastID)%len(c.o.Sites)]
	l, err := c.net.Listen(site)
	if err != nil {
		return Member{}, err
	}
	p := &devReplica{id: id, site: site, address: l.Addr().String()}
	if p.cfg, err = InitJoin(c.o.Dir, id, p.address); err == nil {
		err = c.start(p, func() (net.Listener, error) { return l, nil })
	}
	if err != nil {
		l.Close() // start may have closed it
		return Member{}, err
	}
	c.replicas[id], c.lastID = p, id
	return Member{id, p.address}, nil
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
