package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/bench/geostore"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

func rcAway() Experiment {
	return Experiment{
		Name:    "rc-away",
		Summary: "clients of two of three sites 5 ms apart write while the third is away, and when it is back: commits, errors and memory by second",
		Modes:   []Mode{Real},
		whole:   away,
		figures: []figure{
			{
				suffix: "commits", title: "A site leaves and comes back: commits", x: "second", xLabel: "seconds",
				y: "commits_per_s", yLabel: "commits per second", series: []string{"phase"},
			},
			{
				suffix: "memory", title: "A site leaves and comes back: memory of all machines and clients", x: "second", xLabel: "seconds",
				y: "heap_mb", yLabel: "heap (MB)", series: []string{"phase"},
			},
		},
	}
}

// Sizes of the experiment. Machines remember transactions for less long than by default, so that they forget what the absent site lacks.
const (
	awayClients   = 24 // at each of two sites
	awayKeys      = 1_000_000
	awayQuickKeys = 100_000
	awayRetain    = 10 * time.Second
)

// awayPhase is a part of the experiment.
type awayPhase struct {
	name    string
	seconds int
	begin   func() error
}

// putWorkload writes a key that hardly anybody else writes.
type putWorkload struct{ keys uint64 }

// Next implements workload.Workload.
func (w putWorkload) Next(r *rand.Rand) workload.Txn {
	return workload.Txn{Name: "put", Ops: []workload.Op{{Key: r.Uint64N(w.keys), Write: true}}}
}

func away(ctx context.Context, w wholeRun) (rows []Row, err error) {
	sites := wan.SpecRPC().Sites()
	keys := pick(w.scale, uint64(awayQuickKeys), awayKeys)
	err = withTempDir(func(dir string) error {
		store, err := geostore.Open(ctx, geostore.Config{
			Matrix: wan.Uniform(rcNear, sites...), Shards: rcShards, Keys: keys, ValueBytes: rcValueBytes, Seed: w.Seed, Dir: dir, Loopback: true, Retain: awayRetain,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		m := &awayRun{store: store, watched: sites[0], wholeRun: w}
		gone := sites[len(sites)-1]
		phases := []awayPhase{
			{"warm", pick(w.scale, 3, 10), func() error { return nil }},
			{"up", pick(w.scale, 5, 20), func() error { return nil }},
			{"away", pick(w.scale, 30, 600), func() error { return store.Kill(gone) }},
			{"back", pick(w.scale, 20, 60), func() error { return store.Restart(gone) }},
		}
		rows, err = m.run(ctx, sites[:2], putWorkload{keys}, phases)
		return err
	})
	return rows, err
}

// awayRun drives clients and counts by second.
type awayRun struct {
	wholeRun
	store   *geostore.Store
	watched wan.Site

	commits, failed atomic.Int64
	mu              sync.Mutex
	failure         error // the last one
}

func (m *awayRun) ended(err error) {
	if err == nil {
		m.commits.Add(1)
		return
	}
	m.failed.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = err
}

func (m *awayRun) run(ctx context.Context, sites []wan.Site, load workload.Workload, phases []awayPhase) ([]Row, error) {
	ctx, stop := context.WithCancel(ctx)
	var driving sync.WaitGroup
	defer driving.Wait()
	defer stop()
	for i, site := range sites {
		clients, err := m.store.ConnectAt(client.Spec, site, uint64(i), awayClients)
		if err != nil {
			return nil, err
		}
		driving.Go(func() {
			defer clients.Close()
			clients.Drive(ctx, load, m.Seed+uint64(i), m.ended)
		})
	}
	var rows []Row
	second, up := 0, 0.0
	for i, p := range phases {
		m.step(i, len(phases), p.name)
		begin := make(chan error, 1)
		go func() { begin <- p.begin() }() // while seconds are counted
		before := m.commits.Load()
		for range p.seconds {
			row, err := m.second(ctx, p.name, second, up)
			if err != nil {
				return nil, err
			}
			second++
			rows = append(rows, row)
		}
		if p.name == "up" {
			up = float64(m.commits.Load()-before) / float64(p.seconds)
		}
		if err := <-begin; err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return rows, nil
}

// second returns what happens in the next second.
func (m *awayRun) second(ctx context.Context, phase string, number int, up float64) (Row, error) {
	began, commits, failed := time.Now(), m.commits.Load(), m.failed.Load()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	rate := float64(m.commits.Load()-commits) / time.Since(began).Seconds()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	asked, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	servers, err := m.store.Status(asked, m.watched)
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", m.watched, err)
	}
	remembered, undecided := 0, 0
	for _, s := range servers {
		remembered, undecided = remembered+s.Txns, undecided+s.Undecided
	}
	row := Row{
		{"phase", phase}, {"second", number}, measure("commits_per_s", rate),
		{"errors", int(m.failed.Load() - failed)}, {"transactions", remembered}, {"undecided", undecided}, measure("heap_mb", float64(memory.HeapAlloc)/(1<<20)),
	}
	if up > 0 {
		row = append(row, measure("of_up", rate/up))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure != nil {
		row = append(row, Cell{"last_error", m.failure.Error()})
	}
	return row, nil
}
