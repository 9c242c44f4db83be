package geostore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/wan"
)

// strChain measures what it is for that a task goes on when its transactions are committed locally.
func strChain() bench.Experiment {
	return bench.Experiment{
		Name: "str-chain",
		Summary: "1 to 8 transactions of STR, one after the other, on SpecRPC's three sites: in code that waits for each, " +
			"and in a task, which goes on at local commits; virtual: a disk syncs in 1 ms",
		Modes:   []bench.Mode{bench.Virtual, bench.Real},
		Bubbles: true,
		Measure: chains,
		Figures: []figure.Spec{{
			Suffix: "mean", Title: "Transactions of STR, one after the other", X: "transactions", XLabel: "transactions",
			Y: "all_mean_ms", YLabel: "all of them, mean (ms)", Series: []string{"system"},
		}},
	}
}

// chainSystem is how transactions are made that follow each other.
type chainSystem struct {
	name string
	mode string // of the protocol
	task bool
}

func chainSystems() []chainSystem {
	return []chainSystem{{"clocksi-rep", "clocksi-rep", false}, {"str-internal", "internal", false},
		{"str-task", "internal", true}}
}

// chains gives each system a store of its own, on disks or in a bubble.
func chains(ctx context.Context, w bench.Run) ([]table.Row, error) {
	var rows []table.Row
	systems := chainSystems()
	for i, s := range systems {
		w.Step(i, len(systems), s.name)
		var took map[int]time.Duration
		var err error
		if w.Mode == bench.Virtual {
			w.Bubble(func() { took, err = s.play(ctx, w, "") })
		} else {
			err = bench.WithTempDir(func(dir string) error {
				took, err = s.play(ctx, w, dir)
				return err
			})
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		for _, n := range chainLengths() {
			rows = append(rows, table.Row{table.Is("system", s.name), table.Is("transactions", n),
				table.Measure("all_mean_ms", took[n].Seconds()*1000),
				table.Measure("of_one", float64(took[n])/float64(took[1]))})
		}
	}
	return rows, nil
}

func chainLengths() []int { return []int{1, 2, 4, 8} }

// play returns how long so many transactions take at a client of each site, in the mean.
func (s chainSystem) play(outer context.Context, w bench.Run, dir string) (mean map[int]time.Duration, err error) {
	ctx := outer
	if w.Mode == bench.Virtual {
		ctx = context.WithoutCancel(outer) // its channel belongs to no bubble
	}
	protocol, err := str.Protocol().In(s.mode)
	if err != nil {
		return nil, err
	}
	cfg := Config{Protocol: protocol, Matrix: wan.SpecRPC(), Shards: siteShards, ValueBytes: valueSize, Seed: w.Seed,
		Dir: dir, Loopback: dir != ""}
	if w.Mode == bench.Virtual {
		cfg.Sync = bench.SyncTime
	}
	open, err := Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	mean = map[int]time.Duration{}
	repeats := bench.Pick(w.Options, 3, 20)
	for i, site := range cfg.Matrix.Sites() {
		c, conn, err := open.dial(client.Spec, site, uint64(i))
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		if err := count(ctx, c, string(site)); err != nil { // it connects to the machines
			return nil, err
		}
		for r := range repeats {
			for _, n := range chainLengths() {
				start := time.Now()
				if err := s.chain(ctx, c, n, fmt.Sprint(site, r)); err != nil {
					return nil, err
				}
				mean[n] += time.Since(start) / time.Duration(repeats*len(cfg.Matrix.Sites()))
			}
		}
	}
	return mean, nil
}

// chain makes so many transactions, each on a key of its own.
func (s chainSystem) chain(ctx context.Context, c *client.Client, n int, name string) error {
	all := func(ctx context.Context) (struct{}, error) {
		for i := range n {
			if err := count(ctx, c, fmt.Sprint(name, ".", i)); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, nil
	}
	if s.task {
		_, err := foresay.Do(ctx, all)
		return err
	}
	_, err := all(ctx)
	return err
}

// count adds one to what a key holds.
func count(ctx context.Context, c *client.Client, key string) error {
	return c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
		v, _, err := tx.Get(ctx, key)
		if err != nil {
			return err
		}
		n := 0
		if len(v) > 0 {
			if n, err = strconv.Atoi(string(v)); err != nil {
				return err
			}
		}
		return tx.Put(key, strconv.AppendInt(nil, int64(n+1), 10))
	})
}
