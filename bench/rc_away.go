package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/bench/replicated"
)

func rcAway() Experiment {
	return Experiment{
		Name:    "rc-away",
		Summary: "48 clients write to a store of three processes, one of which is killed and comes back, and in another run is not: commits, errors, processor time and memory by second",
		Modes:   []Mode{Real},
		whole:   away,
		figures: []figure{
			{
				suffix: "commits", title: "A site leaves and comes back: commits", x: "second", xLabel: "seconds",
				y: "commits_per_s", yLabel: "commits per second", series: []string{"run", "phase"},
			},
			{
				suffix: "memory", title: "A site leaves and comes back: memory of the machines", x: "second", xLabel: "seconds",
				y: "memory_mb", yLabel: "resident memory (MB)", series: []string{"run", "phase"},
			},
		},
	}
}

// Sizes of the experiment. Machines remember transactions for less long than by default, so that they forget what the absent site lacks.
const (
	awayKeys      = 1_000_000
	awayQuickKeys = 100_000
	awayRoundTrip = 50 * time.Millisecond
	awayRetain    = 10 * time.Second
	awayGone      = peersServers - 1 // the machine that is killed
	awayWindow    = 5                // seconds whose throughput is compared together, as that of one depends on what else the computer does
)

// awayPhase is a part of the experiment.
type awayPhase struct {
	name    string
	seconds int
	begin   func() error
}

func away(ctx context.Context, w wholeRun) (rows []Row, err error) {
	if w.Program == "" {
		return nil, errNoProgram
	}
	// A store grows, and its commits cost more, whether or not a machine is killed: the same run without that tells what a site's absence and return take.
	var undisturbed []Row
	for _, kill := range []bool{false, true} {
		if rows, err = awayOnce(ctx, w, kill); err != nil {
			return nil, err
		}
		if !kill {
			undisturbed = rows
		}
	}
	awayCompare(rows, undisturbed)
	return append(undisturbed, rows...), nil
}

// awayOnce runs a store from its beginning to its end, and kills a machine or does not.
func awayOnce(ctx context.Context, w wholeRun, kill bool) (rows []Row, err error) {
	run, killed, restarted := "undisturbed", func(*replicated.Processes) error { return nil }, func(*replicated.Processes) error { return nil }
	if kill {
		run = "killed"
		killed, restarted = func(s *replicated.Processes) error { return s.Kill(awayGone) }, func(s *replicated.Processes) error { return s.Restart(awayGone) }
	}
	err = withTempDir(func(dir string) error {
		store, err := startRivalStore(ctx, w.Program, dir, rivalOptions{roundTrip: awayRoundTrip, retain: awayRetain})
		if err != nil {
			return err
		}
		defer store.close()
		w.step(0, 1, "waiting for the store")
		if err := store.load(ctx, peersClients); err != nil {
			return err
		}
		m := &awayRun{name: run, store: store, wholeRun: w, keys: pick(w.scale, awayQuickKeys, awayKeys)}
		rows, err = m.run(ctx, []awayPhase{
			{"warm", pick(w.scale, 3, 10), func() error { return nil }},
			{"up", pick(w.scale, 8, 20), func() error { return nil }},
			{"away", pick(w.scale, 25, 600), func() error { return killed(store.servers) }},
			{"back", pick(w.scale, 25, 120), func() error { return restarted(store.servers) }},
		})
		return err
	})
	return rows, err
}

// awayRun drives clients and counts by second.
type awayRun struct {
	wholeRun
	name  string
	store rival
	keys  int

	commits, failed atomic.Int64
	longest         atomic.Int64 // of this second's commits
	mu              sync.Mutex
	failure         error // the last one
}

// put writes a key that hardly anybody else writes.
func (m *awayRun) put(ctx context.Context, client int, chance *rand.Rand) {
	began := time.Now()
	err := m.store.put(ctx, client, peersKey(chance.IntN(m.keys)))
	if err == nil {
		m.commits.Add(1)
		took := int64(time.Since(began))
		for old := m.longest.Load(); took > old && !m.longest.CompareAndSwap(old, took); old = m.longest.Load() {
		}
		return
	}
	if ctx.Err() != nil {
		return
	}
	m.failed.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure = err
}

func (m *awayRun) run(ctx context.Context, phases []awayPhase) ([]Row, error) {
	ctx, stop := context.WithCancel(ctx)
	var driving sync.WaitGroup
	defer driving.Wait()
	defer stop()
	for client := range peersClients {
		driving.Go(func() {
			for chance := random(m.Seed, uint64(client)); ctx.Err() == nil; {
				m.put(ctx, client, chance)
			}
		})
	}
	var rows []Row
	var up awaySecond // of the second phase, all seconds together
	for i, p := range phases {
		m.step(i, len(phases), p.name)
		begin := make(chan error, 1)
		go func() { begin <- p.begin() }() // while seconds are counted
		for range p.seconds {
			s, err := m.second(ctx)
			if err != nil {
				return nil, errors.Join(err, context.Cause(m.store.servers.Context()))
			}
			if p.name == "up" {
				up.add(s)
			}
			rows = append(rows, append(Row{{"run", m.name}, {"phase", p.name}, {"second", len(rows)}}, s.cells(up, i > 1)...))
		}
		if err := <-begin; err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return rows, nil
}

// awaySecond is what happened in a second, about.
type awaySecond struct {
	lasting, longest time.Duration
	commits, failed  int64
	used             time.Duration // processor time of machines and clients
	memory           uint64
	failure          error
}

func (s *awaySecond) add(other awaySecond) {
	s.lasting += other.lasting
	s.commits += other.commits
	s.used += other.used
}

func (s awaySecond) rate() float64 { return float64(s.commits) / s.lasting.Seconds() }

// perProcessor is how many commits a second of processor time gives: a figure that other programs on this computer change less than the rate.
func (s awaySecond) perProcessor() float64 {
	return float64(s.commits) / max(s.used, time.Millisecond).Seconds()
}

// cells returns the second beside what there was with all sites up.
func (s awaySecond) cells(up awaySecond, compare bool) Row {
	row := Row{
		measure("commits_per_s", s.rate()), {"errors", int(s.failed)}, measure("max_ms", ms(s.longest)), measure("memory_mb", float64(s.memory)/(1<<20)),
	}
	if s.used > 0 {
		row = append(row, measure("processors", s.used.Seconds()/s.lasting.Seconds()), measure("commits_per_processor_s", s.perProcessor()))
	}
	if compare {
		row = append(row, measure("of_up", s.rate()/up.rate()))
		if s.used > 0 && up.used > 0 {
			row = append(row, measure("per_processor_of_up", s.perProcessor()/up.perProcessor()))
		}
	}
	if s.failure != nil {
		row = append(row, Cell{"last_error", s.failure.Error()})
	}
	return row
}

// second returns what happens in the next second.
func (m *awayRun) second(ctx context.Context) (awaySecond, error) {
	began, commits, failed, used := time.Now(), m.commits.Load(), m.failed.Load(), cpuTime()+m.store.servers.CPU()
	m.longest.Store(0)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return awaySecond{}, context.Cause(ctx)
	case <-m.store.servers.Context().Done():
		return awaySecond{}, context.Cause(m.store.servers.Context())
	}
	s := awaySecond{
		lasting: time.Since(began), longest: time.Duration(m.longest.Load()), commits: m.commits.Load() - commits, failed: m.failed.Load() - failed,
		used: cpuTime() + m.store.servers.CPU() - used, memory: m.store.servers.Memory(),
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s.failure, m.failure = m.failure, nil
	return s, nil
}

// awayCompare adds to the seconds of a run what it has of the throughput of the same seconds of another one, in which nothing is killed, and of awayWindow seconds together.
func awayCompare(rows, undisturbed []Row) {
	rate := func(rows []Row, from, to int) (sum float64) {
		for _, r := range rows[max(from, 0):to] {
			n, _ := r.Number("commits_per_s")
			sum += n
		}
		return sum
	}
	for i := range min(len(rows), len(undisturbed)) {
		if base := rate(undisturbed, i, i+1); base > 0 {
			rows[i] = append(rows[i], measure("of_undisturbed", rate(rows, i, i+1)/base))
		}
		if base := rate(undisturbed, i+1-awayWindow, i+1); base > 0 {
			rows[i] = append(rows[i], measure("of_undisturbed_window", rate(rows, i+1-awayWindow, i+1)/base))
		}
		own, _ := rows[i].Number("commits_per_processor_s")
		if base, _ := undisturbed[i].Number("commits_per_processor_s"); base > 0 {
			rows[i] = append(rows[i], measure("per_processor_of_undisturbed", own/base))
		}
	}
}

// errNoProgram says what an experiment with processes needs.
var errNoProgram = errors.New("Options.Program is empty: servers are processes of the foresay program")
