package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
)

// farewell is how long a replica still talks to a member that was removed, which is to learn of it.
const farewell = 30 * time.Second

// ReplicaOptions are what a replica takes beside its file. The zero value is right for a process of
// its own.
type ReplicaOptions struct {
	Logger   *slog.Logger // nil: none
	Listener net.Listener // nil: one at the address of the file
	// Dial connects to a member's address. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)

	clock func() time.Duration // of the host, where the protocol is Timed; nil is the time of day
}

// A Replica is one replica of the service: of each of its groups, if it has several. Its methods
// may be called concurrently.
type Replica struct {
	cfg      *Config
	log      *slog.Logger
	listener net.Listener
	metrics  net.Listener // nil: none
	registry *prometheus.Registry
	executed *prometheus.HistogramVec
	commits  prometheus.Histogram
	store    *wal.Store
	host     *host.Host
	groups   []*replicaGroup
	status   *host.Node[statusMessage]
	beats    *hostBeats // nil if there is one group
	caller   caller
	watchers *watchers
	started  time.Time
	news     *news
	joiners  chan Member              // replicas that wait to be added
	learners atomic.Pointer[[]Member] // those that do, as far as is known here
}

// A RefusedError says that a replica must not take part under its identity: most often because its
// disk was lost.
type RefusedError struct {
	ID     protocol.ID
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("replica %d must not take part: %s", e.ID, e.Reason)
}

// OpenReplica opens a replica's disk and port. The replica does nothing before Run, which must be
// called.
func OpenReplica(cfg *Config, o ReplicaOptions) (*Replica, error) {
	if cfg == nil {
		return nil, errors.New("replica: there is no configuration")
	}
	own := *cfg
	if err := own.check(); err != nil {
		return nil, fmt.Errorf("replica %d: config: %w", cfg.ID, err)
	}
	cfg = &own
	r := &Replica{
		cfg: cfg, log: o.Logger, listener: o.Listener, started: time.Now(), news: newNews(cfg.count()),
		watchers: newWatchers(cfg.count()), joiners: make(chan Member, 16), registry: metrics.NewRegistry(),
		executed: prometheus.NewHistogramVec(metrics.Durations("foresay_smr_command_duration_seconds",
			"How long after they came here commands were executed, of those that clients asked this replica for."),
			[]string{"outcome"}),
		commits: prometheus.NewHistogram(metrics.Durations("foresay_smr_disk_commit_duration_seconds",
			"How long commits to the disk took until they were durable.")),
	}
	r.registry.MustRegister(r.executed, r.commits)
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.caller = caller{replica: r, dial: o.Dial}
	if err := r.open(o); err != nil {
		return nil, fmt.Errorf("replica %d: %w", cfg.ID, r.end(err))
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
	network := cfg.network()
	network.TLS, network.Dial = tlsConfig, o.Dial
	if err := network.CheckSender(cfg.ID); err != nil {
		return fmt.Errorf("tls.cert: this is not replica %d's certificate: %w", cfg.ID, err)
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
	var clock func() time.Duration
	if cfg.proto.Timed {
		clock = o.clock
		if clock == nil {
			clock = host.TimeOfDay
		}
	}
	r.host, err = host.New(host.Config{Network: network, Listener: r.listener, Logger: r.log, Clock: clock})
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

// diskCaches returns a store's options with small caches: a replica reads its disk when it starts,
// and what it has read is in its state then.
func diskCaches() wal.Options { return wal.Options{CacheBytes: 4 << 20, ReadCacheBytes: 512 << 10} }

// addNodes adds the replicas, on their disks, and the node that hands out their status.
func (r *Replica) addNodes() error {
	var err error
	options := diskCaches()
	options.Logger = r.log
	if r.store, err = wal.Open(r.cfg.Data, options); err != nil {
		return err
	}
	r.status, err = host.Add(r.host, host.Spec[statusMessage]{
		Group: statusGroup, ID: r.cfg.ID, Node: statusNode{}, Codec: statusCodec(), App: r.onStatus,
	})
	if err != nil {
		return err
	}
	if err := r.addHostBeats(); err != nil {
		return err
	}
	for i := range r.cfg.count() {
		if err := r.addGroup(i); err != nil {
			return err
		}
	}
	return nil
}

// end closes the replica, and returns why it has ended. That the disk is damaged is said once, and
// instead of a refusal: a replica that does not find what it has written refuses to take part.
func (r *Replica) end(err error) error {
	closed := r.close()
	_, damaged := errors.AsType[*wal.DamageError](closed)
	_, refused := errors.AsType[*RefusedError](err)
	switch {
	case err == nil, damaged && refused:
		return closed
	case closed == nil, errors.Is(err, closed):
		return err
	}
	return errors.Join(err, closed)
}

// close gives back what OpenReplica took.
func (r *Replica) close() error {
	if r.listener != nil {
		r.listener.Close() // the host may have closed it before
	}
	if r.metrics != nil {
		r.metrics.Close() // likewise
	}
	if r.store == nil {
		return nil
	}
	return r.store.Close()
}

// Run runs the replica until ctx ends; it then hands over, if it leads, makes durable what was
// written, and returns nil. The error is a *RefusedError if the replica must not take part.
func (r *Replica) Run(ctx context.Context) error {
	r.log.Info("replica: starts", "id", r.cfg.ID, "protocol", r.cfg.Protocol, "cluster", r.cfg.Cluster, "address",
		r.listener.Addr().String(),
		"data", r.cfg.Data, "disk", r.groups[0].disk, "groups", len(r.groups))
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
	for _, g := range r.groups {
		group.Go(func() error { return g.lessor.run(ctx) })
	}
	if r.metrics != nil {
		group.Go(func() error { return metrics.Serve(ctx, r.metrics, r.metricsHandler()) })
	}
	err := group.Wait()
	r.caller.close()
	err = r.end(err)
	if err == nil {
		r.log.Info("replica: stopped", "id", r.cfg.ID)
	}
	return err
}

// follow does what the replica's news ask for: it keeps the addresses of the members, and ends if
// the replica is refused.
func (r *Replica) follow(ctx context.Context) error {
	peers := &peerTable{Replica: r, known: map[protocol.ID]bool{}, leaving: map[protocol.ID]time.Time{},
		waiting: map[protocol.ID]string{}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	peers.announce()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.news.wake:
			groups := r.news.take()
			if reason := verdict(groups); reason != "" {
				return &RefusedError{r.cfg.ID, reason}
			}
			peers.change(groups)
			for _, m := range r.news.takeJoining() {
				peers.meet(m)
			}
		case m := <-r.joiners:
			peers.expect(m)
		case now := <-tick.C:
			peers.tidy(now)
			r.watchers.sweep(now)
			r.say(nil)
			peers.announce()
		}
	}
}

// network returns what the file says of the host's network.
func (c *Config) network() transport.Config {
	return transport.Config{
		Cluster: clusterName(c.Cluster, c.Protocol, c.Recovery, c.Routing), IDs: []protocol.ID{c.ID},
		FirstClient: firstClient, Insecure: c.Insecure, QueueBytes: c.SendQueueBytes,
	}
}

// addressOf returns where a member is: the file's address goes before the log's, so that a host can
// be moved.
func (c *Config) addressOf(m smr.Member) string {
	for _, own := range c.Members {
		if own.ID == m.ID {
			return own.Address
		}
	}
	return cmp.Or(m.Address, "unknown:0")
}
