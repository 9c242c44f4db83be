package geostore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// Carousel's evaluation has 20 clients at each of five sites, in four programs, and 200
// transactions a second in all [Carousel §3.4.1, §3.4.3].
const (
	spreadClients  = 20
	spreadSharing  = 5
	spreadReplicas = 3
	spreadRate     = 200
)

// spread is a store whose partitions have copies at some of the sites, beside the model of it.
type spread struct {
	wan       string // the preset's name
	matrix    wan.Matrix
	placement [][]string    // by partition, the site of its leader first
	offset    time.Duration // see Config.Offset
	stale     bool          // transactions that only read may see what is old
	general   bool          // nobody declares keys,
	predicted int           // and of so many reads in a hundred clients have a guess at once
}

// ringOf has a partition led at each site of a preset, with copies at the two that follow in the
// preset's order.
func ringOf(preset string) (*spread, error) {
	d, err := wan.Preset(preset)
	if err != nil {
		return nil, err
	}
	var sites []string
	for _, s := range d.Matrix.Sites() {
		sites = append(sites, string(s))
	}
	p := &spread{wan: preset, matrix: d.Matrix}
	p.placement, err = store.Ring(sites, len(sites), spreadReplicas, nil)
	return p, err
}

// config is of a store of a system. Its keys are those that somebody has written: most protocols
// have no way to load others, and a read takes as long if there is nothing.
func (p *spread) config(s system, seed uint64) Config {
	protocol := s.protocol()
	c := Config{Protocol: protocol, Matrix: p.matrix, Shards: len(p.placement), ValueBytes: valueSize,
		Declared: !p.general, Predicted: p.predicted, Once: !s.again, Offset: p.offset, Seed: seed,
		ByArrival: s.byArrival}
	if protocol.Partial {
		c.Placement = p.placement
	}
	return c
}

// setting is what the model is told.
func (p *spread) setting() plan.Setting {
	s := plan.Setting{WAN: p.matrix, Clients: plan.Everywhere(p.matrix),
		Load: plan.Load{Declared: !p.general, General: p.general, Predicted: p.predicted, Stale: p.stale}}
	for _, sites := range p.placement {
		var at []wan.Site
		for _, site := range sites {
			at = append(at, wan.Site(site))
		}
		s.Placement = append(s.Placement, at)
	}
	return s
}

// partitioned returns a transaction with partitions in place of keys.
func (p *spread) partitioned(ops []workload.Op) (t plan.Txn) {
	for _, o := range ops {
		k := store.ShardOf(store.Key(workload.Name(o.Key)), len(p.placement))
		if o.Read {
			t.Reads = append(t.Reads, k)
		}
		if o.Write {
			t.Writes = append(t.Writes, k)
		}
	}
	return t
}

// modelled is a measured transaction with what the model says of it.
type modelled struct {
	Txn
	class        plan.Class
	model, floor time.Duration
}

func (m outcome) modelled() []modelled {
	setting, sites := m.place.setting(), m.matrix.Sites()
	all := make([]modelled, len(m.played.Txns))
	for i, t := range m.played.Txns {
		client, txn := slices.Index(sites, t.Site), m.place.partitioned(t.Ops)
		all[i] = modelled{Txn: t, class: setting.ClassOf(client, txn)}
		all[i].model, _ = plan.Latency(setting, plan.System(m.system), client, txn)
		all[i].floor, _ = plan.Latency(setting, plan.Floor, client, txn)
	}
	return all
}

// readWrite is both classes of transactions that write.
const readWrite plan.Class = "rw"

// in reports whether a class has the transaction.
func (t modelled) in(class plan.Class) bool { return isIn(t.class, class) }

// isIn reports whether a class has all transactions of another one, which is none of several.
func isIn(own, class plan.Class) bool {
	return class == plan.All || class == own || class == readWrite && own != plan.ReadOnly
}

// protocolRows returns a row for each site and class, those of all sites together first.
func protocolRows(m outcome) []table.Row {
	var rows []table.Row
	all := m.modelled()
	for _, site := range append([]wan.Site{"all"}, m.matrix.Sites()...) {
		for _, class := range append(plan.Classes(), readWrite) {
			own := slices.DeleteFunc(slices.Clone(all), func(t modelled) bool {
				return !t.in(class) || site != "all" && t.Site != site
			})
			commits := -1
			switch {
			case class != plan.All:
			case site == "all":
				commits = total(m.played.Commits)
			default:
				commits = m.played.Commits[site]
			}
			rows = append(rows, m.protocolRow(site, class, own, commits))
		}
	}
	return rows
}

func (m outcome) protocolRow(site wan.Site, class plan.Class, all []modelled, commits int) table.Row {
	row := slices.Concat(table.Row{table.Is("system", m.system)}, m.placeCells(),
		table.Row{table.Is("site", string(site)), table.Is("class", string(class))}, table.Row(m.params))
	var txns []Txn
	var model, floor []time.Duration
	for _, t := range all {
		txns, model, floor = append(txns, t.Txn), append(model, t.model), append(floor, t.floor)
	}
	mean, cells := m.measures(txns, commits)
	if row = append(row, cells...); mean == 0 {
		return row
	}
	row = append(row, m.paths(site, class, all)...)
	slices.Sort(model)
	slices.Sort(floor)
	p50, _ := row.Number("attempt_p50_ms")
	row = append(row,
		table.Measure("model_mean_ms", table.Ms(table.Mean(model))),
		table.Measure("model_p50_ms", table.Ms(table.Quantile(model, 0.5))),
		table.Measure("model_p95_ms", table.Ms(table.Quantile(model, 0.95))),
		table.Measure("floor_mean_ms", table.Ms(table.Mean(floor))),
		table.Measure("floor_p50_ms", table.Ms(table.Quantile(floor, 0.5))))
	if median := table.Quantile(model, 0.5); median > 0 { // else all that is needed is at the client's site
		row = append(row, table.Measure("p50_ratio_to_model", p50/table.Ms(median)))
	}
	return row
}

// everywhere is the placement of systems all of whose sites have all copies.
const everywhere = "everywhere"

// placeCells tell what store it is, beside the system; none if it is the paper's.
func (m outcome) placeCells() table.Row {
	if m.place == nil {
		return nil
	}
	at := m.place.label()
	if plan.System(m.system).Whole() {
		at = everywhere
	}
	return table.Row{table.Is("mode", m.mode.String()), table.Is("wan", m.place.wan), table.Is("placement", at)}
}

// updates are transactions that read and write each of their keys.
type updates struct{ workload.YCSBT }

// Next implements workload.Workload.
func (w updates) Next(r *rand.Rand) workload.Txn {
	t := w.YCSBT.Next(r)
	for i := range t.Ops {
		t.Ops[i].Write = true
	}
	return t
}

// fourUpdates is the thesis' YCSB+T [Carousel §3.4.2].
func fourUpdates(keys workload.Keys) (workload.Workload, error) {
	y, err := workload.NewYCSBT(workload.YCSBT{Keys: keys, Ops: 4, ReadPercent: 100})
	return updates{y}, err
}

func retwis(keys workload.Keys) (workload.Workload, error) { return workload.Retwis{Keys: keys}, nil }

// spreadPoint is a workload on the ring of a preset, as the thesis has it: of 90 seconds the first
// 30 are dropped, and the last 30 left out, as nothing of them counts.
func spreadPoint(o bench.Options, preset, name string, alpha float64,
	of func(workload.Keys) (workload.Workload, error)) (studyPoint, error) {
	place, err := ringOf(preset)
	if err != nil {
		return studyPoint{}, err
	}
	keys, err := workload.Zipfian(fullKeys, alpha)
	if err != nil {
		return studyPoint{}, err
	}
	w, err := of(keys)
	clients := spreadClients * len(place.matrix.Sites())
	return studyPoint{
		params: []table.Cell{table.Is("workload", name), table.Is("alpha", alpha)}, workload: w, place: place,
		clients: spreadClients, sharing: spreadSharing, every: time.Duration(clients) * time.Second / spreadRate,
		warm: bench.Pick(o, warmUpTime, 30*time.Second), lasting: bench.Pick(o, 3*time.Second, 30*time.Second),
	}, err
}

// protocolSystems are systems of the model that exist, under clients of each of some modes.
func protocolSystems(modes []client.Mode, systems ...plan.System) (all []system) {
	for _, s := range systems {
		if !slices.Contains(plan.Systems(), s) { // which all exist: TestProtocolSystems
			panic(fmt.Sprintf("geostore: %s is a model only", s))
		}
		protocol := func() store.Protocol {
			p, _ := storesim.ProtocolOf(s)
			return p
		}
		for _, mode := range modes {
			all = append(all, system{name: string(s), protocol: protocol, mode: mode})
		}
	}
	return all
}

// besideLayered compares with the layered protocol.
func besideLayered(rows []table.Row) { addRatios(rows, string(plan.Layered), "attempt") }

// waiting is the mode of the thesis' clients: they wait for what they read.
func waiting() []client.Mode { return []client.Mode{client.GRPC} }

// protocolIntervals are the measures that are told with intervals.
func protocolIntervals() []string {
	return []string{"attempt_mean_ms", "attempt_p50_ms", "attempt_p95_ms", "attempt_ms", "abort_percent", "commits_per_s",
		"attempt_ratio_to_layered", "fast_path_percent", "wide_area_trips"}
}

// thesisExperiment puts the protocols of Carousel's evaluation under one of its workloads.
func thesisExperiment(name, summary, title string, point func(bench.Options) (studyPoint, error),
	medians map[plan.System]float64) bench.Experiment {
	systems := []plan.System{plan.Layered, plan.TAPIR, plan.CarouselBasic, plan.CarouselFast, plan.CarouselDirect,
		plan.ReplicatedCommit}
	var marks []figure.Mark
	for _, s := range systems {
		if m, ok := medians[s]; ok {
			marks = append(marks, figure.Mark{Line: string(s), X: m, Y: 50})
		}
	}
	return bench.Experiment{
		Name: name, Summary: summary, Modes: []bench.Mode{bench.Virtual, bench.Real}, Bubbles: true,
		Intervals: protocolIntervals(),
		Measure: latencyStudy{
			systems: protocolSystems(waiting(), systems...), rows: protocolRows, compare: besideLayered, distribution: true,
			points: func(o bench.Options) ([]studyPoint, error) {
				p, err := point(o)
				return []studyPoint{p}, err
			},
		}.run,
		Figures: []figure.Spec{
			{
				Suffix: "distribution", Title: title + ": attempts that committed", X: "attempt_ms", XLabel: "latency (ms)",
				Y: "percentile", YLabel: "cumulative share (%)", Series: []string{"system"}, Where: table.Is("site", table.OfAll),
				Scattered: true, Marks: marks,
			},
			{
				Suffix: "classes", Title: title + ": median latency by class", Y: "attempt_p50_ms",
				YLabel: "median latency (ms)",
				Across: []string{"class"}, Series: []string{"system"}, Where: table.Is("site", "all"),
			},
		},
	}
}

func carouselRetwis() bench.Experiment {
	return thesisExperiment("carousel-retwis",
		"Retwis on five sites, each with three of five partitions, 200 transactions a second, by protocol (thesis table "+
			"3.2, figure 3.4); virtual: a disk syncs in 1 ms", "Retwis",
		func(o bench.Options) (studyPoint, error) {
			return spreadPoint(o, "carousel", "retwis", zipfAlpha, retwis)
		},
		map[plan.System]float64{plan.CarouselBasic: 290, plan.CarouselFast: 232, plan.TAPIR: 334})
}

func carouselYCSBT() bench.Experiment {
	return thesisExperiment("carousel-ycsbt",
		"the same with transactions that read and write four keys each (thesis figure 3.8)", "YCSB+T",
		func(o bench.Options) (studyPoint, error) {
			return spreadPoint(o, "carousel", "ycsbt", zipfAlpha, fourUpdates)
		},
		map[plan.System]float64{plan.CarouselBasic: 400, plan.CarouselFast: 259, plan.TAPIR: 337})
}

// storeProtocols puts all protocols, under clients of all modes that wait in a way of their own, on
// two networks.
func storeProtocols() bench.Experiment {
	modes := []client.Mode{client.GRPC, client.Spec, client.Predicated}
	var figures []figure.Spec
	for _, preset := range protocolNetworks() {
		figures = append(figures, figure.Spec{
			Suffix: preset, Title: "Retwis on the sites of " + preset + ": mean latency", Y: "attempt_mean_ms",
			YLabel: "mean latency (ms)", Across: []string{"system"}, Series: []string{"mode"},
			Where: table.Is("figure", preset),
		})
	}
	return bench.Experiment{
		Name: "store-protocols",
		Summary: "Retwis by protocol and mode of the clients, on two networks, keys declared; virtual: a disk syncs in " +
			"1 ms",
		Modes: []bench.Mode{bench.Virtual, bench.Real}, Bubbles: true, Intervals: protocolIntervals(),
		Measure: latencyStudy{
			systems: protocolSystems(modes, plan.Systems()...), compare: besideLayered,
			rows: func(m outcome) []table.Row { return withFigure(protocolRows(m), m.place.wan) },
			points: func(o bench.Options) ([]studyPoint, error) {
				return collect(protocolNetworks(), func(preset string) (studyPoint, error) {
					p, err := spreadPoint(o, preset, "retwis", zipfAlpha, retwis)
					p.warm = bench.Pick(o, 2*time.Second, 5*time.Second)
					p.lasting = bench.Pick(o, 600*time.Millisecond, 10*time.Second)
					return p, err
				})
			},
		}.run,
		Figures: figures,
	}
}

// protocolNetworks are presets, that of SpecRPC's evaluation and that of Carousel's.
func protocolNetworks() []string { return []string{"specrpc", "carousel"} }

// withFigure marks the first row, of all sites and classes, for the figure of a name.
func withFigure(rows []table.Row, name string) []table.Row {
	rows[0] = append(rows[0], table.Is("figure", name))
	return rows
}
