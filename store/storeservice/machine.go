package storeservice

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/wal"
)

// MachineOptions are what a machine takes beside its file. The zero value is right for a process of
// its own.
type MachineOptions struct {
	Logger *slog.Logger // nil: none
	// Peers and Client are where it listens. nil: at the addresses of the file. The machine closes
	// them.
	Peers, Client net.Listener
	// Follows is the machine in an earlier epoch, whose Run has returned, if the address of clients
	// was the file's: it has stayed open.
	Follows *Machine
	// Online says that whoever opens the machine opens it again in a later epoch, with new
	// listeners: see Next. It is so without listeners.
	Online bool
	// Dial connects to another machine. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// A Machine is one machine of a store. Its methods may be called concurrently.
type Machine struct {
	cfg     *storeconfig.MachineConfig
	log     *slog.Logger
	store   *wal.Store
	node    *machine.Node
	metrics net.Listener // nil: none
	port    *port        // nil: the listener for clients was given
	figures *figures
	changes *changes
	online  bool // it can go on in another epoch
	dial    func(ctx context.Context, address string) (net.Conn, error)
}

// OpenMachine opens a machine's disk and ports. The machine does nothing before Run, which must be
// called.
func OpenMachine(cfg *storeconfig.MachineConfig, o MachineOptions) (*Machine, error) {
	m := &Machine{cfg: cfg, log: o.Logger, figures: newFigures(), online: o.Online || o.Peers == nil && o.Client == nil,
		dial: o.Dial}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	if o.Follows != nil {
		m.port, o.Follows.port = o.Follows.port, nil
	}
	listeners := []*net.Listener{&o.Peers, &o.Client}
	err := m.open(&o)
	if err == nil {
		return m, nil
	}
	for _, l := range listeners {
		if *l != nil {
			(*l).Close() // the node may have closed it before
		}
	}
	return nil, errors.Join(err, m.close())
}

// open does what OpenMachine says; what it took before an error, OpenMachine gives back.
func (m *Machine) open(o *MachineOptions) error {
	fail := func(err error) error { return fmt.Errorf("machine %s: %w", m.cfg.Machine, err) }
	tlsConfig, err := m.cfg.TLS.Load()
	if err != nil {
		return fail(err)
	}
	var clientTLS *tls.Config
	if tlsConfig != nil {
		clientTLS = tlsConfig.Clone()
		clientTLS.ClientAuth = tls.RequireAndVerifyClientCert
	}
	for _, l := range [...]struct {
		to      *net.Listener
		address string
		field   string
	}{{&o.Peers, m.cfg.Listen.Peers, "listen.peers"}, {&m.metrics, m.cfg.Metrics, "metrics"}} {
		if *l.to != nil || l.address == "" {
			continue
		}
		if *l.to, err = net.Listen("tcp", l.address); err != nil {
			return fail(fmt.Errorf("%s: %w", l.field, err))
		}
	}
	if o.Client == nil {
		if o.Client, err = m.listen(); err != nil {
			return fail(fmt.Errorf("listen.client: %w", err))
		}
	}
	// The log's lock also keeps a second process from the directory.
	if m.store, err = wal.Open(filepath.Join(m.cfg.Data, "log"), wal.Options{
		// of blocks, and of single keys
		Logger: m.log, CacheBytes: int64(m.cfg.CacheBytes / 2), ReadCacheBytes: m.cfg.CacheBytes / 2,
	}); err != nil {
		return fail(err)
	}
	if m.changes, err = openChanges(m.cfg); err != nil {
		return fail(err)
	}
	if err := claim(m.cfg); err != nil {
		return fail(err)
	}
	if err := m.sweep(); err != nil {
		return fail(err)
	}
	change, await := m.changes.step, m.together
	if m.cfg.Store.StoreProtocol().FixedSites {
		await = nil // no site is fenced: nothing rests on what machines of one site have said together
	}
	if !m.online {
		change, await = nil, nil
	}
	m.node, err = machine.Open(machine.Config{
		Protocol: m.cfg.Store.StoreProtocol(), Cluster: m.cfg.Store.Cluster, Topology: m.cfg.Store.Topology(),
		Machine:      m.cfg.Machine,
		Disk:         func(name string) (host.Disk, error) { return waldisk.New(m.store, name) },
		PeerListener: o.Peers, ClientListener: o.Client, PeerDial: o.Dial,
		PeerTLS: tlsConfig, ClientTLS: clientTLS, Insecure: m.cfg.Insecure,
		RoundTrip: m.cfg.Store.RoundTripTime(), Retain: m.cfg.Store.RetainTime(), MaxAhead: m.cfg.Store.MaxAheadTime(),
		ByArrival: m.cfg.Store.Order == storeconfig.ByArrival, Speculate: m.cfg.Store.Speculate,
		Readers:   m.cfg.Store.Readers,
		MaxOffset: m.cfg.Store.MaxOffsetTime(), MaxTxns: m.cfg.Store.MaxTxns,
		Retired: m.changes.disk.Retired, Change: change, Await: await,
		Logger: m.log, Observe: m.figures.begin, Committed: func(took time.Duration) {
			m.figures.commits.Observe(took.Seconds())
		},
	})
	if err == nil {
		m.changes.retire = m.node.Retire
	}
	return err
}

// listen returns a listener at the file's address of clients, which may be open since an earlier
// epoch.
func (m *Machine) listen() (l net.Listener, err error) {
	if m.port == nil {
		if m.port, err = openPort(m.cfg.Listen.Client); err != nil {
			return nil, err
		}
	}
	return m.port.turn()
}

// sweep removes what servers have left whose copies were moved to other sites: their groups do
// without them for good.
func (m *Machine) sweep() error {
	t := m.cfg.Store.Topology()
	site, _, _ := t.Find(m.cfg.Machine) // openChanges has found it
	names, err := m.store.Names()
	if err != nil {
		return err
	}
	for _, s := range t.Removed(t.Sites[site].Name) {
		name := machine.DiskName(s)
		if !slices.Contains(names, name) {
			continue
		}
		if err := m.store.Remove(name); err != nil {
			return err
		}
		m.log.Info("store: machine removes what it held of a shard that was moved", "machine", m.cfg.Machine,
			"shard", s.Shard, "disk", name)
	}
	return nil
}

// close gives back what open took, but for what the node has, and for the port, if the machine goes
// on in another epoch.
func (m *Machine) close() error {
	if m.port != nil && !m.goesOn() {
		m.port.listener.Close()
	}
	if m.metrics != nil {
		m.metrics.Close() // it may be closed
	}
	if m.store != nil {
		return m.store.Close()
	}
	return nil
}

// Run runs the machine until ctx ends; it then lets clients' calls end, makes durable what was
// written, and returns nil. The error is a *machine.RefusedError if it must not take part.
func (m *Machine) Run(ctx context.Context) error {
	m.log.Info("store: machine has its disk", "machine", m.cfg.Machine, "data", m.cfg.Data, "disk",
		m.store.Identity().String())
	stopping := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	if m.online {
		group.Go(func() error { return m.follow(ctx) })
		group.Go(func() error {
			select {
			case <-m.changes.learned:
				cancel()
			case <-ctx.Done():
			}
			return nil
		})
	}
	group.Go(func() error {
		err := m.node.Run(ctx)
		if errors.Is(err, grpc.ErrServerStopped) && stopping.Err() != nil {
			return nil // it was stopped before it had begun to serve
		}
		return err
	})
	if m.metrics != nil {
		group.Go(func() error { return metrics.Serve(ctx, m.metrics, m.page()) })
	}
	return errors.Join(group.Wait(), m.close())
}

// goesOn reports whether the store is of another epoch.
func (m *Machine) goesOn() bool {
	if m.changes == nil {
		return false
	}
	m.changes.mu.Lock()
	defer m.changes.mu.Unlock()
	return m.changes.next != nil
}

// Next returns what the machine is to be opened with when Run has returned nil because the store is
// of another epoch; nil: it was stopped. The error says that the machine has no part in that epoch.
func (m *Machine) Next() (*storeconfig.Store, error) {
	m.changes.mu.Lock()
	defer m.changes.mu.Unlock()
	if next := m.changes.next; next != nil {
		if why := m.changes.refuse(next); why != "" {
			return nil, errors.New(why)
		}
		return next, nil
	}
	return nil, nil
}

// follow asks the other machines whether the store is of a later epoch: a machine that was away
// when the store went on learns of it so.
func (m *Machine) follow(ctx context.Context) error {
	conn, err := m.dialOthers()
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		for _, other := range members(m.cfg.Store) {
			if other == m.cfg.Machine {
				continue
			}
			ask, cancel := context.WithTimeout(ctx, followEvery)
			next, err := askLater(ask, conn, m.cfg.Store, other)
			cancel()
			if err != nil || next == nil {
				continue
			}
			m.log.Info("store: machine learns of another epoch", "machine", m.cfg.Machine, "epoch", next.Epoch, "from", other)
			file, err := next.Encode()
			if err != nil {
				return err
			}
			if _, err := m.changes.step(ctx, &pb.ChangeRequest{Step: pb.ChangeRequest_LEARN, Store: file}); err != nil {
				return err
			}
		}
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// dialOthers connects to the other machines, as a client.
func (m *Machine) dialOthers() (*front.Conn, error) {
	tlsConfig, err := m.cfg.TLS.Load()
	if err != nil {
		return nil, err
	}
	return front.Dial(front.Config{
		Protocol: m.cfg.Store.StoreProtocol(), Topology: m.cfg.Store.Topology(), Cluster: m.cfg.Store.Cluster, TLS: tlsConfig,
		Insecure: m.cfg.Insecure, Dial: m.dial, RoundTrip: m.cfg.Store.RoundTripTime(),
	})
}
