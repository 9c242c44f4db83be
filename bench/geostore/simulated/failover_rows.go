package simulated

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

func carouselFailover() bench.Experiment {
	where := table.Is("figure", "victims")
	return bench.Experiment{
		Name: "carousel-failover",
		Summary: "a partition's leader, a coordinator or a whole site of Carousel's five is killed while clients make " +
			"Retwis transactions, by protocol: how long clients elsewhere wait, what is lost, and how it goes on",
		Modes: []bench.Mode{bench.Virtual},
		Intervals: []string{"gap_ms", "client_gap_ms", "attempt_mean_ms", "gone_mean_ms", "gone_ratio_to_all",
			"fast_path_percent", "gone_fast_path_percent"},
		Measure: bench.PointsAtOnce(failoverPoints),
		Figures: []figure.Spec{
			{
				Suffix: "gap", Title: "Longest time without a commit after the kill, of the client that waits longest",
				Y: "client_gap_ms", YLabel: "gap (ms)", Across: []string{"victim"}, Series: []string{"system"}, Where: where,
			},
			{
				Suffix: "after", Title: "Mean latency when something is gone, against that with all", Y: "gone_ratio_to_all",
				YLabel: "times the mean latency with all", Ratio: true, Across: []string{"victim"},
				Series: []string{"system"}, Where: where,
			},
		},
	}
}

// victims are those that a system has. Of carousel-basic and carousel-fast the leader coordinates
// the transactions of its site, too.
func victims(s plan.System) []victim {
	p, _ := storesim.ProtocolOf(s)
	var all []victim
	if p.Leads {
		all = append(all, leader)
	}
	if p.Coordinating {
		all = append(all, coordinator)
	}
	return append(all, wholeSite)
}

func failoverPoints(o bench.Options) (points []bench.Point) {
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		for _, v := range victims(s) {
			f := failover{system: s, victim: v, seed: o.Seed, alpha: zipfAlpha, warm: 3 * time.Second,
				turn: bench.Pick(o, 10*time.Second, 15*time.Second), lasting: bench.Pick(o, 5*time.Second, 20*time.Second),
				clients: bench.Pick(o, 6, 20)}
			points = append(points, bench.Point{Doing: fmt.Sprintf("%s, %s is killed", s, v),
				Run: func(context.Context) ([]table.Row, error) {
					m, err := f.run()
					if err != nil {
						return nil, err
					}
					return []table.Row{m.row()}, nil
				}})
		}
	}
	return points
}

func (f *fell) row() table.Row {
	first := string(wan.Carousel().Sites()[0])
	site := "all"
	if f.victim == wholeSite {
		site = "all but " + first
	}
	row := append(cells(f.system, "carousel", site), table.Is("victim", string(f.victim)), table.Is("killed_at", first),
		table.Measure("gap_ms", table.Ms(f.none)), table.Measure("client_gap_ms", table.Ms(f.one)),
		table.Is("acknowledged", f.acknowledged), table.Is("lost", f.lost), table.Is("unknown", f.unknown),
		table.Is("blocked", f.blocked))
	up, gone := meanOf(f.up.took), meanOf(f.gone.took)
	row = append(row, table.Measure("attempt_mean_ms", table.Ms(up)), table.Measure("gone_mean_ms", table.Ms(gone)),
		table.Measure("abort_percent", f.up.abortPercent()), table.Measure("gone_abort_percent", f.gone.abortPercent()))
	if up > 0 {
		row = append(row, table.Measure("gone_ratio_to_all", float64(gone)/float64(up)))
	}
	if f.victim == wholeSite {
		model, modelGone := f.model(f.up, ""), f.model(f.gone, wan.Site(first))
		floor, floorGone := f.of(plan.Floor).model(f.up, ""), f.of(plan.Floor).model(f.gone, wan.Site(first))
		row = append(row, table.Measure("model_mean_ms", table.Ms(model)),
			table.Measure("gone_model_mean_ms", table.Ms(modelGone)),
			table.Measure("floor_mean_ms", table.Ms(floor)), table.Measure("gone_floor_mean_ms", table.Ms(floorGone)))
	}
	for _, c := range []struct {
		name  string
		share fastShare
	}{
		{"fast_path_percent", sum(f.up.hit, f.up.rest)}, {"gone_fast_path_percent", sum(f.gone.hit, f.gone.rest)},
		{"gone_fast_path_of_hit_percent", f.gone.hit},
	} {
		if c.share.committed > 0 {
			row = append(row, table.Measure(c.name, 100*float64(c.share.fast)/float64(c.share.committed)))
		}
	}
	return append(row, table.Is("figure", "victims"))
}

func sum(a, b fastShare) fastShare { return fastShare{a.committed + b.committed, a.fast + b.fast} }

func (w window) abortPercent() float64 {
	return 100 * float64(w.aborted) / float64(max(w.aborted+len(w.took), 1))
}

// of returns the same of another system.
func (f *fell) of(s plan.System) *fell {
	other := *f
	other.system = s
	return &other
}

// model returns what the model has for the transactions of a window, in the mean.
func (f *fell) model(w window, lost wan.Site) time.Duration {
	sites := wan.Carousel()
	placement, err := placementOf(sites)
	if err != nil {
		return 0 // nothing would have been measured
	}
	s := plan.Setting{WAN: sites, Clients: plan.Everywhere(sites), Placement: placement, Lost: lost,
		Load: plan.Load{Declared: true}}
	var all []time.Duration
	for _, t := range w.txns {
		if d, ends := plan.Latency(s, f.system, t.client, t.txn); ends {
			all = append(all, d)
		}
	}
	return meanOf(all)
}

func meanOf(all []time.Duration) (sum time.Duration) {
	for _, d := range all {
		sum += d
	}
	return sum / time.Duration(max(len(all), 1))
}
