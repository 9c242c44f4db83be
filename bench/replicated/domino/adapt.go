package domino

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// The two parts of Figure 4.13.
const (
	adaptClient   = "client-replica"
	adaptReplicas = "replicas"
)

func adapt() bench.Experiment {
	return bench.Experiment{
		Name:    "domino-adapt",
		Summary: "one client's writes while delays change, from it to a replica or between replicas (thesis figure 4.13)",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.Points(adaptPoints),
		Figures: []figure.Spec{
			adaptFigure(adaptClient, "delays from the client change"),
			adaptFigure(adaptReplicas, "delays between replicas change"),
		},
	}
}

func adaptFigure(part, what string) figure.Spec {
	return figure.Spec{
		Suffix: part, Title: "Writes until they are durable while " + what, X: "at_s", XLabel: "time (s)",
		Y: "latency_ms", YLabel: "latency (ms)", Series: []string{"system"}, Where: table.Is("figure", part), Scattered: true,
		Floor: "floor_ms", Marks: thesisAdapts(part),
	}
}

// An era is a time between two changes of the network: from when on some pairs of sites have
// another round trip.
type era struct {
	from time.Duration
	rtts []pairRTT
}

type pairRTT struct {
	a, b wan.Site
	rtt  time.Duration
}

const (
	adaptRTT  = 30 * time.Millisecond // of all pairs at first
	adaptEra  = 15 * time.Second      // that the first change is at "about 15 s" is said, and nothing of the second
	adaptEras = 3
)

// adaptTimeline returns the eras of a part, the first at 0. The client is at C; R is the replica
// that it asks in Mencius, M and N are the others [Thesis §4.5.3].
func adaptTimeline(part string) []era {
	const near, far, farther = 50 * time.Millisecond, 60 * time.Millisecond, 70 * time.Millisecond
	if part == adaptClient {
		return []era{{}, {adaptEra, []pairRTT{{"C", "R", near}}}, {2 * adaptEra, []pairRTT{{"C", "R", farther}}}}
	}
	return []era{
		{0, []pairRTT{{"C", "M", farther}}},
		{adaptEra, []pairRTT{{"R", "M", far}, {"R", "N", far}}},
		{2 * adaptEra, []pairRTT{{"M", "N", far}}},
	}
}

// adaptNetworks returns the network in each era, without noise.
func adaptNetworks(part string) []wan.Matrix {
	m := wan.Uniform(adaptRTT, "R", "M", "N", "C")
	var out []wan.Matrix
	for _, e := range adaptTimeline(part) {
		for _, p := range e.rtts {
			m = m.WithRTT(p.a, p.b, p.rtt)
		}
		out = append(out, m)
	}
	return out
}

// adaptChanges returns what makes of the first era's network those of the others.
func adaptChanges(part string) wan.Schedule {
	networks := adaptNetworks(part)
	timeline := adaptTimeline(part)
	var s wan.Schedule
	for i, m := range networks[1:] {
		for p, l := range m.Links() {
			before, _ := networks[i].Link(p)
			if more := l.Delay - before.Delay; more > 0 {
				s = append(s, wan.Fault{From: timeline[i+1].from, Paths: []wan.Path{p}, Delay: more})
			}
		}
	}
	return s
}

func adaptPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, part := range bench.Pick(o, []string{adaptClient}, []string{adaptClient, adaptReplicas}) {
		for _, protocol := range catalogOf("domino", "domino-direct", "mencius") {
			points = append(points, bench.Point{
				Doing: fmt.Sprintf("%s, delays of %s change", protocol.Name, part),
				Run:   func(context.Context) ([]table.Row, error) { return adaptRows(o, part, protocol) },
			})
		}
	}
	return points
}

// adaptRows returns a row for each write, of which there is one a second.
func adaptRows(o bench.Options, part string, protocol smr.Protocol) ([]table.Row, error) {
	networks, noise := adaptNetworks(part), wan.InterDatacentre()
	first := wan.Deployment{Name: "adapt", Matrix: networks[0].WithNoise(noise), Replicas: []wan.Site{"R", "M", "N"}}
	measured, err := replicated.Latency(replicated.Setting{
		Protocol: protocol, WAN: first, Seed: o.Seed, Ack: smr.AckDurable, Every: time.Second, Clients: []wan.Site{"C"},
		Skew: skew, Changes: adaptChanges(part),
	}, adaptEras*adaptEra)
	if err != nil {
		return nil, err
	}
	p := point{network: "R, M, N, C", ack: smr.AckDurable, noise: noise, clients: []wan.Site{"C"}}.of(
		protocol)
	// each write has a key of its own
	base := slices.DeleteFunc(p.base("C", part), func(c table.Cell) bool { return c.Name == "alpha" })
	var rows []table.Row
	for _, call := range measured[0].Calls {
		network := networks[int(call.Began/adaptEra)]
		row := slices.Concat(base, table.Row{table.Measure("at_s", call.Began.Seconds()),
			table.Measure("latency_ms", table.Ms(call.Took))})
		expected, err := adaptBounds(network, protocol)
		if err != nil {
			return nil, err
		}
		rows = append(rows, slices.Concat(row, expected))
	}
	return rows, nil
}

// adaptBounds returns what the model expects once a client knows the delays, and the floor.
// Mencius' clients ask R whatever the delays are, which the model leaves out.
func adaptBounds(network wan.Matrix, protocol smr.Protocol) ([]table.Cell, error) {
	s := plan.Setting{WAN: network, Replicas: []wan.Site{"R", "M", "N"}, Clients: []plan.Client{{Site: "C"}}, Busy: true}
	system := plan.System(protocol.Name)
	rows, err := plan.Latencies(s, plan.Floor, system)
	if err != nil {
		return nil, err
	}
	cells := []table.Cell{table.Measure("floor_ms",
		table.Ms(plan.Quantile(plan.Of(rows, plan.Floor, plan.Durable), 0.5)))}
	if system != plan.Mencius {
		cells = append(cells, table.Measure("model_ms", table.Ms(plan.Quantile(plan.Of(rows, system, plan.Durable), 0.5))))
	}
	return cells, nil
}
