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

func smrClients() bench.Experiment {
	return bench.Experiment{
		Name: "smr-clients",
		Summary: "64 and 1,000 clients, each of which waits until a write of 16 bytes is executed before the next, of " +
			"three processes with disks and of etcd, in turns: writes per second, latency, the servers' processor time",
		Modes:       []bench.Mode{bench.Real},
		PerProtocol: true,
		Measure:     bench.Points(perProtocol(clientsRows)),
		Figures: []figure.Spec{
			{
				Suffix: "ops", Title: "Values of 16 bytes, three processes on one machine, on disk, no TLS", Y: "ops_per_s",
				YLabel: "writes per second, until executed",
				Across: []string{"system"}, Series: []string{"clients"},
			},
			{
				Suffix: "ratio", Title: "Values of 16 bytes, three processes on one machine, in turns with etcd",
				Y: "ops_ratio_to_etcd", YLabel: "writes per second, by etcd's",
				Across: []string{"system"}, Series: []string{"clients"}, Ratio: true,
			},
		},
	}
}

// clientsRows are those of a protocol, and of the etcd beside it.
func clientsRows(ctx context.Context, o bench.Options, p smr.Protocol) (rows []table.Row, err error) {
	err = bench.WithTempDir(func(dir string) error {
		c, err := startContest(ctx, o, dir, p, snapshotsRoundTrip)
		defer c.close()
		if err != nil {
			return err
		}
		var loops []*closedLoop
		etcd := map[int]*closedLoop{} // by clients
		for _, one := range c.all {
			for _, n := range []int{64, 1000} {
				l := &closedLoop{contender: one, clients: n, valueBytes: 16}
				if loops = append(loops, l); one.system == "etcd" {
					etcd[n] = l
				}
			}
		}
		if err := play(ctx, o, loops, bench.Pick(o, 1, 4), bench.Pick(o, 300*time.Millisecond, 3*time.Second)); err != nil {
			return err
		}
		for _, l := range loops {
			rows = append(rows, slices.Concat(table.Row{table.Is("system", l.system), table.Is("turns_with", p.Name),
				c.beside(), table.Is("ack", smr.AckExecuted.String()), table.Is("tls", "none"),
				table.Is("durable", durableName(true)), table.Is("processes", 3)}, l.cells(etcd[l.clients])))
		}
		return nil
	})
	return rows, err
}
