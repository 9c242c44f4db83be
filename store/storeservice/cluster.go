package storeservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/internal/cluster"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// ClusterOptions say what a store in one process is like.
type ClusterOptions struct {
	Dir      string // where the files and disks are; it must hold no store
	Protocol string // one of package catalog's; empty: the first one
	Mode     string // of the protocol; empty: the first one
	Order    string // as in storeconfig.Store
	// Speculate and Readers are likewise.
	Speculate string
	Readers   int
	Shards    int
	// Placement is as in storeconfig.Store.
	Placement [][]string
	// WAN is the network, and Sites those of its sites that have a copy of the store.
	WAN    wan.Matrix
	Sites  []wan.Site
	Logger *slog.Logger // nil: none
}

// A Cluster is a store in one process, for development: real machines, disks, certificates and
// connections, over a network that has the delays of another. Its methods may be called
// concurrently.
type Cluster struct {
	o       ClusterOptions
	net     *shape.Network
	nodes   *cluster.Cluster
	proxies *proxies

	mu       sync.Mutex
	machines map[string]*devMachine // by name
}

// devMachine is a machine of a cluster, whether it runs or not.
type devMachine struct {
	name   string
	site   string   // in the store
	at     wan.Site // on the network
	peers  string
	client string
}

// A leftError says why a machine ended whose site does not take part in the store any more.
type leftError struct{ error }

func (e leftError) Unwrap() error { return e.error }

// A Place is where a machine of a cluster is, and whether it runs.
type Place struct {
	Machine string
	Site    string
	At      wan.Site // on the network
	Running bool
	Cut     bool
	Err     error // why it stopped, if it did not because it was asked to
}

// OpenCluster makes a store, with a machine at each of its sites, and starts it. Close ends it.
func OpenCluster(o ClusterOptions) (c *Cluster, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c = &Cluster{o: o, net: shape.NewLoopback(o.WAN, 1), machines: map[string]*devMachine{}}
	c.nodes = cluster.New("machine", c.net, o.WAN.Sites())
	c.proxies = newProxies(c.net)
	defer func() {
		if err != nil {
			err = fmt.Errorf("cluster: %w", errors.Join(err, c.Close()))
		}
	}()
	var sites []storeconfig.Site
	var listeners []pair
	defer func() {
		for _, l := range listeners {
			l.close() // those that no machine took
		}
	}()
	for _, at := range o.Sites {
		l, err := c.listen(at)
		if err != nil {
			return c, err
		}
		listeners = append(listeners, l)
		name := string(at)
		sites = append(sites, storeconfig.Site{Name: name,
			Machines: []storeconfig.Machine{{Name: name, Peers: l.peers.Addr().String(), Client: l.client.Addr().String()}}})
		c.machines[name] = &devMachine{name: name, site: name, at: at, peers: l.peers.Addr().String(),
			client: l.client.Addr().String()}
	}
	_, err = storeconfig.Init(storeconfig.InitOptions{Dir: o.Dir, Cluster: "dev", Protocol: o.Protocol, Mode: o.Mode,
		Order: o.Order, Speculate: o.Speculate, Readers: o.Readers, Shards: o.Shards, Placement: o.Placement, Sites: sites,
		RoundTrip: cluster.RoundTrip(o.WAN, o.Sites).String(),
		Trip:      func(a, b int) time.Duration { return o.WAN.RTT(o.Sites[a], o.Sites[b]) }})
	if err != nil {
		return c, err
	}
	if err := c.writeViews(); err != nil {
		return c, err
	}
	for _, site := range sites {
		l := listeners[0]
		listeners = listeners[1:]
		if err := c.start(c.machines[site.Name], func() (pair, error) { return l, nil }); err != nil {
			return c, err
		}
	}
	return c, nil
}

// pair is the listeners of one machine.
type pair struct{ peers, client net.Listener }

func (p pair) close() {
	for _, l := range p.listeners() {
		l.Close() // somebody else may have closed it
	}
}

// listeners returns those that there are.
func (p pair) listeners() []net.Listener {
	return slices.DeleteFunc([]net.Listener{p.peers, p.client}, func(l net.Listener) bool { return l == nil })
}

// listen listens at a site for a machine.
func (c *Cluster) listen(at wan.Site) (pair, error) {
	peers, err := c.net.Listen(at)
	if err != nil {
		return pair{}, err
	}
	client, err := c.net.Listen(at)
	if err != nil {
		peers.Close()
		return pair{}, err
	}
	return pair{peers, client}, nil
}

// listenAgain listens where a machine listened before.
func (c *Cluster) listenAgain(p *devMachine) (l pair, err error) {
	var others []net.Listener
	defer func() {
		for _, other := range others {
			other.Close()
		}
	}()
	for len(others) <= 2*placesTried && (l.peers == nil || l.client == nil) {
		next, err := c.net.Listen(p.at)
		if err != nil {
			others = append(others, l.listeners()...)
			return pair{}, err
		}
		switch next.Addr().String() {
		case p.peers:
			l.peers = next
		case p.client:
			l.client = next
		default:
			others = append(others, next)
		}
	}
	if l.peers == nil || l.client == nil {
		others = append(others, l.listeners()...)
		return pair{}, fmt.Errorf("machine %s listened at %s and %s, of which another program has taken one", p.name, p.peers,
			p.client)
	}
	return l, nil
}

// placesTried is at how many places of a site a machine looks for its own: others may have been
// there, or are.
const placesTried = 16

// writeViews makes files for clients at each site of the network: to a process elsewhere, machines
// are at proxies that have the delays between that site and the machines.
func (c *Cluster) writeViews() error {
	s, err := storeconfig.ReadStore(filepath.Join(c.o.Dir, storeconfig.StoreFile))
	if err != nil {
		return err
	}
	views := map[string]string{}
	for _, from := range c.o.WAN.Sites() {
		view := *s
		view.Sites = slices.Clone(view.Sites)
		for i := range view.Sites {
			machines := slices.Clone(view.Sites[i].Machines)
			for j := range machines {
				if machines[j].Client, err = c.proxies.at(from, machines[j].Client); err != nil {
					return err
				}
			}
			view.Sites[i].Machines = machines
		}
		views[string(from)] = "store-" + string(from) + ".json"
		if err := configfile.Write(filepath.Join(c.o.Dir, views[string(from)]), &view); err != nil {
			return err
		}
	}
	return storeconfig.SetViews(filepath.Join(c.o.Dir, storeconfig.ClientFile), views, views[string(c.o.Sites[0])])
}

// start runs a machine at the listeners that listen returns, which it owns from then on, through
// the epochs of the store.
func (c *Cluster) start(p *devMachine, listen func() (pair, error)) error {
	return c.nodes.Start(p.name, func() (func(context.Context) error, error) {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		m, err := c.open(p, l, nil)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) error { return c.run(ctx, p, m) }, nil
	})
}

// open opens a machine at its listeners. next is the epoch that it goes on in; nil: that of the
// store's file.
func (c *Cluster) open(p *devMachine, l pair, next *storeconfig.Store) (*Machine, error) {
	cfg, err := storeconfig.ReadMachine(filepath.Join(c.o.Dir, storeconfig.MachineFile(p.name)))
	if err != nil {
		l.close()
		return nil, err
	}
	if next != nil {
		cfg.Store = next
	}
	return OpenMachine(cfg, MachineOptions{Logger: c.o.Logger, Peers: l.peers, Client: l.client,
		Dial: c.net.DialContext(p.at), Online: true})
}

// run runs a machine until ctx ends, it fails, or its site has left the store.
func (c *Cluster) run(ctx context.Context, p *devMachine, m *Machine) error {
	for {
		if err := m.Run(ctx); err != nil {
			return err
		}
		next, err := m.Next()
		if err != nil {
			return leftError{err}
		}
		if next == nil || ctx.Err() != nil {
			return nil
		}
		l, err := c.listenAgain(p)
		if err != nil {
			return err
		}
		if m, err = c.open(p, l, next); err != nil {
			return err
		}
	}
}

// Dial returns a client at a site of the network. It must be closed.
func (c *Cluster) Dial(from wan.Site) (*Client, error) {
	if !c.o.WAN.Has(from) {
		return nil, fmt.Errorf("there is no site %q; the sites are %q", from, c.o.WAN.Sites())
	}
	cfg, err := storeconfig.ReadClient(filepath.Join(c.o.Dir, storeconfig.ClientFile), "")
	if err != nil {
		return nil, err
	}
	if cfg.Store, err = storeconfig.ReadStore(filepath.Join(c.o.Dir, storeconfig.StoreFile)); err != nil {
		return nil, err
	}
	return Dial(cfg, ClientOptions{Dial: c.net.DialContext(from)})
}

// Places returns where the machines are, in the order of the network's sites.
func (c *Cluster) Places() []Place {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Place
	for _, at := range c.o.WAN.Sites() {
		for _, p := range c.machines {
			if p.at == at {
				running, err := c.nodes.State(p.name)
				out = append(out, Place{Machine: p.name, Site: p.site, At: p.at, Running: running, Cut: c.nodes.IsCut(p.at),
					Err: err})
			}
		}
	}
	return out
}

func (c *Cluster) find(machine string) (*devMachine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.machines[machine]
	if p == nil {
		return nil, fmt.Errorf("there is no machine %q", machine)
	}
	return p, nil
}

// Stop stops a machine, if it runs: its connections end, its disk stays.
func (c *Cluster) Stop(machine string) error {
	p, err := c.find(machine)
	if err == nil {
		c.nodes.Stop(p.name)
	}
	return err
}

// Start starts a machine that was stopped, with its disk.
func (c *Cluster) Start(machine string) error {
	p, err := c.find(machine)
	if err != nil {
		return err
	}
	return c.start(p, func() (pair, error) { return c.listenAgain(p) })
}

// Lose takes away the disk of a machine that was stopped.
func (c *Cluster) Lose(machine string) error {
	p, err := c.find(machine)
	if err != nil {
		return err
	}
	cfg, err := storeconfig.ReadMachine(filepath.Join(c.o.Dir, storeconfig.MachineFile(p.name)))
	if err != nil {
		return err
	}
	return c.nodes.Lose(p.name, cfg.Data)
}

// Cut cuts a machine's site off from all others, or ends that.
func (c *Cluster) Cut(machine string, cut bool) error {
	p, err := c.find(machine)
	if err == nil {
		c.nodes.Cut(p.at, cut)
	}
	return err
}

// Close stops all machines. It returns why those ended that failed before.
func (c *Cluster) Close() error {
	err := c.nodes.StopAll(func(err error) bool {
		return errors.As(err, new(*machine.RefusedError)) || errors.As(err, new(leftError))
	})
	c.proxies.close()
	return errors.Join(err, c.net.Close())
}
