package replicated

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

// Sizes of the experiment.
const (
	bulkClients    = 64
	bulkValueBytes = 64 << 10
	bulkKeys       = 8 // of a client
	bulkPatience   = 20 * time.Second
)

func smrLarge() bench.Experiment {
	return bench.Experiment{
		Name: "smr-large",
		Summary: "64 clients that put values of 64 KiB to services of three processes each, with round_trip 100, 50 " +
			"and 20 ms, and to etcd, in turns: puts per second, latency, the servers' processor time",
		Modes:       []bench.Mode{bench.Real},
		PerProtocol: true,
		Measure:     bench.Points(bulkPoints),
		Figures: []figure.Spec{{
			Suffix: "ops", Title: "Values of 64 KiB, 64 clients, three processes on one machine", Y: "ops_per_s",
			YLabel: "puts per second",
			Across: []string{"system"}, Series: []string{"round_trip"},
		}},
	}
}

// bulkPoints are the protocols, each with an etcd of its own beside it.
func bulkPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, p := range protocols(o) {
		points = append(points, bench.Point{Doing: p.Name, Run: func(ctx context.Context) ([]table.Row, error) {
			if o.Program == "" {
				return nil, errors.New("Options.Program is empty: replicas are processes of the foresay program")
			}
			return bulkRows(ctx, o, p)
		}})
	}
	return points
}

// bulk is a system with servers of its own. Nothing of it is encrypted, and all of it is synced to
// disk.
type bulk struct {
	system, trip string
	servers      *Processes
	close        func()
	put          func(ctx context.Context, client int, key string) error
	turns        []Turn
}

func bulkRows(ctx context.Context, o bench.Options, p smr.Protocol) (rows []table.Row, err error) {
	err = bench.WithTempDir(func(dir string) error {
		var all []*bulk
		defer func() {
			for _, b := range all {
				b.close()
			}
		}()
		if path := Etcd(); path != "" {
			b, err := startBulkEtcd(ctx, path, dir)
			if err != nil {
				return err
			}
			all = append(all, b)
		}
		for _, trip := range bench.Pick(o, []string{"20ms"}, []string{"100ms", "50ms", "20ms"}) {
			b, err := startBulkService(ctx, o.Program, filepath.Join(dir, trip), p, trip)
			if err != nil {
				return err
			}
			all = append(all, b)
		}
		for _, b := range all {
			if err := b.begin(ctx); err != nil {
				return fmt.Errorf("%s %s: %w", b.system, b.trip, err)
			}
		}
		for n := range bench.Pick(o, 1, 4) {
			for _, i := range bench.Random(o.Seed, uint64(n)).Perm(len(all)) {
				if err := all[i].turn(ctx, bench.Pick(o, 300*time.Millisecond, 3*time.Second)); err != nil {
					return fmt.Errorf("%s %s: turn %d: %w", all[i].system, all[i].trip, n+1, err)
				}
			}
		}
		for _, b := range all {
			rows = append(rows, b.row(all[0]))
		}
		return nil
	})
	return rows, err
}

// row has the medians of the turns, and of the ratios within a round to etcd, if it was measured.
func (b *bulk) row(first *bulk) table.Row {
	var took []time.Duration
	var rates, cpu, ratios []float64
	for i, t := range b.turns {
		took = append(took, t.Took...)
		rates, cpu, ratios = append(rates, t.PerSecond), append(cpu, t.CPUPerOp),
			append(ratios, t.PerSecond/first.turns[i].PerSecond)
	}
	slices.Sort(took)
	row := table.Row{
		table.Is("system", b.system), table.Is("round_trip", b.trip), table.Is("clients", bulkClients),
		table.Is("value_bytes", bulkValueBytes), table.Measure("ops_per_s", table.Median(rates)),
		table.Measure("p50_ms", table.Ms(table.Quantile(took, 0.5))),
		table.Measure("p99_ms", table.Ms(table.Quantile(took, 0.99))), table.Measure("server_us_per_op", table.Median(cpu)),
	}
	if first.system == "etcd" {
		row = append(row, table.Measure("ops_ratio_to_etcd", table.Median(ratios)))
	}
	return row
}

// begin has each client put a key, again until the servers are ready.
func (b *bulk) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return b.all(ctx, func(ctx context.Context, client int) error {
		for {
			try, end := context.WithTimeout(ctx, 10*time.Second)
			err := b.put(try, client, bulkKey(client, 0))
			end()
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	})
}

func bulkKey(client, n int) string { return fmt.Sprintf("bulk/%d/%d", client, n%bulkKeys) }

// all runs something for each client, until the first error, or the end of a server.
func (b *bulk) all(ctx context.Context, f func(ctx context.Context, client int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(b.servers.Context(), func() { stop(context.Cause(b.servers.Context())) })()
	var wg sync.WaitGroup
	for client := range bulkClients {
		wg.Go(func() {
			if err := f(ctx, client); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// turn has the clients write, each one call after the other. Those on their way at the end are part
// of it.
func (b *bulk) turn(ctx context.Context, lasting time.Duration) error {
	took := make([][]time.Duration, bulkClients)
	began, cpu := time.Now(), b.servers.CPU()
	err := b.all(ctx, func(ctx context.Context, client int) error {
		for n := 0; n == 0 || time.Since(began) < lasting; n++ {
			start := time.Now()
			if err := b.put(ctx, client, bulkKey(client, n)); err != nil {
				return err
			}
			took[client] = append(took[client], time.Since(start))
		}
		return nil
	})
	b.turns = append(b.turns, NewTurn(took, time.Since(began), b.servers.CPU()-cpu))
	return err
}

// startBulkEtcd starts etcd. A third of the clients share a connection, to a member of their own.
func startBulkEtcd(ctx context.Context, path, dir string) (*bulk, error) {
	servers, addresses, err := StartEtcd(ctx, path, dir, 3)
	if err != nil {
		return nil, err
	}
	b := &bulk{system: "etcd", servers: servers}
	var conns []*EtcdConn
	b.close = func() {
		for _, c := range conns {
			c.Close()
		}
		servers.Close()
	}
	for _, a := range addresses {
		conn, err := DialEtcd(a)
		if err != nil {
			b.close()
			return nil, err
		}
		conns = append(conns, conn)
	}
	value := make([]byte, bulkValueBytes)
	b.put = func(ctx context.Context, client int, key string) error {
		return conns[client%len(conns)].Put(ctx, []byte(key), value)
	}
	return b, nil
}

// startBulkService starts a service. The clients are one host, so a connection to each replica is
// shared.
func startBulkService(ctx context.Context, program, dir string, p smr.Protocol, trip string) (*bulk, error) {
	s, err := startServed(ctx, program, dir, service.Config{Protocol: p.Name, RoundTrip: trip})
	if err != nil {
		return nil, err
	}
	value := make([]byte, bulkValueBytes)
	return &bulk{
		system: p.Name, trip: trip, servers: s.servers, close: s.close,
		put: func(ctx context.Context, _ int, key string) error {
			ctx, cancel := context.WithTimeout(ctx, bulkPatience) // without a limit, that is 128 round trips
			defer cancel()
			_, err := s.client.Put(ctx, key, value)
			return err
		},
	}, nil
}
