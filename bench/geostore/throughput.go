package geostore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// nearTrip is the round trip between sites when it is throughput that is measured [SpecRPC §5.2.3].
const nearTrip = 5 * time.Millisecond

func throughputExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "rc-throughput",
		Summary: "Retwis on sites 5 ms apart, with more and more clients: commits per second, CPU time per commit " +
			"(SpecRPC figure 13)",
		Modes:   []bench.Mode{bench.Real},
		Measure: throughputOfStore,
		Figures: []figure.Spec{
			{
				Suffix: "latency", Title: "Retwis on sites 5 ms apart: attempts that committed", X: "commits_per_s",
				XLabel: "commits per second",
				Y:      "attempt_mean_ms", YLabel: "mean latency (ms)", Series: []string{"system"}, Scattered: true,
				Marks: []figure.Mark{{Line: "spec", X: figure.Nowhere(), Y: 14}},
			},
			{
				Suffix: "cpu", Title: "Retwis on sites 5 ms apart: processor time per commit", Y: "cpu_us_per_commit",
				YLabel: "processor time (µs), clients and all machines",
				Across: []string{"clients"}, Series: []string{"system"},
			},
		},
	}
}

func throughputOfStore(ctx context.Context, w bench.Run) (rows []table.Row, err error) {
	matrix := wan.Uniform(nearTrip, wan.SpecRPC().Sites()...)
	keys, err := workload.Zipfian(keyCount(w.Options), zipfAlpha)
	if err != nil {
		return nil, err
	}
	err = withRealStore(ctx, w, matrix, func(store *Store) error {
		perSite := bench.Pick(w.Options, []int{2, 8}, []int{1, 2, 4, 8, 16})
		for i, n := range perSite {
			t := storeThroughput{
				store: store, matrix: matrix, perSite: n,
				load: Load{
					Workload: workload.Retwis{Keys: keys}, Seed: w.Seed, Warm: 400 * time.Millisecond,
					For: bench.Pick(w.Options, 500*time.Millisecond, 1500*time.Millisecond),
				},
				rounds: bench.Pick(w.Options, 2, 5), seed: w.Seed,
				step: func(doing string) { w.Step(i, len(perSite), doing) },
			}
			more, err := t.run(ctx)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return nil
	})
	return rows, err
}

// storeThroughput has the systems take turns at one number of clients.
type storeThroughput struct {
	store   *Store
	matrix  wan.Matrix
	perSite int
	load    Load
	rounds  int
	seed    uint64
	step    func(doing string)
}

// storeRound is what a system did in one turn.
type storeRound struct{ cpuPerCommit, commitsPerSecond float64 }

func (t storeThroughput) run(ctx context.Context) ([]table.Row, error) {
	modes := systemModes()
	played, rounds := make([]Played, len(modes)), make([][]storeRound, len(modes))
	clients := make([]*Clients, len(modes))
	for i, mode := range modes {
		c, err := t.store.Connect(mode, t.perSite)
		if err != nil {
			return nil, err
		}
		defer c.Close()
		clients[i] = c
		warm := t.load
		warm.For /= 4
		if _, err := c.Play(ctx, warm); err != nil {
			return nil, fmt.Errorf("%v, clients=%d: warm up: %w", mode, t.perSite, err)
		}
	}
	for r := range t.rounds {
		for _, i := range bench.Random(t.seed, uint64(t.perSite), uint64(r)).Perm(len(modes)) {
			t.step(fmt.Sprintf("%v clients=%d round=%d", modes[i], t.perSite, r+1))
			runtime.GC() // the garbage of the turn before is not this one's
			l := t.load
			l.Seed += uint64(r) // all systems play the same in a round
			before := bench.CPUTime()
			p, err := clients[i].Play(ctx, l)
			if err != nil {
				return nil, fmt.Errorf("%v, clients=%d: %w", modes[i], t.perSite, err)
			}
			rounds[i] = append(rounds[i], storeRound{
				cpuPerCommit:     float64((bench.CPUTime() - before).Microseconds()) / float64(max(p.All, 1)),
				commitsPerSecond: float64(total(p.Commits)) / p.Lasting.Seconds(),
			})
			played[i] = addPlayed(played[i], p)
		}
	}
	off := rounds[slices.Index(modes, client.Off)]
	var rows []table.Row
	for i, mode := range modes {
		m := outcome{system: mode.String(), params: []table.Cell{table.Is("clients", t.perSite),
			table.Is("alpha", zipfAlpha)}, matrix: t.matrix, played: played[i]}
		row := m.row("all", played[i].Txns, total(played[i].Commits))
		cpuOf := func(r storeRound) float64 { return r.cpuPerCommit }
		if cpu := table.MedianOf(rounds[i], cpuOf); cpu > 0 {
			row = append(row, table.Measure("cpu_us_per_commit", cpu),
				table.Measure("cpu_ratio_to_off", table.RatioOf(rounds[i], off, cpuOf)))
		}
		rows = append(rows, append(row, table.Measure("commits_ratio_to_off",
			table.RatioOf(rounds[i], off, func(r storeRound) float64 { return r.commitsPerSecond }))))
	}
	return rows, nil
}

func addPlayed(a, b Played) Played {
	if a.Commits == nil {
		a.Commits = map[wan.Site]int{}
	}
	for site, n := range b.Commits {
		a.Commits[site] += n
	}
	a.Txns = append(a.Txns, b.Txns...)
	a.Lasting += b.Lasting
	a.All += b.All
	return a
}
