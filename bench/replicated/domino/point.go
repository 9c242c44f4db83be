package domino

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	smrdomino "github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// The settings of Domino's evaluation [Thesis §4.5.1]. There a client probes every 10 ms, here as
// often as the protocol does by default; and there the clocks are those of a cloud, of which
// nothing is said.
const (
	every      = time.Second / 200 // between two calls of a client
	keyCount   = 1_000_000
	usualAlpha = 0.75
	skew       = time.Millisecond // between any two clocks
	// roundTrip is what nodes are told of the network at least, as by default: less would
	// make them take a retransmission for a failure.
	roundTrip = 100 * time.Millisecond
)

// point is a system in a network, with a client at each site that writes 16 bytes 200 times a
// second whatever becomes of the writes before.
type point struct {
	network string     // one of wan.Presets
	clients []wan.Site // nil: at all sites
	system  replicated.System
	ack     smr.Ack
	noise   wan.Noise
	alpha   float64 // 0 is usualAlpha
	// curve names the figure that has the distribution of the latencies, "" if none has. figure
	// names that of the rows of all sites together, sites that of each.
	curve, figure, sites string
}

// with returns the point with a variant of Domino.
func (p point) with(o smrdomino.Options) point {
	p.system = replicated.Domino(o)
	return p
}

// of returns the point with one of the catalog's protocols.
func (p point) of(protocol smr.Protocol) point {
	p.system = replicated.SystemOf(protocol)
	return p
}

// run measures the point for a time, and returns a row for all sites and one for each, and those of
// the curve.
func (p point) run(ctx context.Context, seed uint64, lasting time.Duration) ([]table.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := wan.Preset(p.network)
	if err != nil {
		return nil, err
	}
	keys, err := workload.Zipfian(keyCount, cmp.Or(p.alpha, usualAlpha))
	if err != nil {
		return nil, err
	}
	setting := replicated.Setting{
		Protocol: p.system.Protocol, WAN: d, Seed: seed, Ack: p.ack, Every: every, Clients: p.clients, Keys: keys,
		RoundTrip: max(roundTrip, d.Matrix.MaxRTT(d.Matrix.Sites())), Skew: skew,
	}
	setting.WAN.Matrix = d.Matrix.WithNoise(p.noise)
	measured, err := replicated.Latency(setting, lasting)
	if err != nil {
		return nil, err
	}
	bounds, err := p.bounds(d)
	if err != nil {
		return nil, err
	}
	return p.rows(measured, bounds), nil
}

// doing says what is measured.
func (p point) doing() string {
	text := fmt.Sprintf("%s, %s, until %v", p.network, p.system.Name, p.ack)
	if len(p.clients) > 0 {
		text += fmt.Sprint(", clients at ", p.clients)
	}
	return fmt.Sprintf("%s, jitter: %v", text, p.noise)
}

// bounds are what the model and physics say of a point.
type bounds struct {
	model, floor []plan.Row // of each client, in order; nil if there is nothing
}

// bounds returns what package plan says, of clients that count alike: half-way between two if as
// many are above as below. Its delays are those of the papers' tables; noise comes on top.
func (p point) bounds(d wan.Deployment) (bounds, error) {
	s := plan.From(d)
	s.Busy = true
	if o := p.system.Options; o != nil {
		s.Slack = o.Slack
	}
	if p.clients != nil {
		s.Clients = nil
		for _, site := range p.clients {
			s.Clients = append(s.Clients, plan.Client{Site: site})
		}
	}
	system, known := p.modelled()
	rows, err := plan.Latencies(s, plan.Floor, system)
	if err != nil {
		return bounds{}, err
	}
	b := bounds{floor: plan.Of(rows, plan.Floor, plan.Until(p.ack))}
	if known {
		b.model = plan.Of(rows, system, plan.Until(p.ack))
	}
	return b, nil
}

// modelled returns whose model the point has, and whether there is one for its options. Who learns
// of a command, and how late its time is, decides only when it is executed.
func (p point) modelled() (plan.System, bool) {
	o := p.system.Options
	switch {
	case p.system.Name == string(plan.FastPaxos):
		return plan.FastPaxos, len(p.clients) == 1 // it has none for commands that collide
	case p.system.Name == string(plan.Mencius):
		// executed: its model is of others that do nothing, and skip their slots only when they
		// hear of it
		return plan.Mencius, p.ack == smr.AckDurable
	case o == nil:
		return plan.System(p.system.Name), true
	case o.Direct && (p.ack == smr.AckDurable || o.AllLearn && o.Arrival):
		return plan.DominoDirect, true
	}
	return plan.Domino, !o.Direct && (p.ack == smr.AckDurable || !o.AllLearn && !o.Arrival)
}

// rows returns what was measured beside what is expected.
func (p point) rows(measured []replicated.SiteLatency, b bounds) []table.Row {
	var all []time.Duration
	var every counts
	var each []table.Row
	for i, m := range measured {
		took := m.Took()
		all = append(all, took...)
		own := counts{calls: m.Answered, tried: m.Tried, taken: m.Taken}
		every = counts{every.calls + own.calls, every.tried + own.tried, every.taken + own.taken}
		each = append(each, p.row(string(m.Site), p.sites, took, own, bounds{part(b.model, i), part(b.floor, i)}))
	}
	rows := append([]table.Row{p.row("all", p.figure, all, every, b)}, each...)
	if p.curve == "" {
		return rows
	}
	return append(rows, curveRows(p.base(table.OfAll, p.curve), all)...)
}

// part returns the row of one client.
func part(rows []plan.Row, i int) []plan.Row {
	if len(rows) == 0 {
		return nil
	}
	return rows[i : i+1]
}

// counts are how many calls were answered, how many of them tried DFP, and how many of these
// took the fast path.
type counts struct{ calls, tried, taken int }

// base returns what tells the row from others.
func (p point) base(site, figure string) table.Row {
	variant := p.system.Cells()
	row := table.Row{
		table.Is("wan", p.network), table.Is("system", p.system.Base()), table.Is("site", site),
		table.Is("ack", p.ack.String()), variant[0], table.Is("jitter", p.noise.String()),
		table.Measure("skew_ms", table.Ms(skew)),
		variant[1], table.Measure("alpha", cmp.Or(p.alpha, usualAlpha)), table.Is("clients", clientNames(p.clients)),
	}
	if o := p.system.Options; o != nil && o.Percentile > 0 {
		row = append(row, table.Measure("percentile", 100*o.Percentile))
	}
	if figure != "" {
		row = append(row, table.Is("figure", figure))
	}
	return row
}

// clientNames names the sites that have a client.
func clientNames(sites []wan.Site) string {
	if sites == nil {
		return "all"
	}
	var names []string
	for _, s := range sites {
		names = append(names, string(s))
	}
	return strings.Join(names, " and ")
}

// row sorts what it gets of latencies.
func (p point) row(site, figure string, took []time.Duration, n counts, b bounds) table.Row {
	row := slices.Concat(p.base(site, figure), table.LatencyCells(took))
	add := func(name string, rows []plan.Row) {
		if len(rows) > 0 {
			row = append(row, table.Measure(name+"_p50_ms", table.Ms(plan.Quantile(rows, 0.5))),
				table.Measure(name+"_p95_ms", table.Ms(plan.Quantile(rows, 0.95))))
		}
	}
	add("model", b.model)
	add("floor", b.floor)
	row = append(row, table.Is("calls", len(took)))
	if p.system.Options != nil {
		row = append(row, table.Measure("dfp_pct", percent(n.tried, n.calls)))
		if n.tried > 0 {
			row = append(row, table.Measure("fast_path_pct", percent(n.taken, n.tried)))
		}
	}
	return row
}

func percent(part, of int) float64 { return 100 * float64(part) / float64(max(of, 1)) }

// curveRows returns a row with the latency at each of some percentiles, for a figure with curves.
// It sorts the latencies.
func curveRows(base table.Row, took []time.Duration) []table.Row {
	slices.Sort(took)
	var rows []table.Row
	for p := 2; p <= 98 && len(took) > 0; p += 4 {
		rows = append(rows, slices.Concat(base, table.Row{table.Is("percent_of_calls", p),
			table.Measure("latency_ms", table.Ms(table.Quantile(took, float64(p)/100)))}))
	}
	return rows
}

// floorRows returns the distribution of the floor of an acknowledgement, as rows of a system.
func floorRows(network, curve string, ack smr.Ack) ([]table.Row, error) {
	d, err := wan.Preset(network)
	if err != nil {
		return nil, err
	}
	rows, err := plan.Latencies(plan.From(d), plan.Floor)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for _, r := range plan.Of(rows, plan.Floor, plan.Until(ack)) {
		took = append(took, r.Latency)
	}
	base := table.Row{table.Is("wan", network), table.Is("system", string(plan.Floor)), table.Is("site", table.OfAll),
		table.Is("ack", ack.String()), table.Is("figure", curve)}
	return curveRows(base, took), nil
}

// pointsOf makes the points of an experiment.
func pointsOf(o bench.Options, lasting time.Duration, points []point) []bench.Point {
	var out []bench.Point
	for _, p := range points {
		out = append(out, bench.Point{Doing: p.doing(), Run: func(ctx context.Context) ([]table.Row, error) {
			return p.run(ctx, o.Seed, lasting)
		}})
	}
	return out
}

// floorOf is the floor's distribution as a point.
func floorOf(network, curve string, ack smr.Ack) bench.Point {
	return bench.Point{Doing: "floor of " + network, Run: func(context.Context) ([]table.Row, error) {
		return floorRows(network, curve, ack)
	}}
}

// catalogOf returns the catalog's protocols of some names, or all.
func catalogOf(names ...string) []smr.Protocol {
	return slices.DeleteFunc(catalog.Protocols(), func(p smr.Protocol) bool {
		return len(names) > 0 && !slices.Contains(names, p.Name)
	})
}
