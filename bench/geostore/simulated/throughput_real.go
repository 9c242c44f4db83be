package simulated

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/geostore"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// turn is what a system did on the wall clock in one turn.
type turn struct {
	commitsPerS, cpuPerCommit, abortPercent float64
	failed                                  int
	took                                    []time.Duration
}

// median is how long an attempt that committed took.
func (t turn) median() float64 { return table.Ms(table.Quantile(t.took, 0.5)) }

// realThroughput has the systems take turns on this computer: all machines, their disks and the
// clients share its processors. Clients make one transaction after the other.
func realThroughput(ctx context.Context, r bench.Run) (rows []table.Row, err error) {
	systems, rounds := throughputSystems(), bench.Pick(r.Options, 1, 5)
	turns := make([][]turn, len(systems))
	for round := range rounds {
		for i, s := range bench.Random(r.Seed, uint64(round)).Perm(len(systems)) {
			r.Step(round*len(systems)+i, rounds*len(systems), fmt.Sprintf("%s round=%d", systems[s], round+1))
			t, err := realTurn(ctx, systems[s], r, r.Seed+uint64(round)) // all play the same in a round
			if err != nil {
				return nil, fmt.Errorf("%s: %w", systems[s], err)
			}
			turns[s] = append(turns[s], t)
		}
	}
	calls, err := callsPerCommit(r)
	if err != nil {
		return nil, err
	}
	basic, cpuOf := turns[1], func(t turn) float64 { return t.cpuPerCommit }
	for i, s := range systems {
		cpu := table.MedianOf(turns[i], cpuOf)
		row := append(cells(s, near, "all"), table.Is("clients", realClients*len(wan.Carousel().Sites())),
			table.Measure("commits_per_s", table.MedianOf(turns[i], func(t turn) float64 { return t.commitsPerS })),
			table.Measure("abort_percent", table.MedianOf(turns[i], func(t turn) float64 { return t.abortPercent })),
			table.Measure("attempt_p50_ms", table.MedianOf(turns[i], turn.median)),
			table.Measure("failed", table.MedianOf(turns[i], func(t turn) float64 { return float64(t.failed) })))
		if cpu > 0 {
			row = append(row, table.Measure("cpu_us_per_commit", cpu),
				table.Measure("cpu_us_per_call", cpu/calls[i]),
				table.Measure("cpu_ratio_to_carousel-basic", table.RatioOf(turns[i], basic, cpuOf)))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// realClients is how many clients a site has on the wall clock, in one program: enough for two
// processors, and few enough for nobody to take a queue for a failure.
const realClients = machineClients

func realTurn(ctx context.Context, s plan.System, r bench.Run, seed uint64) (t turn, err error) {
	p, _ := storesim.ProtocolOf(s)
	matrix := wan.Uniform(nearTrip, wan.Carousel().Sites()...)
	placement, err := placementOf(matrix)
	if err != nil {
		return t, err
	}
	keys, err := workload.Zipfian(keyCount, zipfAlpha)
	if err != nil {
		return t, err
	}
	cfg := geostore.Config{Protocol: p, Matrix: matrix, Shards: len(placement), ValueBytes: valueBytes, Declared: true,
		Once: true, MaxOffset: roomOffset, Loopback: true, Seed: seed}
	for _, at := range placement {
		var names []string
		for _, site := range at {
			names = append(names, string(site))
		}
		cfg.Placement = append(cfg.Placement, names)
	}
	err = bench.WithTempDir(func(dir string) (err error) {
		cfg.Dir = dir
		s, err := geostore.Open(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		clients, err := s.ConnectShared(client.GRPC, realClients, machineClients)
		if err != nil {
			return err
		}
		defer clients.Close()
		load := geostore.Load{Workload: workload.Retwis{Keys: keys}, Seed: seed, For: time.Second, Failures: true}
		if _, err := clients.Play(ctx, load); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		runtime.GC() // the garbage of the turn before is not this one's
		load.Seed, load.For = seed+1, bench.Pick(r.Options, time.Second, 4*time.Second)
		before := bench.CPUTime()
		played, err := clients.Play(ctx, load)
		if err != nil {
			return err
		}
		t = turnOf(played, bench.CPUTime()-before)
		return nil
	})
	return t, err
}

func turnOf(p geostore.Played, used time.Duration) (t turn) {
	commits, aborted := 0, 0
	for _, n := range p.Commits {
		commits += n
	}
	for _, x := range p.Txns {
		for _, a := range x.Attempts {
			if a.Committed {
				t.took = append(t.took, a.Took)
			} else {
				aborted++
			}
		}
	}
	slices.Sort(t.took)
	t.failed = p.Failed
	t.commitsPerS = float64(commits) / p.Lasting.Seconds()
	t.abortPercent = 100 * float64(aborted) / float64(max(len(p.Txns), 1))
	committed := 1 - t.abortPercent/100 // of those that ended while time was taken
	t.cpuPerCommit = float64(used.Microseconds()) / max(float64(p.All)*committed, 1)
	return t
}

// callsPerCommit counts, in the simulator, how many messages servers get for each transaction that
// commits, of each system.
func callsPerCommit(r bench.Run) (all []float64, err error) {
	for _, s := range throughputSystems() {
		m, err := target{system: s, perS: 1000, seed: r.Seed, warm: 300 * time.Millisecond, lasting: time.Second}.run()
		if err != nil {
			return nil, err
		}
		all = append(all, float64(m.servers(m.calls))/float64(max(m.committed, 1)))
	}
	return all, nil
}
