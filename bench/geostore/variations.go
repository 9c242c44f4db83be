package geostore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// What varies one thing of Carousel's evaluation: skew, locality, or the level of what only reads
// and how far clocks are apart.

// variation is an experiment that has one line for each system, and clients that wait.
func variation(name, summary, varied, label string, systems []system, points func(bench.Options) ([]studyPoint, error),
	class plan.Class, compare func([]table.Row), series ...string) bench.Experiment {
	where := table.Is("figure", varied)
	return bench.Experiment{
		Name: name, Summary: summary + "; virtual: a disk syncs in 1 ms", Modes: []bench.Mode{bench.Virtual},
		Bubbles: true, Intervals: protocolIntervals(),
		Measure: latencyStudy{
			systems: systems, points: points,
			rows: func(m outcome) []table.Row {
				rows, figure := protocolRows(m), where
				if m.again {
					figure = table.Is("figure", "order")
				}
				for i, r := range rows {
					if r.Text("site") == "all" && r.Text("class") == string(class) {
						rows[i] = append(r, figure)
					}
				}
				return rows
			},
			compare: compare,
		}.run,
		Figures: []figure.Spec{
			{
				Suffix: "latency", Title: label + ": mean latency", X: varied, XLabel: label, Y: "attempt_mean_ms",
				YLabel: "mean latency (ms)", Series: series, Where: where,
			},
			{
				Suffix: "aborts", Title: label + ": aborted", X: varied, XLabel: label, Y: "abort_percent",
				YLabel: "aborted (%)", Series: series, Where: where,
			},
		},
	}
}

// alone compares with nothing.
func alone([]table.Row) {}

// varied is Retwis on the ring of Carousel's sites, with one thing changed, for a short while:
// there are many points.
func varied(o bench.Options, alpha float64, change func(*studyPoint)) (studyPoint, error) {
	p, err := spreadPoint(o, "carousel", "retwis", alpha, retwis)
	p.warm = bench.Pick(o, 2*time.Second, 5*time.Second)
	p.lasting = bench.Pick(o, time.Second, 10*time.Second)
	if err == nil && change != nil {
		change(&p)
	}
	return p, err
}

func carouselContention() bench.Experiment {
	fast := func() []system { return protocolSystems(waiting(), plan.CarouselFast) }
	e := variation("carousel-contention",
		"Retwis on Carousel's five sites with keys of different skew, by protocol; and what is aborted tried again, with "+
			"fewer clients, requests ordered by their arrival or not", "alpha", "Zipf's alpha",
		slices.Concat(
			protocolSystems(waiting(), plan.TAPIR, plan.CarouselBasic, plan.CarouselFast, plan.CarouselDirect,
				plan.ReplicatedCommit),
			triedAgain(fast(), false), triedAgain(fast(), true)),
		func(o bench.Options) ([]studyPoint, error) {
			return collect(bench.Pick(o, []float64{0.5, 0.95}, []float64{0.5, 0.65, 0.75, 0.85, 0.95}),
				func(alpha float64) (studyPoint, error) { return varied(o, alpha, nil) })
		}, plan.All, besideUnordered, "system")
	e.Figures = append(e.Figures, figure.Spec{
		Suffix: "end-to-end", Title: "Zipf's alpha: transactions with all their attempts", X: "alpha",
		XLabel: "Zipf's alpha", Y: "end_to_end_p95_ms", YLabel: "95th percentile (ms)",
		Series: []string{"system", "order"}, Where: table.Is("figure", "order"),
	})
	e.Intervals = append(e.Intervals, "end_to_end_mean_ms", "end_to_end_p95_ms", "end_to_end_p95_ratio_to_unordered")
	return e
}

// fewClients is how many clients there are at each site where what is aborted is tried again: a
// fifth. At the full load the hottest keys are overloaded then, and transactions wait in line for
// seconds, whatever else is done.
const fewClients = spreadClients / 5

// triedAgain are systems whose clients try again what is aborted, by arrival or not.
func triedAgain(systems []system, byArrival bool) []system {
	for i := range systems {
		systems[i].again, systems[i].byArrival = true, byArrival
	}
	return systems
}

// besideUnordered compares systems that order requests by their arrival with the same ones that do
// not.
func besideUnordered(rows []table.Row) {
	for i, row := range rows {
		if row.Value("order") != "arrival" {
			continue
		}
		j := slices.IndexFunc(rows, func(b table.Row) bool {
			return b.Value("order") == "none" && same(row, b, "system", "site", "class", "alpha")
		})
		own, ok := row.Number("end_to_end_p95_ms")
		if other, found := rows[max(j, 0)].Number("end_to_end_p95_ms"); ok && found && j >= 0 && other > 0 {
			rows[i] = append(rows[i], table.Measure("end_to_end_p95_ratio_to_unordered", own/other))
		}
	}
}

func carouselLocality() bench.Experiment {
	return variation("carousel-locality",
		"Retwis on Carousel's five sites, of whose transactions 0 to 100 % use keys that are led at their client's site, "+
			"by protocol", "locality_percent", "transactions on keys led here (%)",
		protocolSystems(waiting(), plan.Layered, plan.TAPIR, plan.CarouselBasic, plan.CarouselFast, plan.CarouselDirect,
			plan.ReplicatedCommit),
		func(o bench.Options) ([]studyPoint, error) {
			return collect(bench.Pick(o, []int{0, 100}, []int{0, 25, 50, 75, 100}), func(percent int) (studyPoint, error) {
				return varied(o, zipfAlpha, func(p *studyPoint) {
					p.params = append(p.params, table.Is("locality_percent", percent))
					p.locality, p.move = percent, localise{p.place, percent}.move
				})
			})
		}, plan.All, alone, "system")
}

// localise has a share of transactions use keys of the partitions that are led at their site.
type localise struct {
	place   *spread
	percent int
}

// move returns a transaction that a client at a site makes in place of another one: with the same
// keys, or the next ones that are led at the site. Keys keep their skew so.
func (l localise) move(r *rand.Rand, site wan.Site, t workload.Txn) workload.Txn {
	if r.IntN(100) >= l.percent {
		return t
	}
	used := map[uint64]bool{}
	t.Ops = slices.Clone(t.Ops)
	for i, o := range t.Ops {
		for used[o.Key] || l.place.placement[store.ShardOf(store.Key(workload.Name(o.Key)), len(l.place.placement))][0] !=
			string(site) {
			o.Key++
		}
		used[o.Key] = true
		t.Ops[i] = o
	}
	return t
}

// carouselReadOnly has clients that only read, beside ones that write, at each level while clocks
// are apart.
func carouselReadOnly() bench.Experiment {
	return variation("carousel-readonly",
		"Retwis on Carousel's five sites, its transactions that only read at each level, while clocks are up to 50 ms "+
			"apart (max_offset is 10 ms)", "offset_ms", "clocks are apart by (ms)",
		protocolSystems(waiting(), plan.CarouselBasic, plan.CarouselFast, plan.CarouselDirect),
		func(o bench.Options) (points []studyPoint, err error) {
			for _, offset := range bench.Pick(o, []int{0, 50}, []int{0, 5, 10, 20, 50}) {
				for _, level := range []client.Level{client.Strict, client.Serializable, client.Stale(5 * time.Second)} {
					p, err := varied(o, zipfAlpha, func(p *studyPoint) {
						p.params = append(p.params, table.Is("level", level.String()), table.Is("offset_ms", offset))
						p.level, p.place.offset = level, time.Duration(offset)*time.Millisecond
						_, p.place.stale = level.MaxAge()
					})
					if err != nil {
						return nil, fmt.Errorf("carousel-readonly: %w", err)
					}
					points = append(points, p)
				}
			}
			return points, nil
		}, plan.ReadOnly, alone, "system", "level")
}
