package byzantine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// silent is the strategy of all protocols of one that says nothing any more.
const silent = "mute"

func failoverExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "bft-failover",
		Summary: "how long clients in North America and all over the world are not answered when any of four replicas, " +
			"or two of seven, are killed or fall silent",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.PointsAtOnce(failoverPoints),
		Figures: strikeFigures("killed or silent"),
	}
}

func attackExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "bft-attack",
		Summary: "the same when the primary, the next one, or two of seven betray the others, by each strategy of the " +
			"adversary library; and what correct clients get meanwhile",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.PointsAtOnce(attackPoints),
		Figures: strikeFigures("traitors"),
	}
}

func strikeFigures(what string) []figure.Spec {
	spec := func(suffix, title, y, label string) figure.Spec {
		return figure.Spec{Suffix: suffix, Title: title, Y: y, YLabel: label, Across: []string{"strategy", "struck"},
			Series: []string{"system"}, Where: table.Is("topology", "na4")}
	}
	return []figure.Spec{
		spec("gap", "Time without an answer for the client that waits longest: "+what, "gap_max_ms", "gap (ms)"),
		spec("restored", "Time until all clients are served as before: "+what, "restored_max_ms", "time (ms)"),
		spec("throughput", "What clients get in the five seconds after, of what they got before: "+what, "during_share",
			"share of the calls per second before"),
	}
}

// A struck group is one case of an experiment.
type struck struct {
	protocol bft.Protocol
	network  string
	replicas int
	strategy string
	members  []protocol.ID
}

// role names those whom it befalls.
func (s struck) role() string {
	var names []string
	for _, id := range s.members {
		switch {
		case id == 1:
			names = append(names, "primary")
		case id == 2:
			names = append(names, "next primary")
		default:
			names = append(names, fmt.Sprint("member ", id))
		}
	}
	return strings.Join(names, " and ")
}

// system is the name of a protocol as a system: PBFT has first replies here.
func (s struck) system() System {
	if s.protocol.Name == plain {
		return System{cs, 1}
	}
	return System{s.protocol.Name, 1}
}

// place is the network with the replicas: the preset's, and more of its sites if there are more.
func (s struck) place() (wan.Deployment, error) {
	d, err := wan.Preset(s.network)
	for _, site := range d.Matrix.Sites() {
		if len(d.Replicas) < s.replicas && !slices.Contains(d.Replicas, site) {
			d.Replicas = append(d.Replicas, site)
		}
	}
	return d, err
}

func byzantineProtocols() (all []bft.Protocol) {
	for _, name := range catalog.ByzantineNames() {
		if p, err := catalog.Byzantine(name); err == nil {
			all = append(all, p)
		}
	}
	return all
}

func failoverPoints(o bench.Options) []bench.Point {
	var all []struck
	for _, p := range byzantineProtocols() {
		for _, network := range bench.Pick(o, []string{"na4"}, []string{"na4", "globe4"}) {
			for _, strategy := range []string{Killed, silent} {
				for id := range protocol.ID(4) {
					all = append(all, struck{p, network, 4, strategy, []protocol.ID{id + 1}})
				}
				if network == "na4" {
					all = append(all, struck{p, network, 7, strategy, []protocol.ID{1, 2}})
				}
			}
		}
	}
	return strikes(o, bench.Pick(o, 1, 4), all)
}

// quickStrategies are those of the primary that a quick run has.
func quickStrategies() []string {
	return []string{"equivocate", silent, "lie-early", "lie-speculated", "gap", "slow", "starve"}
}

func attackPoints(o bench.Options) []bench.Point {
	var all []struck
	for _, p := range byzantineProtocols() {
		for _, strategy := range p.Strategies {
			primary := struck{p, "na4", 4, strategy, []protocol.ID{1}}
			if o.Quick {
				if slices.Contains(quickStrategies(), strategy) {
					all = append(all, primary)
				}
				continue
			}
			all = append(all, primary, struck{p, "na4", 4, strategy, []protocol.ID{2}},
				struck{p, "na4", 7, strategy, []protocol.ID{1, 2}})
		}
	}
	return strikes(o, 1, all)
}

// strikes has each case befall a group of its own so often.
func strikes(o bench.Options, each int, all []struck) []bench.Point {
	var points []bench.Point
	for _, s := range all {
		points = append(points, bench.Point{
			Doing: fmt.Sprintf("%s of %d on %s, %s %s", s.system(), s.replicas, s.network, s.role(), s.strategy),
			Run:   func(ctx context.Context) ([]table.Row, error) { return s.rows(ctx, o, each) },
		})
	}
	return points
}

// rows returns the row of a case, of several strikes.
func (s struck) rows(ctx context.Context, o bench.Options, strikes int) ([]table.Row, error) {
	d, err := s.place()
	if err != nil {
		return nil, err
	}
	var told []Aftermath
	for i := range strikes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a, err := Strike{Protocol: s.protocol, Place: d, Members: s.members, Strategy: s.strategy,
			Seed: o.Seed*1000 + uint64(i)}.Play()
		if err != nil {
			return nil, err
		}
		told = append(told, a)
	}
	topology := s.network
	if s.replicas != 4 {
		topology = fmt.Sprintf("%s, %d replicas", s.network, s.replicas)
	}
	return []table.Row{slices.Concat(s.system().named(topology, "none", true), table.Row{
		table.Is("strategy", s.strategy), table.Is("struck", s.role()), table.Is("strikes", len(told)),
	}, summed(told))}, nil
}

// summed returns the cells of some strikes: the worst, and means.
func summed(told []Aftermath) table.Row {
	most := func(of func(Aftermath) time.Duration) float64 {
		var d time.Duration
		for _, a := range told {
			d = max(d, of(a))
		}
		return table.Ms(d)
	}
	mean := func(of func(Aftermath) float64) float64 {
		sum := 0.0
		for _, a := range told {
			sum += of(a)
		}
		return sum / float64(len(told))
	}
	first, wrong, view := 0, 0, bft.View(0)
	for _, a := range told {
		first, wrong, view = first+a.FirstReplies, wrong+a.Wrong, max(view, a.View)
	}
	before := mean(func(a Aftermath) float64 { return a.Before })
	return table.Row{
		table.Measure("gap_max_ms", most(func(a Aftermath) time.Duration { return a.Gap })),
		table.Measure("gap_p50_ms", most(func(a Aftermath) time.Duration { return a.GapP50 })),
		table.Measure("restored_max_ms", most(func(a Aftermath) time.Duration { return a.Restored })),
		table.Measure("before_per_s", before),
		table.Measure("during_share", mean(func(a Aftermath) float64 { return a.During })/before),
		table.Measure("after_share", mean(func(a Aftermath) float64 { return a.After })/before),
		table.Measure("p50_before_ms", most(func(a Aftermath) time.Duration { return a.P50Before })),
		table.Measure("p50_after_ms", most(func(a Aftermath) time.Duration { return a.P50After })),
		table.Is("first_replies", first), table.Is("wrong_first_replies", wrong), table.Is("view", int(view)),
	}
}
