package domino

import (
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	smrdomino "github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/wan"
)

// lasting is how long each point of Domino's experiments is measured, in virtual time.
func lasting(o bench.Options) time.Duration { return bench.Pick(o, time.Second, 10*time.Second) }

// commitSlack is what the thesis adds to predicted arrivals where it adds anything. Until a write
// is durable it costs nothing.
const commitSlack = 8 * time.Millisecond

func commit() bench.Experiment {
	return bench.Experiment{
		Name: "domino-commit",
		Summary: "geo-replicated writes until durable or executed: Domino and those it is compared with, the model and " +
			"the floor (thesis figures 4.8 and 4.9)",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.Points(commitPoints),
		Figures: []figure.Spec{
			commitFigure("na3", "replicas at WA, VA and QC"), commitFigure("na5", "replicas at WA, VA, QC, CA and TX"),
			commitFigure("globe3", "replicas at WA, PR and NSW"),
			{
				Suffix: "na3-sites", Title: "Writes until they are durable, replicas at WA, VA and QC", Y: "p50_ms",
				YLabel: "median latency (ms)",
				Across: []string{"site"}, Series: []string{"system"}, Where: table.Is("figure", "na3-sites"),
			},
			{
				Suffix: "few-clients", Title: "Fast Paxos with one client and with two, replicas at WA, VA and QC", Y: "p50_ms",
				YLabel: "median latency (ms)",
				Across: []string{"clients"}, Series: []string{"system"}, Where: table.Is("figure", "few-clients"),
				Marks: thesisFewClients(),
			},
		},
	}
}

func commitFigure(network, replicas string) figure.Spec {
	return figure.Spec{
		Suffix: network, Title: "Writes until they are durable, " + replicas, X: "latency_ms", XLabel: "latency (ms)",
		Y: "percent_of_calls", YLabel: "cumulative share (%)", Series: []string{"system"}, Where: table.Is("figure", network),
		Scattered: true,
		Marks:     thesisCommits(network),
	}
}

func commitPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, network := range bench.Pick(o, []string{"na3"}, []string{"na3", "na5", "globe3"}) {
		points = append(points, floorOf(network, network, smr.AckDurable))
		noisy := point{network: network, ack: smr.AckDurable, noise: wan.InterDatacentre(), curve: network}
		if network == "na3" {
			noisy.sites = "na3-sites"
		}
		points = append(points, commitSystems(o, noisy)...)
		if !o.Quick {
			plain := point{network: network, ack: smr.AckDurable, noise: wan.InterDatacentre()}
			direct := smrdomino.DirectOptions()
			direct.Slack = commitSlack
			points = append(points, pointsOf(o, lasting(o),
				[]point{plain.with(smrdomino.Options{Slack: commitSlack}), plain.with(direct)})...)
		}
		points = append(points, commitSystems(o, point{network: network, ack: smr.AckDurable})...)
		if o.Quick {
			continue
		}
		points = append(points, commitSystems(o, point{network: network, ack: smr.AckOrdered,
			noise: wan.InterDatacentre()}, "domino", "domino-direct")...)
		points = append(points, commitSystems(o, point{network: network, ack: smr.AckExecuted,
			noise: wan.InterDatacentre()})...)
		points = append(points, commitSystems(o, point{network: network, ack: smr.AckExecuted})...)
	}
	for _, clients := range [][]wan.Site{{"IA"}, {"IA", "WA"}} {
		p := point{network: "na3", ack: smr.AckDurable, noise: wan.InterDatacentre(), clients: clients,
			figure: "few-clients"}
		points = append(points, commitSystems(o, p, "fastpaxos", "multipaxos")...)
	}
	return points
}

// commitSystems returns a point with each of some systems, or with all.
func commitSystems(o bench.Options, p point, names ...string) []bench.Point {
	var points []point
	for _, protocol := range catalogOf(names...) {
		points = append(points, p.of(protocol))
	}
	return pointsOf(o, lasting(o), points)
}
