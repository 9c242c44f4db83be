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

// acks are what a call of a replicated service waits for, of what all protocols have.
func acks() []smr.Ack { return []smr.Ack{smr.AckDurable, smr.AckExecuted} }

// syncTime is what a sync of a disk takes in virtual time, where it is modelled.
const syncTime = time.Millisecond

func durableName(durable bool) string {
	if durable {
		return "yes"
	}
	return "no"
}

// latencyCells returns the usual figures of latencies, which it sorts.
func latencyCells(took []time.Duration) []Cell {
	slices.Sort(took)
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	return []Cell{
		measure("mean_ms", ms(sum)/float64(max(len(took), 1))), measure("p50_ms", ms(quantile(took, 0.5))),
		measure("p95_ms", ms(quantile(took, 0.95))), measure("p99_ms", ms(quantile(took, 0.99))),
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func smrLatency() Experiment {
	return Experiment{
		Name:    "smr-latency",
		Summary: "replicated writes from each site of the papers' networks (thesis tables 4.1 and 4.4)",
		Modes:   []Mode{Virtual},
		points:  latencyPoints,
		figures: []figure{
			{
				suffix: "na3", title: "Writes to three replicas in North America, the leader in WA", y: "p50_ms", yLabel: "median latency (ms)",
				across: []string{"site"}, series: []string{"system", "ack"}, where: Cell{"wan", "na3"},
			},
			{
				suffix: "globe3", title: "Writes to three replicas on three continents, the leader in WA", y: "p50_ms", yLabel: "median latency (ms)",
				across: []string{"site"}, series: []string{"system", "ack"}, where: Cell{"wan", "globe3"},
			},
		},
	}
}

func latencyPoints(s scale, o Options) []point {
	var points []point
	for _, network := range pick(s, []string{"na3"}, []string{"na3", "na5", "globe3"}) {
		for _, p := range catalog.Protocols() {
			for _, ack := range acks() {
				for _, durable := range pick(s, []bool{false}, []bool{false, true}) {
					points = append(points, point{
						doing: fmt.Sprintf("%s %s %s durable=%s", network, p.Name, ack, durableName(durable)),
						run: func(context.Context) ([]Row, error) {
							return latencyRows(s, o, network, p, ack, durable)
						},
					})
				}
			}
		}
	}
	return points
}

func latencyRows(s scale, o Options, network string, p smr.Protocol, ack smr.Ack, durable bool) ([]Row, error) {
	d, err := wan.Preset(network)
	if err != nil {
		return nil, err
	}
	setting := replicated.Setting{Protocol: p, WAN: d, Seed: o.Seed, Ack: ack, Every: 20 * time.Millisecond}
	if durable {
		setting.Sync = syncTime
	}
	sites, err := replicated.Latency(setting, pick(s, 2*time.Second, 10*time.Second))
	if err != nil {
		return nil, err
	}
	var rows []Row
	var all, model []time.Duration
	row := func(site string, took, model []time.Duration) Row {
		r := Row{
			{"system", p.Name},
			{"wan", network},
			{"site", site},
			{"ack", ack.String()},
			{"durable", durableName(durable)},
			{"batch", "default"},
		}
		r = append(r, latencyCells(took)...)
		slices.Sort(model)
		r = append(r, measure("model_p50_ms", ms(quantile(model, 0.5))), measure("model_p95_ms", ms(quantile(model, 0.95))))
		return append(r, Cell{"calls", len(took)})
	}
	for _, site := range sites {
		for range site.Calls {
			model = append(model, site.Model)
		}
		all = append(all, site.Took()...)
	}
	rows = append(rows, row("all", all, model))
	for _, site := range sites {
		rows = append(rows, row(string(site.Site), site.Took(), []time.Duration{site.Model}))
	}
	return rows, nil
}
