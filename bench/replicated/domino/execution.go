package domino

import (
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	smrdomino "github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/wan"
)

func percentile() bench.Experiment {
	return bench.Experiment{
		Name: "domino-percentile",
		Summary: "Domino's geo-replicated writes until durable, by how arrivals are predicted: percentile of delays, and " +
			"what is added (thesis figure 4.10)",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.Points(percentilePoints),
		Figures: []figure.Spec{{
			Title: "Domino's writes until they are durable, replicas at WA, PR and NSW", X: "percentile",
			XLabel: "percentile of delays by which arrivals are predicted",
			Y:      "p99_ms", YLabel: "99th percentile of the latency (ms)", Series: []string{"slack_ms"},
			Where: table.Is("site", "all"), Floor: "floor_p95_ms",
		}},
	}
}

func percentilePoints(o bench.Options) []bench.Point {
	var points []point
	for _, slack := range bench.Pick(o, []time.Duration{0, 8 * time.Millisecond}, []time.Duration{0, 2 * time.Millisecond,
		8 * time.Millisecond, 16 * time.Millisecond}) {
		for _, percentile := range bench.Pick(o, []float64{0.95}, []float64{0.5, 0.75, 0.9, 0.95, 0.99}) {
			p := point{network: "globe3", ack: smr.AckDurable, noise: wan.InterDatacentre()}
			points = append(points, p.with(smrdomino.Options{Slack: slack, Percentile: percentile}))
		}
	}
	return pointsOf(o, lasting(o), points)
}

func execution() bench.Experiment {
	return bench.Experiment{
		Name: "domino-execution",
		Summary: "geo-replicated writes until executed, and what Domino adds to predicted arrivals, with options beyond " +
			"the thesis (figures 4.11 and 4.12)",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.Points(executionPoints),
		Figures: []figure.Spec{
			slackFigure("na3", "WA, VA and QC", "median", "p50_ms"), slackFigure("na3", "WA, VA and QC", "95th percentile",
				"p95_ms"),
			slackFigure("globe3", "WA, PR and NSW", "median", "p50_ms"),
			executionFigure("na3", "WA, VA and QC", "0.75"), executionFigure("globe3", "WA, PR and NSW", "0.75"),
			executionFigure("globe3", "WA, PR and NSW", "0.95"),
		},
	}
}

func slackFigure(network, sites, what, column string) figure.Spec {
	return figure.Spec{
		Suffix: "slack-" + network + "-" + column[:3], Title: "Domino's writes until they are executed, replicas at " + sites,
		X: "slack_ms", XLabel: "added to predicted arrivals (ms)",
		Y: column, YLabel: what + " of the latency (ms)", Series: []string{"options"},
		Where: table.Is("figure", "slack-"+network),
		Floor: "floor_" + column,
	}
}

// executionCurve names the figure with the distributions at a contention.
func executionCurve(network, alpha string) string { return "systems-" + network + "-" + alpha }

func executionFigure(network, sites, alpha string) figure.Spec {
	f := figure.Spec{
		Suffix: executionCurve(network, alpha), Title: "Writes until they are executed, alpha " + alpha + ", replicas at " +
			sites, X: "latency_ms", XLabel: "latency (ms)",
		Y: "percent_of_calls", YLabel: "cumulative share (%)", Series: []string{"system", "options"},
		Where: table.Is("figure", executionCurve(network, alpha)), Scattered: true,
	}
	if network == "na3" {
		f.Marks = thesisExecutions()
	}
	return f
}

// executionVariants are the thesis' Domino, and what goes beyond it.
func executionVariants() []smrdomino.Options {
	return []smrdomino.Options{{}, {AllLearn: true}, {AllLearn: true, Arrival: true},
		{Direct: true, AllLearn: true, Arrival: true}}
}

func executionPoints(o bench.Options) []bench.Point {
	points := executionSystems(o)
	for _, network := range bench.Pick(o, []string{"na3"}, []string{"na3", "globe3"}) {
		p := point{network: network, ack: smr.AckExecuted, noise: wan.InterDatacentre(), figure: "slack-" + network}
		var swept []point
		for _, variant := range bench.Pick(o, executionVariants()[1:3], executionVariants()) {
			for _, slack := range bench.Pick(o, []int{2}, []int{0, 2, 4, 8, 16, 36}) {
				variant.Slack = time.Duration(slack) * time.Millisecond
				swept = append(swept, p.with(variant))
			}
		}
		points = append(points, pointsOf(o, lasting(o), swept)...)
	}
	return points
}

// executionSystems are the points of Figure 4.11, where Domino adds 8 ms; and beside it what it
// does with all options and 2 ms.
func executionSystems(o bench.Options) []bench.Point {
	if o.Quick {
		return nil
	}
	var points []bench.Point
	for _, c := range []struct {
		network, name string
		alpha         float64
	}{{"na3", "0.75", 0.75}, {"globe3", "0.75", 0.75}, {"globe3", "0.95", 0.95}} {
		curve := executionCurve(c.network, c.name)
		all := executionSystemsOf(point{network: c.network, ack: smr.AckExecuted, noise: wan.InterDatacentre(),
			alpha: c.alpha, curve: curve})
		points = slices.Concat(points, []bench.Point{floorOf(c.network, curve, smr.AckExecuted)},
			pointsOf(o, lasting(o), all))
	}
	return points
}

// executionSystemsOf returns the points of one part of Figure 4.11.
func executionSystemsOf(p point) []point {
	all := []point{
		p.with(smrdomino.Options{Slack: 8 * time.Millisecond}),
		p.with(smrdomino.Options{Slack: 2 * time.Millisecond, Direct: true, AllLearn: true, Arrival: true}),
	}
	for _, protocol := range catalogOf("mencius", "epaxos", "multipaxos") {
		all = append(all, p.of(protocol))
	}
	return all
}
