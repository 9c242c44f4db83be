package replicated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/wan"
)

func smrFailover() bench.Experiment {
	return bench.Experiment{
		Name:    "smr-failover",
		Summary: "how long nobody is answered when any of three replicas in North America is killed",
		Modes:   []bench.Mode{bench.Virtual},
		Measure: bench.Points(failoverPoints),
		Figures: []figure.Spec{
			{
				Title: "Time without an answer after a replica's death, longest of all kills", Y: "gap_max_ms", YLabel: "gap (ms)",
				Across: []string{"system", "killed", "options"}, Series: []string{"ack"},
			},
			{
				Suffix: "client", Title: "The same for the client that waits longest", Y: "one_client_gap_max_ms",
				YLabel: "gap (ms)",
				Across: []string{"system", "killed", "options"}, Series: []string{"ack"},
			},
		},
	}
}

// death is one case of the experiment.
type death struct {
	system smr.Protocol
	cells  []table.Cell // that tell its variant
	victim Victim
	killed string // the victim, as rows have it
	kills  int
}

// deaths returns the cases: in protocols with a leader it is killed, or another replica; in the
// others any replica is, in turn.
func deaths(o bench.Options) []death {
	leaders, others := bench.Pick(o, 4, 1000), bench.Pick(o, 2, 200)
	var all []death
	for _, p := range catalog.Protocols() {
		d := death{system: p, victim: Other, cells: VariantCells(p, OptionsOf(p), "")}
		if p.Name == "epaxos" {
			d.cells = VariantCells(p, domino.Options{}, "writes commute")
		}
		if p.Leaderless {
			d.killed, d.kills = "any", 3*others
			all = append(all, d)
		} else {
			d.killed, d.kills = "other", others
			leads := d
			leads.victim, leads.killed, leads.kills = Leader, "leader", leaders
			all = append(all, leads, d)
		}
		if p.Name == "epaxos" {
			d.system, d.cells, d.kills = conflicting(p), VariantCells(p, domino.Options{}, "all writes conflict"), others
			all = append(all, d)
		}
	}
	return all
}

// conflicting returns the protocol with state machines that do not tell which commands commute.
func conflicting(p smr.Protocol) smr.Protocol {
	build := p.NewReplica
	p.NewReplica = func(c smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		c.Machine = struct{ smr.StateMachine }{c.Machine}
		return build(c)
	}
	return p
}

func failoverPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	for _, d := range deaths(o) {
		for _, ack := range acks() {
			points = append(points, bench.Point{
				Doing: fmt.Sprintf("%s %s, %s killed %d times", d.system.Name, ack, d.killed, d.kills),
				Run:   func(ctx context.Context) ([]table.Row, error) { return failoverRow(ctx, o, d, ack) },
			})
		}
	}
	return points
}

func failoverRow(ctx context.Context, o bench.Options, d death, ack smr.Ack) ([]table.Row, error) {
	na3, err := wan.Preset("na3")
	if err != nil {
		return nil, err
	}
	noise := wan.InterDatacentre()
	na3.Matrix = na3.Matrix.WithNoise(noise)
	var all, one []time.Duration
	var roles []string
	acknowledged, lost := 0, 0
	for i := range d.kills {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := Failover(Setting{
			Protocol: d.system, WAN: na3, Seed: o.Seed*1_000_000 + uint64(i), Ack: ack, Every: 100 * time.Millisecond,
			Sync: bench.SyncTime,
		}, d.victim)
		if err != nil {
			return nil, err
		}
		all, one = append(all, g.All), append(one, g.One)
		acknowledged, lost = acknowledged+g.Acknowledged, lost+g.Lost
		if !slices.Contains(roles, g.Role) {
			roles = append(roles, g.Role)
		}
	}
	slices.Sort(all)
	slices.Sort(one)
	slices.Sort(roles)
	named := table.Row{table.Is("system", d.system.Name), table.Is("wan", "na3"), table.Is("site", "all"),
		table.Is("ack", ack.String()), table.Is("jitter", noise.String())}
	return []table.Row{slices.Concat(named, d.cells, table.Row{
		table.Is("durable", "yes"),
		table.Is("batch", "default"),
		table.Is("killed", d.killed),
		table.Is("role", strings.Join(roles, ", ")),
		table.Is("kills", d.kills),
		table.Measure("gap_p50_ms", table.Ms(table.Quantile(all, 0.5))),
		table.Measure("gap_p99_ms", table.Ms(table.Quantile(all, 0.99))),
		table.Measure("gap_max_ms", table.Ms(table.Quantile(all, 1))),
		table.Measure("one_client_gap_p50_ms", table.Ms(table.Quantile(one, 0.5))),
		table.Measure("one_client_gap_max_ms", table.Ms(table.Quantile(one, 1))),
		table.Is("acknowledged", acknowledged),
		table.Is("lost", lost),
	})}, nil
}
