package geostore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
)

// partialSystems are systems to which it matters where copies are.
func partialSystems() []plan.System {
	return []plan.System{plan.Layered, plan.TAPIR, plan.CarouselBasic, plan.CarouselFast, plan.CarouselDirect}
}

// carouselPlacement moves followers. All balanced placements are computed by the model, and those
// played on which it says that a system does best and worst.
func carouselPlacement() bench.Experiment {
	e := variation("carousel-placement",
		"Retwis on Carousel's five sites, copies at other sites than the ring's: placements on which a protocol does best "+
			"and worst against the floor, and what the model says of all balanced ones", "placement", "copies",
		protocolSystems(waiting(), partialSystems()...), placementPoints, plan.LocalReplica, besideFloor, "system")
	play := e.Measure
	e.Measure = func(ctx context.Context, w bench.Run) ([]table.Row, error) {
		rows, err := play(ctx, w)
		if err != nil {
			return nil, err
		}
		all, err := placementRows(w.Options)
		return append(rows, all...), err
	}
	e.Figures = nil
	for _, f := range []struct{ suffix, column, label string }{
		{"latency", "attempt_mean_ms", "mean latency (ms)"},
		{"ratio", "attempt_ratio_to_floor", "mean latency, against the floor"},
	} {
		e.Figures = append(e.Figures, figure.Spec{
			Suffix: f.suffix, Title: "Retwis by placement, transactions that write what has a copy at their site",
			Y: f.column, YLabel: f.label, Across: []string{"placement"}, Series: []string{"system"},
			Where: table.Is("figure", "placement"),
		})
	}
	return e
}

// besideFloor compares with the layered protocol, and with the floor of the same transactions.
func besideFloor(rows []table.Row) {
	besideLayered(rows)
	for i, row := range rows {
		own, ok := row.Number("attempt_mean_ms")
		if floor, found := row.Number("floor_mean_ms"); ok && found && floor > 0 {
			rows[i] = append(row, table.Measure("attempt_ratio_to_floor", own/floor))
		}
	}
}

// placementPoints are the ring, and placements on which systems do best and worst against the
// floor, by the model: of all transactions, and of those of a site's own copies, which differ most.
func placementPoints(o bench.Options) ([]studyPoint, error) {
	ring, err := varied(o, zipfAlpha, nil)
	if err != nil {
		return nil, err
	}
	points := []studyPoint{ring}
	ranked := bench.Pick(o, []plan.System{plan.CarouselDirect}, partialSystems())
	by := bench.Pick(o, []plan.Class{plan.LocalReplica}, []plan.Class{plan.All, plan.LocalReplica})
	type extreme struct {
		least, most float64
		best, worst [][]wan.Site
	}
	found := make([]extreme, len(ranked)*len(by))
	err = eachPlacement(o, ring, ranked, func(p [][]wan.Site, of func(plan.System, plan.Class) plan.Row) {
		for i := range found {
			f, class := &found[i], by[i%len(by)]
			r := float64(of(ranked[i/len(by)], class).Mean) / float64(of(plan.Floor, class).Mean)
			if f.best == nil || r < f.least {
				f.least, f.best = r, p
			}
			if f.worst == nil || r > f.most {
				f.most, f.worst = r, p
			}
		}
	})
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		for _, p := range [][][]wan.Site{f.best, f.worst} {
			next, err := varied(o, zipfAlpha, func(s *studyPoint) { s.place.moveTo(p) })
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(points, func(s studyPoint) bool { return s.place.label() == next.place.label() }) {
				points = append(points, next)
			}
		}
	}
	return points, nil
}

// eachPlacement calls f with each balanced placement, and what the model says of systems and of the
// floor there.
func eachPlacement(o bench.Options, p studyPoint, systems []plan.System,
	f func([][]wan.Site, func(plan.System, plan.Class) plan.Row)) error {
	setting := p.place.setting()
	setting.Load.Workload, setting.Load.Seed, setting.Load.Txns = p.workload, o.Seed, bench.Pick(o, 200, 1000)
	for placement := range plan.Balanced(p.place.matrix.Sites()) {
		setting.Placement = placement
		rows, err := plan.Latencies(setting, append([]plan.System{plan.Floor}, systems...)...)
		if err != nil {
			return err
		}
		f(placement, func(s plan.System, c plan.Class) plan.Row {
			return rows[slices.IndexFunc(rows, func(r plan.Row) bool {
				return r.System == s && r.Class == c && r.Client == ""
			})]
		})
	}
	return nil
}

// placementRows tell of each system and class what the model says of all balanced placements.
func placementRows(o bench.Options) ([]table.Row, error) {
	ring, err := varied(o, zipfAlpha, nil)
	if err != nil {
		return nil, err
	}
	type kind struct {
		system plan.System
		class  plan.Class
	}
	means, ratios := map[kind][]time.Duration{}, map[kind][]float64{}
	err = eachPlacement(o, ring, partialSystems(), func(_ [][]wan.Site, of func(plan.System, plan.Class) plan.Row) {
		for _, s := range partialSystems() {
			for _, c := range plan.Classes() {
				own, k := of(s, c).Mean, kind{s, c}
				means[k] = append(means[k], own)
				ratios[k] = append(ratios[k], float64(own)/float64(of(plan.Floor, c).Mean))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var rows []table.Row
	for _, s := range partialSystems() {
		for _, c := range plan.Classes() {
			k := kind{s, c}
			row := table.Row{table.Is("system", string(s)), table.Is("wan", ring.place.wan),
				table.Is("placement", "all balanced"), table.Is("placements", len(means[k])), table.Is("site", "all"),
				table.Is("class", string(c))}
			rows = append(rows, append(append(row, ring.params...),
				table.Measure("model_mean_ms", table.Ms(table.Mean(means[k]))),
				table.Measure("model_least_ms", table.Ms(slices.Min(means[k]))),
				table.Measure("model_most_ms", table.Ms(slices.Max(means[k]))),
				table.Measure("model_least_ratio_to_floor", slices.Min(ratios[k])),
				table.Measure("model_most_ratio_to_floor", slices.Max(ratios[k]))))
		}
	}
	return rows, nil
}

// moveTo has copies elsewhere.
func (p *spread) moveTo(placement [][]wan.Site) {
	p.placement = make([][]string, len(placement))
	for k, at := range placement {
		for _, s := range at {
			p.placement[k] = append(p.placement[k], string(s))
		}
	}
}

// label names where copies are: "ring" or, for each partition, the numbers of its sites, its
// leader's first.
func (p *spread) label() string {
	var parts []string
	ring := true
	sites := p.matrix.Sites()
	for k, at := range p.placement {
		part := ""
		for i, s := range at {
			n := slices.Index(sites, wan.Site(s))
			ring = ring && slices.Contains(at, string(sites[(k+i)%len(sites)]))
			part += fmt.Sprint(n)
		}
		ring = ring && at[0] == string(sites[k%len(sites)])
		parts = append(parts, part)
	}
	if ring {
		return "ring"
	}
	return strings.Join(parts, " ")
}
