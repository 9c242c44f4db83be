package geostore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// strCPU measures what it costs STR that transactions may read what is not final.
func strCPU() bench.Experiment {
	return bench.Experiment{
		Name: "str-cpu",
		Summary: "Retwis on a store of STR at three sites 5 ms apart, logs on disk, with speculative reads (str-internal) " +
			"and without (clocksi-rep): commits per second, CPU time per commit",
		Modes:   []bench.Mode{bench.Real},
		Measure: cpuOfSTR,
		Figures: []figure.Spec{{
			Title: "Retwis on STR: what speculative reads cost", X: "clients", XLabel: "clients",
			Y: "cpu_us_per_commit", YLabel: "CPU time per commit (µs)", Series: []string{"system"}, Bars: true,
		}},
	}
}

// cpuOfSTR has the systems take turns, each with a new store: what idle servers do is nobody
// else's.
func cpuOfSTR(ctx context.Context, w bench.Run) (rows []table.Row, err error) {
	systems := chainSystems()[:2] // the last one is a way to use the second
	rounds := make([][]storeRound, len(systems))
	for r := range bench.Pick(w.Options, 4, 12) {
		for _, i := range bench.Random(w.Seed, uint64(r)).Perm(len(systems)) {
			w.Step(r, bench.Pick(w.Options, 4, 12), fmt.Sprintf("%s round=%d", systems[i].name, r+1))
			var one storeRound
			err := bench.WithTempDir(func(dir string) (err error) {
				one, err = systems[i].load(ctx, w, dir, uint64(r))
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", systems[i].name, err)
			}
			rounds[i] = append(rounds[i], one)
		}
	}
	cpuOf := func(r storeRound) float64 { return r.cpuPerCommit }
	for i, s := range systems {
		row := table.Row{table.Is("system", s.name), table.Is("clients", strCPUClients),
			table.Measure("commits_per_s", table.MedianOf(rounds[i], func(r storeRound) float64 { return r.commitsPerSecond }))}
		if cpu := table.MedianOf(rounds[i], cpuOf); cpu > 0 {
			row = append(row, table.Measure("cpu_us_per_commit", cpu),
				table.Measure("cpu_ratio_to_clocksi_rep", table.RatioOf(rounds[i], rounds[0], cpuOf)))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// strCPUClients is how many clients each site has.
const strCPUClients = 8

// load returns what a turn of Retwis comes to.
func (s chainSystem) load(ctx context.Context, w bench.Run, dir string, round uint64) (out storeRound, err error) {
	protocol, err := str.Protocol().In(s.mode)
	if err != nil {
		return out, err
	}
	keys, err := workload.Zipfian(keyCount(w.Options), zipfAlpha)
	if err != nil {
		return out, err
	}
	open, err := Open(ctx, Config{Protocol: protocol, Matrix: wan.Uniform(nearTrip, wan.SpecRPC().Sites()...),
		Shards: siteShards, ValueBytes: valueSize, Seed: w.Seed, Dir: dir, Loopback: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	clients, err := open.Connect(client.GRPC, strCPUClients)
	if err != nil {
		return out, err
	}
	defer clients.Close()
	l := Load{Workload: workload.Retwis{Keys: keys}, Seed: w.Seed + round, For: time.Second / 2}
	if _, err := clients.Play(ctx, l); err != nil { // leaders are known then, and how far sites are
		return out, err
	}
	runtime.GC() // the garbage of what was before is not this one's
	l.For = bench.Pick(w.Options, 2*time.Second, 4*time.Second)
	before := bench.CPUTime()
	p, err := clients.Play(ctx, l)
	return storeRound{cpuPerCommit: float64((bench.CPUTime() - before).Microseconds()) / float64(max(p.All, 1)),
		commitsPerSecond: float64(total(p.Commits)) / max(p.Lasting, 1).Seconds()}, err
}
