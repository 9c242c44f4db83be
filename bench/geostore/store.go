package geostore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// Config is what a Store is made from.
type Config struct {
	// Protocol is that of the store. The zero value is Replicated Commit.
	Protocol store.Protocol
	// Matrix has the sites and how far they are from each other.
	Matrix wan.Matrix
	Shards int // at each site that has a copy, all on one machine
	// Placement is as in store.Topology.
	Placement [][]string
	// Keys is how many keys there are from the start, k0 and so on, each with a value of
	// ValueBytes: the protocol must have a Preload. 0: a key that is not there may be read, as
	// nobody may have written it yet.
	Keys       uint64
	ValueBytes int
	// Declared says that clients declare all keys of a transaction when it begins, and Once that they
	// make another one if it is aborted, and do not try it again.
	Declared, Once bool
	// Predicted is of how many reads in a hundred clients have a right guess at once, in mode
	// Predicated and as long as nobody else writes the key just then.
	Predicted int
	// ReadLevel is what transactions that only read ask for; 0: what the store has.
	ReadLevel client.Level
	// Offset is how far the clocks of the first and the last site's machines are apart; those of the
	// others are in between, at even distances.
	Offset time.Duration
	// MaxOffset is what machines are told of that; 0 is their default.
	MaxOffset time.Duration
	// ByArrival is as in store.Config.
	ByArrival bool
	// Dir, if not empty, is where disks are: an empty directory. Empty: in memory.
	Dir string
	// Loopback says that the network is TCP on the loopback interface, on the wall clock. If not,
	// it is in memory.
	Loopback bool
	// Sync is how long a sync of a disk in memory takes: see the package's documentation.
	Sync time.Duration
	// Retain is how long machines remember transactions; 0 is their default.
	Retain time.Duration
	// Seed is for all chances of machines and clients, and for the network's.
	Seed uint64
	// Loading, if not nil, is told how many of all keys are loaded on disks in a directory.
	Loading func(done, all uint64)
	// Logger gets what machines report. nil is none.
	Logger *slog.Logger
}

// A Store is running machines, one at each site, and the network between them.
type Store struct {
	cfg      Config
	topology store.Topology
	network  *shape.Network
	longest  time.Duration // round trip, for timeouts
	machines []*machine
	stop     context.CancelFunc
	running  *errgroup.Group
	failed   context.Context // ends with the cause when a machine fails
	oracle   *oracle         // nil: clients guess nothing at once
}

// Purposes of seeds.
const (
	networkSeed  = 1
	oracleSeed   = 2
	machineSeeds = 1 << 16
	clientSeeds  = 1 << 32
)

// leastRoundTrip keeps timeouts apart from what a busy machine takes.
const leastRoundTrip = 100 * time.Millisecond

// Open loads the keys, if disks are in a directory, and starts the machines.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if len(cfg.Matrix.Sites()) == 0 || cfg.Shards < 1 || cfg.Sync < 0 || cfg.ValueBytes < 0 {
		return nil, fmt.Errorf("geostore: Config: %d sites, %d shards, a sync of %v, values of %d bytes",
			len(cfg.Matrix.Sites()), cfg.Shards, cfg.Sync, cfg.ValueBytes)
	}
	if cfg.Protocol.Name == "" {
		cfg.Protocol = replicatedcommit.Protocol()
	}
	if cfg.Keys > 0 && cfg.Protocol.Preload == nil {
		return nil, fmt.Errorf("geostore: Config: keys cannot be loaded for %s, which has no Preload", cfg.Protocol.Name)
	}
	s := &Store{cfg: cfg, longest: max(cfg.Matrix.MaxRTT(cfg.Matrix.Sites()), leastRoundTrip)}
	if cfg.Predicted > 0 {
		s.oracle = newOracle(cfg.Predicted, s.seed(oracleSeed))
	}
	if cfg.Dir != "" && cfg.Keys > 0 {
		if err := s.load(ctx); err != nil {
			return nil, err
		}
	}
	if cfg.Loopback {
		s.network = shape.NewLoopback(cfg.Matrix, s.seed(networkSeed))
	} else {
		s.network = shape.NewNetwork(cfg.Matrix, s.seed(networkSeed))
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("geostore: %w", err), s.Close())
	}
	return s, nil
}

// keyspace returns the keys that are there from the start.
func (s *Store) keyspace() keyspace {
	if s.cfg.Keys == 0 {
		return keyspace{}
	}
	return newKeyspace(s.cfg.Protocol.Preload, s.cfg.Keys, make([]byte, s.cfg.ValueBytes))
}

// seed returns one for a purpose.
func (s *Store) seed(purpose uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, s.cfg.Seed, " ", purpose)
	return max(h.Sum64(), 1)
}

// start listens for all machines, which then know each other's addresses, and runs them.
func (s *Store) start(ctx context.Context) error {
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running, s.failed = errgroup.WithContext(ctx)
	s.topology = store.Topology{Epoch: 1, Shards: s.cfg.Shards, Placement: s.cfg.Placement}
	sites := s.cfg.Matrix.Sites()
	if s.cfg.Protocol.Coordinating {
		s.topology.Coordinating = store.Names(sites, store.Coordinating(len(sites),
			func(a, b int) time.Duration { return s.cfg.Matrix.RTT(sites[a], sites[b]) }))
	}
	for i, site := range sites {
		m := &machine{site: site, number: i}
		if err := s.listen(m); err != nil {
			return err
		}
		s.machines = append(s.machines, m)
		s.topology.Sites = append(s.topology.Sites, store.TopologySite{
			Name: string(site), Number: i + 1,
			Machines: []store.Machine{{Name: machineName(site), Peers: m.peers.Addr().String(),
				Client: m.clients.Addr().String()}},
		})
	}
	for _, m := range s.machines {
		if err := s.run(m); err != nil {
			return err
		}
	}
	// Shards know each other's disks after a round trip or two, and vote from then on.
	return shape.Pause(s.failed, settling*s.longest)
}

const settling = 4

func machineName(site wan.Site) string { return string(site) + "-1" }

// Close stops the machines and ends all connections. The error is that of the first machine that
// failed.
func (s *Store) Close() error {
	var err error
	if s.stop != nil {
		s.stop()
		err = s.running.Wait()
	}
	for _, m := range s.machines {
		err = errors.Join(err, m.close())
	}
	if e := s.network.Close(); !errors.Is(e, net.ErrClosed) {
		err = errors.Join(err, e)
	}
	return err
}
