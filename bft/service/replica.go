package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/metrics"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wal"
)

// ReplicaOptions are what a replica takes beside its file. The zero value is right for a process of
// its own.
type ReplicaOptions struct {
	Logger   *slog.Logger // nil: none
	Listener net.Listener // nil: one at the address of the file
	// Dial connects to a member's address. nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Traitor has the replica betray the others, by one of its protocol's strategies: to see what
	// becomes of it. "" is an honest replica.
	Traitor string
}

// A Replica is one replica of a group with its host and disk. Its methods may be called
// concurrently.
type Replica struct {
	cfg      *Config
	log      *slog.Logger
	listener net.Listener
	metrics  net.Listener // nil: none
	registry *prometheus.Registry
	commits  prometheus.Histogram
	store    *wal.Store
	host     *host.Host
	codec    *metered
	node     *host.Node[bft.Message]
	status   *host.Node[statusMessage]
	asking   callers.Table[bft.Standing]
	refused  chan string
	started  time.Time
}

// A RefusedError says that a replica must not take part with the disk that it has.
type RefusedError struct {
	ID     protocol.ID
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("replica %d must not take part: %s", e.ID, e.Reason)
}

// maxQuestions bounds the questions about a replica's status that are not answered.
const maxQuestions = 256

// OpenReplica opens a replica's disk and port. The replica does nothing before Run, which must be
// called.
func OpenReplica(cfg *Config, o ReplicaOptions) (*Replica, error) {
	if cfg == nil || cfg.group == nil {
		return nil, errors.New("replica: there is no configuration that ReadConfig has read")
	}
	r := &Replica{
		cfg: cfg, log: o.Logger, listener: o.Listener, started: time.Now(), refused: make(chan string, 1),
		registry: metrics.NewRegistry(),
		commits: prometheus.NewHistogram(metrics.Durations("foresay_bft_disk_commit_duration_seconds",
			"How long commits to the disk took until they were durable.")),
	}
	r.asking.Most = maxQuestions
	r.registry.MustRegister(r.commits)
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if err := r.open(o); err != nil {
		return nil, fmt.Errorf("replica %d: %w", cfg.ID, errors.Join(err, r.close()))
	}
	return r, nil
}

// open does what OpenReplica says; what it took before an error, close gives back.
func (r *Replica) open(o ReplicaOptions) error {
	cfg := r.cfg
	node, err := r.newNode(o.Traitor)
	if err != nil {
		return err
	}
	network, err := cfg.group.network(cfg.key)
	if err != nil {
		return err
	}
	network.IDs, network.Dial = []protocol.ID{cfg.ID}, o.Dial
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
	if r.host, err = host.New(host.Config{Network: network, Listener: r.listener, Logger: r.log}); err != nil {
		return err
	}
	for _, m := range cfg.group.Members {
		if err := r.host.SetPeer(m.ID, m.Address); err != nil {
			return err
		}
	}
	disk, err := r.openDisk()
	if err != nil {
		return err
	}
	r.codec = newMetered(cfg.group.proto.Codec, cfg.group.name(), bft.Ed25519{})
	r.node, err = host.Add(r.host, host.Spec[bft.Message]{
		Group: nodeGroup, ID: cfg.ID, Node: node, Codec: r.codec, Disk: disk,
		App: r.onMessage, Committed: func(took time.Duration) { r.commits.Observe(took.Seconds()) },
	})
	if err != nil {
		return err
	}
	r.status, err = host.Add(r.host, host.Spec[statusMessage]{
		Group: statusGroup, ID: cfg.ID, Node: statusNode{}, Codec: statusCodec(), App: r.onStatus,
	})
	return err
}

// newNode returns the replica's node.
func (r *Replica) newNode(strategy string) (protocol.Node[bft.Message], error) {
	g := r.cfg.group
	machine, err := catalog.Service(g.Service)
	if err != nil {
		return nil, err
	}
	cfg := bft.ReplicaConfig{ID: r.cfg.ID, Directory: g.directory, Scheme: g.scheme(), Signer: bft.NewSigner(r.cfg.key),
		Service: machine, RoundTrip: g.roundTrip}
	node, err := g.proto.NewReplica(cfg)
	if err != nil {
		return nil, err
	}
	if strategy != "" {
		if !slices.Contains(g.proto.Strategies, strategy) {
			return nil, fmt.Errorf("%s has no traitor %q; want one of %s", g.proto.Name, strategy,
				strings.Join(g.proto.Strategies, ", "))
		}
		node = g.proto.Traitor(strategy)(node, cfg)
	}
	stands, ok := node.(interface{ Standing() bft.Standing })
	if !ok {
		return nil, fmt.Errorf("%s does not tell how a replica stands", g.proto.Name)
	}
	return watched{node, stands.Standing}, nil
}

// openDisk finds the replica's log, which must be nobody else's. A replica that has lost it may
// have said what it does not know any more: what shows that it has begun is not with the log.
func (r *Replica) openDisk() (*waldisk.Disk, error) {
	cfg := r.cfg
	begun := cfg.Data + ".begun"
	_, err := os.Stat(begun)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	before := err == nil
	options := wal.Options{Logger: r.log, CacheBytes: 4 << 20, ReadCacheBytes: 512 << 10}
	if r.store, err = wal.Open(cfg.Data, options); err != nil {
		return nil, err
	}
	names, err := r.store.Names()
	if err != nil {
		return nil, err
	}
	own := fmt.Sprintf("%s/replica-%d/members-%s", cfg.group.proto.Name, cfg.ID, cfg.group.fingerprint())
	for _, name := range names {
		if name != own {
			return nil, fmt.Errorf("the directory %s is that of %s, not of %s", cfg.Data, name, own)
		}
	}
	if before && len(names) == 0 {
		return nil, &RefusedError{cfg.ID, fmt.Sprintf("its disk %s was lost, as the file %s shows, and it may have promised "+
			"what it does not know any more; if it is to be one of those that may be faulty, remove that file", cfg.Data, begun)}
	}
	disk, err := waldisk.New(r.store, own)
	if err != nil || before {
		return disk, err
	}
	return disk, writeDurably(begun)
}

// writeDurably makes an empty file that outlives the machine.
func writeDurably(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
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

// onMessage takes what the replica says to its application. It is called by the replica's
// goroutine, and does not wait.
func (r *Replica) onMessage(msg bft.Message) {
	switch m := msg.(type) {
	case standingTold:
		r.asking.Answer(m.number, m.Standing)
	case bft.Repairing:
		r.log.Warn("replica: what is on its disk is not what it should be, and is fetched from others", "found", m.Reason)
	case bft.Refused:
		select {
		case r.refused <- m.Reason:
		default:
		}
	}
}

// Run runs the replica until ctx ends; it then makes durable what was written, and returns nil. The
// error is a *RefusedError if the replica must not take part.
func (r *Replica) Run(ctx context.Context) error {
	r.log.Info("replica: starts", "id", r.cfg.ID, "group", r.cfg.group.name(), "address", r.listener.Addr().String(),
		"data", r.cfg.Data, "disk", r.node.Disk())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.host.Run(ctx) })
	group.Go(func() error {
		select {
		case reason := <-r.refused:
			return &RefusedError{r.cfg.ID, reason}
		case <-ctx.Done():
			return nil
		}
	})
	if r.metrics != nil {
		group.Go(func() error { return metrics.Serve(ctx, r.metrics, r.metricsHandler()) })
	}
	err := group.Wait()
	if closed := r.close(); closed != nil && !errors.Is(err, closed) {
		err = errors.Join(err, closed)
	}
	if err == nil {
		r.log.Info("replica: stopped", "id", r.cfg.ID)
	}
	return err
}
