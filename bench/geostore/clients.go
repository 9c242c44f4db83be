package geostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// Clients are connected to a store.
type Clients struct {
	players []player
	conns   []*front.Conn
	greet   []func(context.Context) error // what each program does first
}

// Connect makes clients of a mode, as many at each site as asked for. Their first reads connect to
// the machines.
func (s *Store) Connect(mode client.Mode, perSite int) (*Clients, error) {
	return s.ConnectShared(mode, perSite, 1)
}

// ConnectShared is Connect of clients so many of which are goroutines of one program, with one
// connection.
func (s *Store) ConnectShared(mode client.Mode, perSite, sharing int) (*Clients, error) {
	cs := &Clients{}
	for i := range (perSite + sharing - 1) / sharing {
		for j, site := range s.cfg.Matrix.Sites() {
			if err := s.connect(cs, mode, site, uint64(i*len(s.cfg.Matrix.Sites())+j),
				min(sharing, perSite-i*sharing)); err != nil {
				cs.Close()
				return nil, fmt.Errorf("geostore: client %d at %s: %w", i, site, err)
			}
		}
	}
	return cs, nil
}

// dial makes a client at a site, with a connection of its own.
func (s *Store) dial(mode client.Mode, site wan.Site, number uint64) (*client.Client, *front.Conn, error) {
	conn, err := front.Dial(front.Config{
		Protocol: s.cfg.Protocol, Topology: s.topology, Insecure: true, Dial: s.network.DialContext(site),
		RoundTrip: s.longest, Seed: s.seed(clientSeeds + number),
	})
	if err != nil {
		return nil, nil, err
	}
	cfg := client.Config{Backend: conn, Mode: mode}
	if s.oracle != nil {
		cfg.Predictor, cfg.PrepareEarly = s.oracle, true
	}
	if s.cfg.Once {
		cfg.MaxAttempts = 1
	}
	c, err := client.New(cfg)
	if err != nil {
		conn.Close()
	}
	return c, conn, err
}

func (s *Store) connect(cs *Clients, mode client.Mode, site wan.Site, number uint64, players int) error {
	c, conn, err := s.dial(mode, site, number)
	if err != nil {
		return err
	}
	cs.conns = append(cs.conns, conn)
	maker := maker{client: c, value: make([]byte, s.cfg.ValueBytes), absent: s.cfg.Keys == 0, declares: s.cfg.Declared,
		once: s.cfg.Once, level: s.cfg.ReadLevel}
	for range players {
		cs.players = append(cs.players, player{site: site, try: maker.try})
	}
	if maker.declares || s.oracle != nil {
		cs.greet = append(cs.greet, func(ctx context.Context) error { return maker.greet(ctx, s.cfg.Shards) })
	}
	return nil
}

// ConnectAt makes clients at one site, which are goroutines of one program.
func (s *Store) ConnectAt(mode client.Mode, site wan.Site, number uint64, players int) (*Clients, error) {
	cs := &Clients{}
	if err := s.connect(cs, mode, site, number, players); err != nil {
		cs.Close()
		return nil, fmt.Errorf("geostore: clients at %s: %w", site, err)
	}
	return cs, nil
}

// Drive has the clients make one transaction after the other until ctx ends, whatever becomes of
// them, and tells what did: nil, or why it failed. ended is called concurrently.
func (cs *Clients) Drive(ctx context.Context, w workload.Workload, seed uint64, ended func(error)) {
	var all sync.WaitGroup
	for i, p := range cs.players {
		all.Go(func() {
			for r := rand.New(rand.NewPCG(seed, uint64(i))); ctx.Err() == nil; {
				if _, err := p.try(ctx, w.Next(r)); ctx.Err() == nil {
					ended(err)
				}
			}
		})
	}
	all.Wait()
}

// Play has the clients play a load. No transaction may fail: the error is that of the first that
// does.
func (cs *Clients) Play(ctx context.Context, l Load) (Played, error) {
	g, greeting := errgroup.WithContext(ctx)
	for _, greet := range cs.greet {
		g.Go(func() error { return greet(greeting) })
	}
	if err := g.Wait(); err != nil {
		return Played{}, fmt.Errorf("geostore: a client's first reads: %w", err)
	}
	return play(ctx, cs.players, l)
}

// Close ends the clients' connections.
func (cs *Clients) Close() {
	for _, c := range cs.conns {
		c.Close()
	}
}

// errAbsent says that a key of the workload is not there.
var errAbsent = errors.New("the store does not have the key")

// A maker makes transactions of a workload.
type maker struct {
	client   *client.Client
	value    []byte // of what is written
	absent   bool   // keys may be
	declares bool
	once     bool // it is no error if a transaction is aborted
	level    client.Level
}

// try makes a transaction until it commits, or as often as the client tries.
func (m maker) try(ctx context.Context, t workload.Txn) ([]Attempt, error) {
	var attempts []Attempt
	var opts []client.Option
	if m.declares {
		opts = append(opts, client.Keys(t.Keys()))
	}
	if t.ReadOnly() && m.level != 0 {
		opts = append(opts, m.level)
	}
	ctx = client.WithClass(ctx, t.Name)
	ctx = client.WithTrace(ctx, func(trace *client.Trace) { attempts = append(attempts, attemptOf(trace)) })
	err := m.client.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		return t.Run(ctx, present{tx, m.absent}, func([]byte) []byte { return m.value })
	}, opts...)
	if aborted := (*client.AbortedError)(nil); m.once && errors.As(err, &aborted) && aborted.Err == nil {
		return attempts, nil
	}
	return attempts, err
}

// present is a transaction of a store that has all keys, unless some may be absent.
type present struct {
	*client.Tx
	absent bool
}

// Get implements workload.Tx.
func (p present) Get(ctx context.Context, key string) (value []byte, ok bool, err error) {
	if value, ok, err = p.Tx.Get(ctx, key); err == nil && !ok && !p.absent {
		err = fmt.Errorf("%w %s", errAbsent, key)
	}
	return value, ok, err
}

// greet reads a key of each partition without declaring it. A client that has never read does not
// know which site is near, and sends its declarations to a random one.
func (m maker) greet(ctx context.Context, shards int) error {
	t, seen := workload.Txn{}, map[int]bool{}
	for n := uint64(0); len(seen) < shards; n++ {
		if k := store.ShardOf(store.Key(workload.Name(n)), shards); !seen[k] {
			seen[k] = true
			t.Ops = append(t.Ops, workload.Op{Key: n, Read: true})
		}
	}
	m.declares = false
	_, err := m.try(ctx, t)
	return err
}

func attemptOf(t *client.Trace) Attempt {
	a := Attempt{Took: t.Ended - t.Began, Committed: !t.Failed && t.Outcome.Verdict == store.Committed,
		Fast: t.Outcome.Fast}
	for _, r := range t.Reads {
		// If no quorum was asked, the commit has compared what it carried; of other reads nobody
		// can tell.
		if r.First >= 0 && (r.Known >= 0 || a.Committed && r.Right) {
			a.Reads++
			if r.Right {
				a.Right++
			}
		}
	}
	return a
}
