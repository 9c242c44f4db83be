package replicated

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
)

func smrLarge() bench.Experiment {
	return bench.Experiment{
		Name: "smr-large",
		Summary: "64 clients that put values of 64 KiB to services of three processes each, with round_trip 100, 50 " +
			"and 20 ms, and to etcd, in turns: puts per second, latency, the servers' processor time",
		Modes:       []bench.Mode{bench.Real},
		PerProtocol: true,
		Measure:     bench.Points(perProtocol(largeRows)),
		Figures: []figure.Spec{{
			Suffix: "ops", Title: "Values of 64 KiB, 64 clients, three processes on one machine", Y: "ops_per_s",
			YLabel: "puts per second",
			Across: []string{"system"}, Series: []string{"round_trip"},
		}},
	}
}

// largeRows are those of a protocol, and of the etcd beside it.
func largeRows(ctx context.Context, o bench.Options, p smr.Protocol) (rows []table.Row, err error) {
	err = bench.WithTempDir(func(dir string) error {
		trips := bench.Pick(o, []string{"20ms"}, []string{"100ms", "50ms", "20ms"})
		c, err := startContest(ctx, o, dir, p, trips...)
		defer c.close()
		if err != nil {
			return err
		}
		var loops []*closedLoop
		for _, one := range c.all {
			loops = append(loops, &closedLoop{contender: one, clients: 64, valueBytes: 64 << 10})
		}
		if err := play(ctx, o, loops, bench.Pick(o, 1, 4), bench.Pick(o, 300*time.Millisecond, 3*time.Second)); err != nil {
			return err
		}
		var etcd *closedLoop
		if c.etcd == "" {
			etcd = loops[0]
		}
		for _, l := range loops {
			rows = append(rows, slices.Concat(table.Row{table.Is("system", l.system), c.beside(),
				table.Is("round_trip", l.trip)}, l.cells(etcd)))
		}
		return nil
	})
	return rows, err
}
