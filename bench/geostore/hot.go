package geostore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// roomTrip is the round trip between sites that are racks of one room.
const roomTrip = 500 * time.Microsecond

func hotExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "rc-hot",
		Summary: "clients of three sites 0.5 ms apart, all of which add to one key: commits per second, attempts per " +
			"commit; virtual: a disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Real, bench.Virtual},
		Bubbles: true,
		Measure: hotKey,
		Figures: []figure.Spec{
			{
				Suffix: "commits", Title: "Clients that all add to one key", X: "clients", XLabel: "clients",
				Y: "commits_per_s", YLabel: "commits per second", Series: []string{"system"},
			},
			{
				Suffix: "attempts", Title: "Clients that all add to one key", X: "clients", XLabel: "clients",
				Y: "attempts_per_commit", YLabel: "attempts per commit", Series: []string{"system"},
			},
		},
	}
}

// hotSharing is how many clients are goroutines of one program.
const hotSharing = 16

// hotWorkload reads and writes one key.
type hotWorkload struct{}

// Next implements workload.Workload.
func (hotWorkload) Next(*rand.Rand) workload.Txn {
	return workload.Txn{Name: "hot", Ops: []workload.Op{{Key: 0, Read: true, Write: true}}}
}

// hotModes are the systems that are compared: the default, and the one that is advised where
// transactions contend.
func hotModes() []client.Mode { return []client.Mode{client.Spec, client.Predicated} }

// hotKey gives each measurement a store of its own, on disks or in a bubble.
func hotKey(ctx context.Context, w bench.Run) ([]table.Row, error) {
	perSite := bench.Pick(w.Options, []int{3, 16}, []int{3, 16, 67})
	var rows []table.Row
	for i, n := range perSite {
		for j, mode := range hotModes() {
			w.Step(i*len(hotModes())+j, len(perSite)*len(hotModes()), fmt.Sprintf("%v clients=%d", mode, 3*n))
			var played Played
			var err error
			if w.Mode == bench.Virtual {
				w.Bubble(func() { played, err = hotPlay(ctx, w, mode, n, "") })
			} else {
				err = bench.WithTempDir(func(dir string) error {
					played, err = hotPlay(ctx, w, mode, n, dir)
					return err
				})
			}
			if err != nil {
				return nil, fmt.Errorf("%v clients=%d: %w", mode, 3*n, err)
			}
			rows = append(rows, hotRow(mode, 3*n, played))
		}
	}
	return rows, nil
}

func hotPlay(outer context.Context, w bench.Run, mode client.Mode, perSite int, dir string) (played Played, err error) {
	ctx := outer
	if w.Mode == bench.Virtual {
		ctx = context.WithoutCancel(outer) // its channel belongs to no bubble
	}
	cfg := Config{
		Matrix: wan.Uniform(roomTrip, wan.SpecRPC().Sites()...), Shards: siteShards, Keys: 1, ValueBytes: valueSize,
		Seed: w.Seed, Dir: dir, Loopback: dir != "",
	}
	if w.Mode == bench.Virtual {
		cfg.Matrix, cfg.Sync = jittered(cfg.Matrix, linkJitter), bench.SyncTime
	}
	store, err := Open(ctx, cfg)
	if err != nil {
		return played, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	clients, err := store.ConnectShared(mode, perSite, hotSharing)
	if err != nil {
		return played, err
	}
	defer clients.Close()
	return clients.Play(ctx, Load{Workload: hotWorkload{}, Seed: w.Seed, Warm: time.Second,
		For: bench.Pick(w.Options, 2*time.Second, 8*time.Second)})
}

func hotRow(mode client.Mode, clients int, p Played) table.Row {
	m := outcome{system: mode.String(), params: []table.Cell{table.Is("clients", clients)},
		matrix: wan.Uniform(roomTrip, wan.SpecRPC().Sites()...), played: p}
	row := m.row("all", p.Txns, total(p.Commits))
	attempts := 0
	for _, t := range p.Txns {
		attempts += len(t.Attempts)
	}
	return append(row, table.Measure("attempts_per_commit", float64(attempts)/float64(max(len(p.Txns), 1))))
}
