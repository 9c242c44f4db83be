package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
)

// The groups of the nodes that each host has.
const (
	serviceGroup transport.Group = 1
	statusGroup  transport.Group = 2
)

// farewell is how long a replica still talks to a member that was removed, which is to learn of it.
const farewell = 30 * time.Second

// ReplicaOptions are what a replica takes beside its file. The zero value is right for a process of its own.
type ReplicaOptions struct {
	Logger   *slog.Logger // nil: none
	Listener net.Listener // nil: one at the address of the file
	// Dial connects to a member's address. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// A Replica is one replica of the service. Its methods may be called concurrently.
type Replica struct {
	cfg      *Config
	log      *slog.Logger
	listener net.Listener
	metrics  net.Listener // nil: none
	registry *prometheus.Registry
	executed *prometheus.HistogramVec
	commits  prometheus.Histogram
	store    *wal.Store
	machine  *kv.Store // of the node's goroutine
	disk     string
	host     *host.Host
	node     *host.Node[smr.Message]
	status   *host.Node[statusMessage]
	lessor   *lessor
	started  time.Time
	desk     questionDesk[smr.Status]
	handing  questionDesk[smr.HandingOver]
	refused  chan string       // has an element if the replica must not take part
	members  chan []smr.Member // has the newest members if they have changed
	joiners  chan Member       // replicas that wait to be added
}

// A RefusedError says that a replica must not take part under its identity: most often because its disk was lost.
type RefusedError struct {
	ID     protocol.ID
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("replica %d must not take part: %s", e.ID, e.Reason)
}

// OpenReplica opens a replica's disk and port. The replica does nothing before Run, which must be called.
func OpenReplica(cfg *Config, o ReplicaOptions) (*Replica, error) {
	r := &Replica{
		cfg: cfg, log: o.Logger, listener: o.Listener, started: time.Now(), refused: make(chan string, 1), members: make(chan []smr.Member, 1),
		joiners: make(chan Member, 16), registry: metrics.NewRegistry(),
		executed: prometheus.NewHistogramVec(metrics.Durations("foresay_smr_command_duration_seconds",
			"How long after they came here commands were executed, of those that clients asked this replica for."), []string{"outcome"}),
		commits: prometheus.NewHistogram(metrics.Durations("foresay_smr_disk_commit_duration_seconds", "How long commits to the disk took until they were durable.")),
	}
	r.registry.MustRegister(r.executed, r.commits)
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.lessor = newLessor(cfg, o, r.log)
	if err := r.open(o); err != nil {
		return nil, fmt.Errorf("replica %d: %w", cfg.ID, errors.Join(err, r.close()))
	}
	return r, nil
}

// open does what OpenReplica says; what it took before an error, close gives back.
func (r *Replica) open(o ReplicaOptions) error {
	cfg := r.cfg
	tlsConfig, err := cfg.TLS.Load()
	if err != nil {
		return err
	}
	if r.listener == nil {
		if r.listener, err = net.Listen("tcp", cfg.Listen); err != nil {
			return err
		}
	}
	if cfg.Metrics != "" {
		if r.metrics, err = net.Listen("tcp", cfg.Metrics); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	network := transport.Config{
		Cluster: clusterName(cfg.Cluster, cfg.Protocol, cfg.Generation), IDs: []protocol.ID{cfg.ID}, FirstClient: firstClient, TLS: tlsConfig, Insecure: cfg.Insecure, Dial: o.Dial,
	}
	r.host, err = host.New(host.Config{Network: network, Listener: r.listener, Logger: r.log})
	if err != nil {
		return err
	}
	for _, m := range cfg.Members {
		if err := r.host.SetPeer(m.ID, m.Address); err != nil {
			return err
		}
	}
	return r.addNodes()
}

// addNodes adds the replica, on its disk, and the node that hands out its status.
func (r *Replica) addNodes() error {
	var err error
	if r.store, err = wal.Open(r.cfg.Data, wal.Options{Logger: r.log}); err != nil {
		return err
	}
	disk, err := openDisk(r.cfg, r.store)
	if err != nil {
		return err
	}
	r.disk = disk.Identity()
	r.machine = kv.New()
	r.machine.ObserveLeases(r.lessor.observe)
	cfg := r.cfg.replica(r.machine)
	cfg.Executed = func(o smr.Outcome, took time.Duration) {
		r.executed.WithLabelValues(o.String()).Observe(took.Seconds())
	}
	node, err := r.cfg.proto.NewReplica(cfg)
	if err != nil {
		return err
	}
	r.status, err = host.Add(r.host, host.Spec[statusMessage]{
		Group: statusGroup, ID: r.cfg.ID, Node: statusNode{}, Codec: statusCodec(), App: r.onStatus,
	})
	if err != nil {
		return err
	}
	r.node, err = host.Add(r.host, host.Spec[smr.Message]{
		Group: serviceGroup, ID: r.cfg.ID, Node: node, Codec: r.cfg.proto.Codec, Disk: disk, App: r.onMessage,
		Committed: func(took time.Duration) { r.commits.Observe(took.Seconds()) },
	})
	return err
}

// openDisk finds a replica's part of its directory, which must be nobody else's.
func openDisk(cfg *Config, store *wal.Store) (*waldisk.Disk, error) {
	name := fmt.Sprintf("%s/replica-%d", cfg.Protocol, cfg.ID)
	if cfg.Generation != "" {
		name += "/generation-" + cfg.Generation
	}
	names, err := store.Names()
	if err != nil {
		return nil, err
	}
	for _, other := range names {
		if other != name {
			return nil, fmt.Errorf("the directory %s is that of %s, not of %s", cfg.Data, other, name)
		}
	}
	return waldisk.New(store, name)
}

// close gives back what OpenReplica took.
func (r *Replica) close() error {
	var errs []error
	if r.listener != nil {
		r.listener.Close() // the host may have closed it before
	}
	if r.metrics != nil {
		r.metrics.Close() // likewise
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	return errors.Join(errs...)
}

// Run runs the replica until ctx ends; it then hands over, if it leads, makes durable what was written, and returns nil. The error is a *RefusedError if the replica must not
// take part.
func (r *Replica) Run(ctx context.Context) error {
	r.log.Info("replica: starts", "id", r.cfg.ID, "protocol", r.cfg.Protocol, "cluster", r.cfg.Cluster, "address", r.listener.Addr().String(),
		"data", r.cfg.Data, "disk", r.disk)
	asked := ctx
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		select {
		case <-asked.Done():
			r.retire()
			end()
		case <-ctx.Done():
		}
		return nil
	})
	group.Go(func() error { return r.host.Run(ctx) })
	group.Go(func() error { return r.follow(ctx) })
	group.Go(func() error { return r.lessor.run(ctx) })
	if r.metrics != nil {
		group.Go(func() error { return metrics.Serve(ctx, r.metrics, r.metricsHandler()) })
	}
	err := errors.Join(group.Wait(), r.close())
	if err == nil {
		r.log.Info("replica: stopped", "id", r.cfg.ID)
	}
	return err
}

// onMessage takes what the replica says to its application. It is called by the replica's goroutine, and does not wait.
func (r *Replica) onMessage(msg smr.Message) {
	switch m := msg.(type) {
	case smr.Status:
		r.desk.take(m.ID, m)
	case smr.HandingOver:
		r.handing.take(m.ID, m)
	case smr.MembersChanged:
		r.lessor.know(m.Members)
		select {
		case <-r.members: // superseded
		default:
		}
		r.members <- m.Members
	case smr.Refused:
		select {
		case r.refused <- m.Reason:
		default:
		}
	}
}

// follow does what the replica's news ask for: it keeps the addresses of the members, and ends if the replica is refused.
func (r *Replica) follow(ctx context.Context) error {
	peers := &peerTable{Replica: r, known: map[protocol.ID]bool{}, leaving: map[protocol.ID]time.Time{}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	peers.announce()
	for {
		select {
		case <-ctx.Done():
			return nil
		case reason := <-r.refused:
			return &RefusedError{r.cfg.ID, reason}
		case members := <-r.members:
			peers.change(members)
		case m := <-r.joiners:
			peers.expect(m)
		case now := <-tick.C:
			peers.tidy(now)
			peers.announce()
		}
	}
}

// addressOf returns where a member is: the file's address goes before the log's, so that a host can be moved.
func (c *Config) addressOf(m smr.Member) string {
	for _, own := range c.Members {
		if own.ID == m.ID {
			return own.Address
		}
	}
	return cmp.Or(m.Address, "unknown:0")
}
