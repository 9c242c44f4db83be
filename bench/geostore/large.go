package geostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

const (
	largeTrip  = 50 * time.Millisecond
	largeBytes = 1 << 20
	largeKeys  = 64
	mega       = 1e6
)

func largeExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "rc-large",
		Summary: "clients at one of three sites 50 ms apart that put values of 1 MiB: commits per second, failures, " +
			"memory, bytes written to disks",
		Modes:   []bench.Mode{bench.Real},
		Measure: largeValues,
		Figures: []figure.Spec{{
			Title: "Values of 1 MiB, sites 50 ms apart", X: "clients", XLabel: "clients",
			Y: "commits_per_s", YLabel: "commits per second", Series: []string{"system"},
		}},
	}
}

// largeValues gives each number of clients a store of its own. Machines and clients share this
// process and its memory.
func largeValues(ctx context.Context, w bench.Run) ([]table.Row, error) {
	counts := bench.Pick(w.Options, []int{1, 8}, []int{1, 8, 16})
	var rows []table.Row
	for i, n := range counts {
		w.Step(i, len(counts), fmt.Sprintf("clients=%d", n))
		err := bench.WithTempDir(func(dir string) error {
			row, err := largeRow(ctx, w, dir, n)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("clients=%d: %w", n, err)
		}
	}
	return rows, nil
}

func largeRow(ctx context.Context, w bench.Run, dir string, n int) (row table.Row, err error) {
	matrix := wan.Uniform(largeTrip, wan.SpecRPC().Sites()...)
	store, err := Open(ctx, Config{
		Matrix: matrix, Shards: siteShards, Keys: 1, ValueBytes: largeBytes, Seed: w.Seed, Dir: dir, Loopback: true,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	clients, err := store.ConnectAt(client.Spec, matrix.Sites()[0], 0, n)
	if err != nil {
		return nil, err
	}
	defer clients.Close()
	written := bench.WrittenBytes()
	p, err := clients.Play(ctx, Load{
		Workload: putWorkload{largeKeys}, Seed: w.Seed, Warm: time.Second, For: bench.Pick(w.Options, 5*time.Second,
			15*time.Second), Failures: true,
	})
	if err != nil {
		return nil, err
	}
	written = bench.WrittenBytes() - written
	var heap runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&heap)
	row = table.Row{table.Is("system", client.Spec.String()), table.Is("clients", n), table.Is("txns", len(p.Txns)),
		table.Is("failed", p.Failed), table.Measure("commits_per_s", float64(total(p.Commits))/p.Lasting.Seconds())}
	if len(p.Txns) > 0 {
		var took []time.Duration
		for _, t := range p.Txns {
			took = append(took, t.Took)
		}
		slices.Sort(took)
		row = append(row, table.Measure("p50_ms", table.Ms(table.Quantile(took, 0.5))),
			table.Measure("p95_ms", table.Ms(table.Quantile(took, 0.95))))
	}
	row = append(row, table.Measure("heap_mb", float64(heap.HeapAlloc)/mega))
	if written > 0 && p.All > 0 {
		row = append(row, table.Measure("disk_bytes_per_byte",
			float64(written)/float64(p.All*largeBytes*len(matrix.Sites()))))
	}
	return row, nil
}

// putWorkload writes a key that hardly anybody else writes.
type putWorkload struct{ keys uint64 }

// Next implements workload.Workload.
func (w putWorkload) Next(r *rand.Rand) workload.Txn {
	return workload.Txn{Name: "put", Ops: []workload.Op{{Key: r.Uint64N(w.keys), Write: true}}}
}
