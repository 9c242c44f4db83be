package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

func smrFailover() Experiment {
	return Experiment{
		Name:    "smr-failover",
		Summary: "how long nobody is answered when the leader of three replicas in North America is killed",
		Modes:   []Mode{Virtual},
		points:  failoverPoints,
		figures: []figure{{
			title: "Time without an answer after a leader's death, longest of all kills", y: "gap_max_ms", yLabel: "gap (ms)",
			across: []string{"ack"}, series: []string{"system"},
		}},
	}
}

func failoverPoints(s scale, o Options) []point {
	var points []point
	kills := pick(s, 20, 1000)
	for _, p := range catalog.Protocols() {
		for _, ack := range acks() {
			points = append(points, point{
				doing: fmt.Sprintf("%s %s, %d kills", p.Name, ack, kills),
				run:   func(ctx context.Context) ([]Row, error) { return failoverRow(ctx, o, p, ack, kills) },
			})
		}
	}
	return points
}

func failoverRow(ctx context.Context, o Options, p smr.Protocol, ack smr.Ack, kills int) ([]Row, error) {
	d, err := wan.Preset("na3")
	if err != nil {
		return nil, err
	}
	var all, one []time.Duration
	acknowledged, lost := 0, 0
	for i := range kills {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := replicated.Failover(replicated.Setting{
			Protocol: p, WAN: d, Seed: o.Seed*1_000_000 + uint64(i), Ack: ack, Every: 100 * time.Millisecond, Sync: syncTime,
		})
		if err != nil {
			return nil, err
		}
		all, one = append(all, g.All), append(one, g.One)
		acknowledged, lost = acknowledged+g.Acknowledged, lost+g.Lost
	}
	slices.Sort(all)
	slices.Sort(one)
	return []Row{{
		{"system", p.Name},
		{"wan", "na3"},
		{"site", "all"},
		{"ack", ack.String()},
		{"durable", "yes"},
		{"batch", "default"},
		{"kills", kills},
		measure("gap_p50_ms", ms(quantile(all, 0.5))),
		measure("gap_p99_ms", ms(quantile(all, 0.99))),
		measure("gap_max_ms", ms(quantile(all, 1))),
		measure("one_client_gap_p50_ms", ms(quantile(one, 0.5))),
		measure("one_client_gap_max_ms", ms(quantile(one, 1))),
		{"acknowledged", acknowledged},
		{"lost", lost},
	}}, nil
}
