package machine

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/gate"
	"github.com/foresay/foresay/transport"
)

// group is that of all nodes of a store.
const group transport.Group = 3

// Config is what a machine is made from. Fields that are not required have the defaults that they
// name.
type Config struct {
	Protocol store.Protocol // required
	Cluster  string         // required
	Topology store.Topology
	Machine  string // this one's name in the topology
	// Disk returns what a node of the machine has written before, and where it writes: it is called
	// for shard-0, say. nil: memory.
	Disk func(name string) (host.Disk, error)
	// Listeners are for the machine's addresses of the topology. nil: TCP.
	PeerListener, ClientListener net.Listener
	// PeerDial connects to another machine. nil is TCP.
	PeerDial func(ctx context.Context, address string) (net.Conn, error)
	// PeerTLS is as transport.Config.TLS wants it, with the names of Members.
	PeerTLS *tls.Config
	// ClientTLS is for the clients' port. Unless its ClientAuth asks for certificates and checks
	// them, anybody who reaches the port may read and write everything.
	ClientTLS *tls.Config
	// Insecure leaves both ports without TLS. Either it or both of the above must be set.
	Insecure bool
	// The rest is as in store.Config and host.Config.
	RoundTrip, Retain, MaxAhead, MaxOffset time.Duration
	MaxTxns                                int
	Clock                                  func() time.Duration
	Seed                                   uint64
	Check                                  bool
	StopTimeout                            time.Duration // also bounds how long calls of clients are waited for; 0 is 10 s
	Logger                                 *slog.Logger
	// Observe is told of each call of clients when it begins, and what it returns is called with
	// the answer or the error. nil: nobody is told.
	Observe func(method string) (end func(resp any, err error))
	// Committed gets how long each commit to a disk took. nil: nobody.
	Committed func(took time.Duration)
	// Retired, ByArrival, Speculate and Readers are as in store.Config.
	Retired, ByArrival bool
	Speculate          string
	Readers            int
	// Change answers steps of the agreement on the next epoch. nil: they are not answered.
	Change func(context.Context, *pb.ChangeRequest) (*pb.ChangeResponse, error)
	// Await returns when the machine's nodes may begin, and tells meanwhile what it waits for.
	// Until then the machine answers calls of Status and Change only. nil: they may begin.
	Await func(ctx context.Context, say func(what string)) error
}

// Members returns the IDs that a machine has, which its certificate must name.
func Members(t store.Topology, machine string) ([]protocol.ID, error) {
	i, j, ok := t.Find(machine)
	if !ok {
		return nil, fmt.Errorf("there is no machine %q in the topology", machine)
	}
	site := t.Sites[i]
	ids := []protocol.ID{site.CoordinatorID(j), site.GateID(j)}
	for _, k := range t.ShardsOf(i, j) {
		ids = append(ids, t.ServerID(i, k))
	}
	return ids, nil
}

// certified returns as which node's machine others know the machine of a server: one that came with
// a move has the certificate that it had before, and with it goes by its coordinator's name.
func certified(t store.Topology) func(protocol.ID) protocol.ID {
	as := map[protocol.ID]protocol.ID{}
	for i, s := range t.Sites {
		for j := range s.Machines {
			for _, k := range t.ShardsOf(i, j) {
				if t.ServerNumber(i, k) != k {
					as[t.ServerID(i, k)] = s.CoordinatorID(j)
				}
			}
		}
	}
	return func(id protocol.ID) protocol.ID { return cmp.Or(as[id], id) }
}

// A RefusedError says that a shard's server must not take part: most often because its disk was
// lost.
type RefusedError struct {
	Machine string
	Shard   int
	Reason  string
	Forgot  bool // the disk is lost, or older than what it had voted: its site has to be replaced
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("machine %s: shard %d must not take part: %s", e.Machine, e.Shard, e.Reason)
}

// Node is a machine. Its methods may be called concurrently.
type Node struct {
	cfg     Config
	site    int
	machine int
	host    *host.Host
	gate    *host.Node[store.Message]
	shards  []*shard
	// coordinator is nil if the protocol has none; speculation are the calls that it has not answered.
	coordinator *host.Node[store.Message]
	speculation callers.Table[store.SpeculationStatus]
	move        *move // nil: none of the shards' copies is being moved
	service     front.Server
	clients     net.Listener
	grpc        *grpc.Server
	health      *health.Server
	started     time.Time
	refused     chan *RefusedError // has room for one
	stopping    chan struct{}
	awaits      atomic.Pointer[string] // what Await waits for; nil: nothing any more
}

// Open opens a machine's disks and ports. It does nothing before Run, which must be called.
func Open(cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, started: time.Now(), refused: make(chan *RefusedError, 1), stopping: make(chan struct{})}
	if cfg.Await != nil {
		what := "it has not begun yet"
		n.awaits.Store(&what)
	}
	if err := n.open(); err != nil {
		for _, l := range []net.Listener{cfg.ClientListener, n.clients, n.cfg.PeerListener} {
			if l != nil {
				l.Close() // the first two may be the same
			}
		}
		return nil, fmt.Errorf("machine %s: %w", cfg.Machine, err)
	}
	return n, nil
}

func (n *Node) open() (err error) {
	cfg := &n.cfg
	if err := cfg.Topology.Validate(); err != nil {
		return err
	}
	if cfg.Protocol.NewServer == nil {
		return errors.New("Config.Protocol is missing")
	}
	ids, err := Members(cfg.Topology, cfg.Machine)
	if err != nil {
		return err
	}
	n.site, n.machine, _ = cfg.Topology.Find(cfg.Machine)
	site := cfg.Topology.Sites[n.site]
	if site.Fenced {
		return fmt.Errorf("its site %s is fenced", site.Name)
	}
	if (cfg.PeerTLS != nil) == cfg.Insecure || (cfg.ClientTLS != nil) == cfg.Insecure {
		return errors.New("either PeerTLS and ClientTLS or Insecure must be set")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.StopTimeout == 0 {
		cfg.StopTimeout = 10 * time.Second
	}
	name := certified(cfg.Topology)
	if err := checkCertificate(cfg.PeerTLS, ids, name); err != nil {
		return err
	}
	own := site.Machines[n.machine]
	if n.clients = cfg.ClientListener; n.clients == nil {
		if n.clients, err = net.Listen("tcp", own.Client); err != nil {
			return fmt.Errorf("client address: %w", err)
		}
	}
	if cfg.PeerListener == nil {
		if cfg.PeerListener, err = net.Listen("tcp", own.Peers); err != nil {
			return fmt.Errorf("peer address: %w", err)
		}
	}
	kin := kinshipOf(cfg)
	n.host, err = host.New(host.Config{
		Network: transport.Config{
			Cluster: kin.String(), Explain: kin.explain,
			IDs: ids, TLS: cfg.PeerTLS, CertifiedAs: name, Insecure: cfg.Insecure,
			Dial: cfg.PeerDial, MaxAge: maxAge(cfg.RoundTrip),
		},
		Listener: cfg.PeerListener, Clock: cfg.Clock, Seed: cfg.Seed, StopTimeout: cfg.StopTimeout, Check: cfg.Check,
		Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	if err := n.meet(); err != nil {
		return err
	}
	if err := n.addNodes(); err != nil {
		return err
	}
	n.serve()
	return nil
}

// meet tells the host where the nodes of other machines are.
func (n *Node) meet() error {
	for _, s := range n.cfg.Topology.Sites {
		if s.Fenced {
			continue
		}
		for _, m := range s.Machines {
			if m.Name == n.cfg.Machine {
				continue
			}
			ids, err := Members(n.cfg.Topology, m.Name)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := n.host.SetPeer(id, m.Peers); err != nil {
					return fmt.Errorf("machine %s: %w", m.Name, err)
				}
			}
		}
	}
	return nil
}

// maxAge returns how old a message to a machine that is away may be when that is back; 0: what the
// transport has. Nodes ask again after a few round trips, and a machine that was away carries out
// each decision that it is told, and fetches what it decides on, though it copies that anyway.
func maxAge(roundTrip time.Duration) time.Duration {
	if roundTrip == 0 {
		return 0
	}
	return max(4*roundTrip, 100*time.Millisecond)
}

// config returns that of one of the machine's nodes.
func (n *Node) config(id protocol.ID, layout store.Layout) store.Config {
	return store.Config{
		ID: id, Epoch: n.cfg.Topology.Epoch, Layout: layout, RoundTrip: n.cfg.RoundTrip, Retain: n.cfg.Retain,
		MaxAhead: n.cfg.MaxAhead, MaxOffset: n.cfg.MaxOffset, MaxTxns: n.cfg.MaxTxns, Retired: n.cfg.Retired,
		ByArrival: n.cfg.ByArrival, Speculate: n.cfg.Speculate, Readers: n.cfg.Readers,
	}
}

func (n *Node) addNodes() error {
	layout, err := n.cfg.Topology.Layout()
	if err != nil {
		return err
	}
	site := n.cfg.Topology.Sites[n.site]
	add := func(id protocol.ID, node protocol.Node[store.Message], err error, disk host.Disk, app func(store.Message)) (
		*host.Node[store.Message], error) {
		if err != nil {
			return nil, err
		}
		return host.Add(n.host, host.Spec[store.Message]{Group: group, ID: id, Node: node, Codec: n.cfg.Protocol.Codec,
			Disk: disk, App: app, Committed: n.cfg.Committed})
	}
	if n.cfg.Protocol.NewCoordinator != nil {
		coordinator, err := n.cfg.Protocol.NewCoordinator(n.config(site.CoordinatorID(n.machine), layout))
		if n.coordinator, err = add(site.CoordinatorID(n.machine), coordinator, err, nil, n.heard); err != nil {
			return err
		}
	}
	own, err := gate.New(n.config(site.GateID(n.machine), layout), n.site)
	if n.gate, err = add(site.GateID(n.machine), own, err, nil, n.service.Receive); err != nil {
		return err
	}
	for _, k := range n.cfg.Topology.ShardsOf(n.site, n.machine) {
		var disk host.Disk
		if n.cfg.Disk != nil {
			name := DiskName(store.Server{Shard: k, Number: n.cfg.Topology.ServerNumber(n.site, k)})
			if disk, err = n.cfg.Disk(name); err != nil {
				return fmt.Errorf("shard %d: %w", k, err)
			}
		}
		s := &shard{node: n, index: k}
		id := n.cfg.Topology.ServerID(n.site, k)
		server, err := n.cfg.Protocol.NewServer(n.config(id, layout))
		if s.host, err = add(id, server, err, disk, s.receive); err != nil {
			return err
		}
		n.shards = append(n.shards, s)
	}
	n.move = n.moving()
	return nil
}

// maxCalls bounds the calls of a connection that wait for an answer. It is well below
// store.Config.MaxWaiting: one connection does not fill the gate.
const maxCalls = 2048

// ShardName is how a machine calls a shard's server.
func ShardName(shard int) string { return fmt.Sprintf("shard-%d", shard) }

// DiskName is how a machine calls the disk of a shard's server. That of one that came with a move
// has a name of its own: an earlier server of the shard may have been here.
func DiskName(s store.Server) string {
	if s.Number == s.Shard {
		return ShardName(s.Shard)
	}
	return fmt.Sprintf("shard-%d-server-%d", s.Shard, s.Number)
}

// serve makes the service for clients.
func (n *Node) serve() {
	creds := insecure.NewCredentials()
	if n.cfg.ClientTLS != nil {
		creds = credentials.NewTLS(n.cfg.ClientTLS)
	}
	options := []grpc.ServerOption{
		grpc.Creds(creds),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		// Large transactions need no round trip for room.
		grpc.InitialWindowSize(windowBytes), grpc.InitialConnWindowSize(4 * windowBytes),
		grpc.MaxConcurrentStreams(maxCalls),
	}
	if n.cfg.Observe != nil {
		options = append(options, grpc.UnaryInterceptor(n.observe))
	}
	n.grpc = grpc.NewServer(options...)
	n.health = health.NewServer()
	healthpb.RegisterHealthServer(n.grpc, n.health)
	n.service.Cluster, n.service.Protocol = n.cfg.Cluster, n.cfg.Protocol.Title()
	n.service.Epoch, n.service.Shards = n.cfg.Topology.Epoch, n.cfg.Topology.Shards
	n.service.Deliver = func(ctx context.Context, msg store.Message) error {
		if err := n.awaiting(); err != nil {
			return err
		}
		return n.gate.Deliver(ctx, msg)
	}
	n.service.Describe = n.Status
	n.service.Alter = n.cfg.Change
	if n.cfg.Protocol.Leads {
		n.service.Lead = n.HandOver
	}
	n.service.Snapshots = n.cfg.Protocol.Snapshots
	n.service.Observe = n.cfg.Observe
	n.service.Stopping = n.stopping
	pb.RegisterStoreServer(n.grpc, &n.service)
	n.setHealth(healthpb.HealthCheckResponse_NOT_SERVING)
}

// observe is around clients' calls that have a stream each.
func (n *Node) observe(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if !strings.HasPrefix(info.FullMethod, "/"+pb.Store_ServiceDesc.ServiceName+"/") {
		return handler(ctx, req)
	}
	end := n.cfg.Observe(path.Base(info.FullMethod))
	resp, err := handler(ctx, req)
	end(resp, err)
	return resp, err
}

// windowBytes is what a client may send ahead: as much as a transaction may have.
const windowBytes = store.MaxTxnBytes

// Clients returns the address at which the machine listens for clients.
func (n *Node) Clients() net.Addr { return n.clients.Addr() }

// Run runs the machine until ctx ends: it lets clients' calls end, makes durable what was written,
// and returns nil. The error is a *RefusedError if a shard must not take part.
func (n *Node) Run(ctx context.Context) error {
	log := n.cfg.Logger
	log.Info("store: machine starts", "machine", n.cfg.Machine, "site", n.cfg.Topology.Sites[n.site].Name, "epoch",
		n.cfg.Topology.Epoch, "shards", len(n.shards),
		"clients", n.clients.Addr().String())
	// The nodes outlive the service, whose last calls need them.
	nodes, stopNodes := context.WithCancel(context.WithoutCancel(ctx))
	defer stopNodes()
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error {
		if err := n.await(ctx); err != nil {
			n.cfg.PeerListener.Close() // which the host would have closed
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		return n.host.Run(nodes)
	})
	all.Go(func() error {
		if err := n.grpc.Serve(n.clients); !errors.Is(err, grpc.ErrServerStopped) { // it was stopped before it served
			return err
		}
		return nil
	})
	all.Go(func() error {
		n.serveWhenReady(ctx)
		return nil
	})
	if n.move != nil {
		all.Go(func() error {
			n.runMove(ctx, n.move)
			return nil
		})
	}
	all.Go(func() error {
		var err error
		select {
		case <-ctx.Done():
		case refused := <-n.refused:
			err = refused
		}
		n.stopService()
		stopNodes()
		return err
	})
	err := all.Wait()
	if err == nil {
		log.Info("store: machine stopped", "machine", n.cfg.Machine)
	}
	return err
}

// await waits until the machine's nodes may begin.
func (n *Node) await(ctx context.Context) error {
	if n.cfg.Await == nil {
		return nil
	}
	if err := n.cfg.Await(ctx, func(what string) { n.awaits.Store(&what) }); err != nil {
		return err
	}
	n.awaits.Store(nil)
	return nil
}

// awaiting says what the machine waits for before its nodes begin; nil: they have.
func (n *Node) awaiting() error {
	if what := n.awaits.Load(); what != nil {
		return status.Error(codes.Unavailable, "the machine waits: "+*what)
	}
	return nil
}

// stopService lets clients' calls end, but not for ever.
func (n *Node) stopService() {
	n.health.Shutdown()
	close(n.stopping)
	stopped := make(chan struct{})
	go func() {
		n.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(n.cfg.StopTimeout / 4):
		n.grpc.Stop()
		<-stopped
	}
}
