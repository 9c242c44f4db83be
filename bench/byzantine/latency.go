package byzantine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftsim"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

func latencyExperiment() bench.Experiment {
	draw := func(network, title string) figure.Spec {
		return figure.Spec{
			Suffix: network, Title: title, Y: "p50_ms", YLabel: "median latency (ms)",
			Across: []string{"site"}, Series: []string{"system", "until"}, Where: table.Is("figure", network), Floor: "floor_ms",
		}
	}
	return bench.Experiment{
		Name: "bft-latency",
		Summary: "what clients at nine and at six sites wait for: first reply, confirmed one, optimised read, the model " +
			"and the floor of n=3f+1; each call alone, and all clients at once",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.PointsAtOnce(latencyPoints),
		Figures: []figure.Spec{
			draw("na4", "Byzantine replicas at TX (primary), WA, VA and QC, each call alone"),
			draw("globe4", "Byzantine replicas at SG (primary), WA, PR and NSW, each call alone"),
		},
	}
}

func latencyPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, network := range []string{"na4", "globe4"} {
		for _, p := range byzantineProtocols() {
			s := struck{protocol: p, network: network, replicas: 4}
			points = append(points, bench.Point{
				Doing: fmt.Sprintf("%s on %s, each call alone", s.system(), network),
				Run:   func(context.Context) ([]table.Row, error) { return aloneRows(s) },
			}, bench.Point{
				Doing: fmt.Sprintf("%s on %s, all clients at once", s.system(), network),
				Run:   func(context.Context) ([]table.Row, error) { return busyRows(s, o) },
			})
		}
	}
	return points
}

// waited is what clients waited for until some moment: by client, in the order of a setting's.
type waited map[plan.Moment][][]time.Duration

// aloneRows has each call made alone.
func aloneRows(s struck) ([]table.Row, error) {
	d, err := s.place()
	if err != nil {
		return nil, err
	}
	compared, err := plansim.CompareByzantine(s.protocol, plan.From(d), 1)
	if err != nil {
		return nil, err
	}
	w := waited{}
	for _, c := range compared {
		if c.Until == plan.First && s.system().Name != cs {
			continue // it has none
		}
		w[c.Until] = append(w[c.Until], []time.Duration{c.Measured})
	}
	return w.rows(s, d, "alone")
}

// busyRows has all clients increment the counter and read it, three times out of four, one call
// after the other.
func busyRows(s struck, o bench.Options) ([]table.Row, error) {
	d, err := s.place()
	if err != nil {
		return nil, err
	}
	g, err := bftsim.New(bftsim.Config{Protocol: s.protocol, Service: counter.Service{}, Place: d,
		Sim: sim.Config[bft.Message]{Seed: o.Seed, CodecChance: codecChance, CheckEvery: 1000, TraceKeep: -1}})
	if err != nil {
		return nil, err
	}
	w, random, stopped := waited{}, bench.Random(o.Seed, 0x1a7), false
	var next func(i int, id protocol.ID)
	next = func(i int, id protocol.ID) {
		if stopped {
			return
		}
		began, read := g.Now(), random.IntN(4) > 0
		call, until := bft.Call{Command: counter.Increment(counter.Reply{})}, plan.Confirmed
		if read {
			call, until = bft.Call{Command: counter.Query(), Read: true}, plan.Read
		}
		g.Make(id, call, bftsim.Told{
			First: func(bft.Result) {
				if !read { // or it could not go around the order
					w[plan.First][i] = append(w[plan.First][i], g.Now()-began)
				}
			},
			Done: func(_ bft.Result, took time.Duration) {
				w[until][i] = append(w[until][i], took)
				g.After(time.Duration(random.Int64N(int64(thinking))), func() { next(i, id) })
			},
		})
	}
	for _, m := range plan.PBFT.Moments() {
		w[m] = make([][]time.Duration, len(g.Clients))
	}
	if err := g.Pass(settling); err != nil {
		return nil, err
	}
	for i, id := range g.Clients {
		next(i, id)
	}
	if err := g.Pass(bench.Pick(o, 10*time.Second, time.Minute)); err != nil {
		return nil, err
	}
	stopped = true
	return w.rows(s, d, "all clients")
}

func inMs(all []time.Duration) (ms []float64) {
	for _, d := range all {
		ms = append(ms, table.Ms(d))
	}
	return ms
}

// rows returns a row for each moment and client, after one of all clients, whose median is that of
// the clients' medians.
func (w waited) rows(s struck, d wan.Deployment, load string) ([]table.Row, error) {
	setting := plan.From(d)
	system := plan.System(s.protocol.Name)
	models, err := plan.Latencies(setting, plan.ByzantineFloor, system)
	if err != nil {
		return nil, err
	}
	reads := map[plan.Moment]string{plan.First: "none", plan.Confirmed: "none", plan.Read: "optimised"}
	var rows []table.Row
	for _, m := range []plan.Moment{plan.Confirmed, plan.First, plan.Read} {
		model, floor := plan.Of(models, system, m), plan.Of(models, plan.ByzantineFloor, m)
		row := func(site wan.Site, took []time.Duration, model, floor []plan.Row) table.Row {
			r := slices.Concat(s.system().named(s.network, reads[m], false), table.Row{table.Is("load", load),
				table.Is("site", string(site)), table.Is("until", m.String())})
			if load == "alone" {
				r = append(r, table.Is("figure", s.network))
			}
			r = append(r, table.Measure("p50_ms", table.Median(inMs(took))),
				table.Measure("model_ms", table.Ms(plan.Quantile(model, 0.5))))
			if m != plan.First { // of which the floor is that some replica is near
				r = append(r, table.Measure("floor_ms", table.Ms(plan.Quantile(floor, 0.5))))
			}
			return append(r, table.Is("calls", len(took)))
		}
		var medians []time.Duration
		var each []table.Row
		for i, took := range w[m] {
			if len(took) == 0 {
				continue // there are no first replies
			}
			each = append(each, row(model[i].Client.Site, took, model[i:i+1], floor[i:i+1]))
			slices.Sort(took)
			medians = append(medians, table.Quantile(took, 0.5))
		}
		if len(medians) > 0 {
			rows = append(append(rows, row("all", medians, model, floor)), each...)
		}
	}
	return rows, nil
}
