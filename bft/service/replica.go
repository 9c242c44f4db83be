package service

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
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
	Logger *slog.Logger // nil: none
	// Listen returns a listener, and when members or keys change another one at the same address. nil:
	// one of TCP, at the address of the file.
	Listen func() (net.Listener, error)
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
	o        ReplicaOptions
	log      *slog.Logger
	metrics  net.Listener // nil: none
	registry *prometheus.Registry
	commits  prometheus.Histogram
	refused  chan string
	started  time.Time
	life     atomic.Pointer[life] // the present one
}

// A life is a replica's time with the same members and keys. With others it is started again, from
// its disk: so no connection and no key is left of those before.
type life struct {
	members  *bft.Directory // of the epoch by whose keys the host goes
	listener net.Listener
	store    *wal.Store
	host     *host.Host
	codec    *metered
	node     *host.Node[bft.Message]
	status   *host.Node[statusMessage]
	turned   chan *bft.Directory // has one if there are other members
	asking   callers.Table[bft.Standing]
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
		cfg: cfg, o: o, log: o.Logger, started: time.Now(), refused: make(chan string, 1),
		registry: metrics.NewRegistry(),
		commits: prometheus.NewHistogram(metrics.Durations("foresay_bft_disk_commit_duration_seconds",
			"How long commits to the disk took until they were durable.")),
	}
	r.registry.MustRegister(r.commits)
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.o.Listen == nil {
		r.o.Listen = func() (net.Listener, error) { return net.Listen("tcp", cfg.Listen) }
	}
	err := r.openMetrics()
	if err == nil {
		err = r.open(cfg.group.directory)
	}
	if err != nil {
		return nil, fmt.Errorf("replica %d: %w", cfg.ID, errors.Join(err, r.close()))
	}
	return r, nil
}

func (r *Replica) openMetrics() (err error) {
	if r.cfg.Metrics == "" {
		return nil
	}
	if r.metrics, err = net.Listen("tcp", r.cfg.Metrics); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// open begins a life with some members.
func (r *Replica) open(members *bft.Directory) error {
	l := &life{members: members, turned: make(chan *bft.Directory, 1)}
	l.asking.Most = maxQuestions
	if err := r.begin(l); err != nil {
		return errors.Join(err, l.close())
	}
	r.life.Store(l)
	return nil
}

// begin opens what a life has; what it took before an error, close gives back.
func (r *Replica) begin(l *life) error {
	cfg, members := r.cfg, l.members
	next, err := cfg.turnKeys(members)
	if err != nil {
		return err
	}
	node, err := r.newNode(next)
	if err != nil {
		return err
	}
	network, err := cfg.group.network(members, cfg.key)
	if err != nil {
		return err
	}
	network.IDs, network.Dial = []protocol.ID{cfg.ID}, r.o.Dial
	if l.listener, err = r.o.Listen(); err != nil {
		return err
	}
	if l.host, err = host.New(host.Config{Network: network, Listener: l.listener, Logger: r.log}); err != nil {
		return err
	}
	for _, m := range members.Members {
		if err := l.host.SetPeer(m.ID, m.Address); err != nil {
			return err
		}
	}
	disk, err := r.openDisk(l)
	if err != nil {
		return err
	}
	l.codec = newMetered(cfg.group.proto.Codec, cfg.group.name(), bft.Ed25519{})
	l.node, err = host.Add(l.host, host.Spec[bft.Message]{
		Group: nodeGroup, ID: cfg.ID, Node: node, Codec: l.codec, Disk: disk,
		App: r.onMessage, Committed: func(took time.Duration) { r.commits.Observe(took.Seconds()) },
	})
	if err != nil {
		return err
	}
	l.status, err = host.Add(l.host, host.Spec[statusMessage]{
		Group: statusGroup, ID: cfg.ID, Node: statusNode{}, Codec: statusCodec(), App: r.onStatus,
	})
	return err
}

// newNode returns the replica's node.
func (r *Replica) newNode(next ed25519.PrivateKey) (protocol.Node[bft.Message], error) {
	g, strategy := r.cfg.group, r.o.Traitor
	machine, err := catalog.Service(g.Service)
	if err != nil {
		return nil, err
	}
	cfg := bft.ReplicaConfig{ID: r.cfg.ID, Directory: g.directory, Scheme: g.scheme(), Signer: bft.NewSigner(r.cfg.key),
		Service: machine, RoundTrip: g.roundTrip}
	if next != nil {
		cfg.NextSigner = bft.NewSigner(next)
	}
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
func (r *Replica) openDisk(l *life) (*waldisk.Disk, error) {
	cfg := r.cfg
	keys, before, err := cfg.begunWith()
	if err != nil {
		return nil, err
	}
	before = before && (len(keys) == 0 || slices.Contains(keys, publicText(cfg.key)))
	options := wal.Options{Logger: r.log, CacheBytes: 4 << 20, ReadCacheBytes: 512 << 10}
	if l.store, err = wal.Open(cfg.Data, options); err != nil {
		return nil, err
	}
	names, err := l.store.Names()
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
			"what it does not know any more: make it another key ('foresay bft init --join'), and replace it", cfg.Data,
			cfg.begunFile())}
	}
	disk, err := waldisk.New(l.store, own)
	if err != nil {
		return disk, err
	}
	return disk, cfg.begin(cfg.key)
}

// close gives back what OpenReplica took.
func (r *Replica) close() error {
	if r.metrics != nil {
		r.metrics.Close() // who served it may have closed it before
	}
	if l := r.life.Load(); l != nil {
		return l.close()
	}
	return nil
}

// close gives back what the life has taken.
func (l *life) close() error {
	if l.listener != nil {
		l.listener.Close() // the host may have closed it before
	}
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// onMessage takes what the replica says to its application. It is called by the replica's
// goroutine, and does not wait.
func (r *Replica) onMessage(msg bft.Message) {
	switch m := msg.(type) {
	case standingTold:
		r.life.Load().asking.Answer(m.number, m.Standing)
	case bft.Repairing:
		r.log.Warn("replica: what is on its disk is not what it should be, and is fetched from others", "found", m.Reason)
	case bft.Turned:
		if l := r.life.Load(); m.Directory.Epoch != l.members.Epoch {
			select {
			case <-l.turned: // it is later
			default:
			}
			l.turned <- m.Directory // nobody else puts any there
		}
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
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		for {
			members, err := r.live(ctx)
			if err != nil || members == nil {
				return err
			}
			if err := r.life.Load().close(); err != nil {
				return err
			}
			if err := r.open(members); err != nil {
				return fmt.Errorf("replica %d: epoch %d: %w", r.cfg.ID, members.Epoch, err)
			}
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

// live lives until ctx ends, or there are other members, which it returns.
func (r *Replica) live(ctx context.Context) (turned *bft.Directory, err error) {
	l := r.life.Load()
	r.log.Info("replica: starts", "id", r.cfg.ID, "group", r.cfg.group.name(), "epoch", l.members.Epoch,
		"address", l.listener.Addr().String(), "data", r.cfg.Data, "disk", l.node.Disk())
	switch own := l.members.KeyOf(r.cfg.ID); {
	case own == bft.NewSigner(r.cfg.key).Key():
	case !l.members.Member(r.cfg.ID):
		r.log.Warn("replica: it is no member, and only tells others how epochs have ended", "epoch", l.members.Epoch)
	default:
		r.log.Warn("replica: another key than this one's is that of the member", "epoch", l.members.Epoch, "member", own)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.host.Run(ctx) })
	group.Go(func() error { r.learn(ctx, l); return nil })
	group.Go(func() error {
		select {
		case reason := <-r.refused:
			return &RefusedError{r.cfg.ID, reason}
		case turned = <-l.turned:
			stop()
		case <-ctx.Done():
		}
		return nil
	})
	err = group.Wait()
	return turned, err
}
