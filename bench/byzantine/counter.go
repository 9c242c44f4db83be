package byzantine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
)

func counterExperiment() bench.Experiment {
	draw := func(t Topology, title string, marks []figure.Mark) figure.Spec {
		return figure.Spec{
			Suffix: string(t), Title: title + ", 15 ms between sites", Y: "total_s",
			YLabel: "time for the updates (s)", Across: []string{"label"}, Series: []string{"source"},
			Where: table.Is("figure", string(t)), Floor: "floor_s", Marks: marks,
		}
	}
	return bench.Experiment{
		Name: "bft-counter",
		Summary: "2,000 updates of a replicated counter by one client, each of which needs the reply to the one before " +
			"(PBFT-CS figure 4): without replication, PBFT, client speculation, Zyzzyva",
		Modes: []bench.Mode{bench.Virtual}, Bubbles: true,
		Measure: bench.Points(counterPoints),
		Figures: []figure.Spec{
			draw(PrimaryLocal, "Dependent updates, the client at the primary's site", nil),
			draw(BackupLocal, "Dependent updates, the client at a backup's site", nil),
			draw(Uniform, "Dependent updates, the client at a site of its own", nil),
			{
				Suffix: "ratio", Title: "Dependent updates with first replies, against PBFT, 15 ms between sites",
				Y: "ratio_to_pbft", YLabel: "times the time of PBFT", Across: []string{"topology", "label"},
				Series: []string{"source"}, Where: table.Is("figure_ratio", "ratio"), Ratio: true, Marks: paperRatios(),
			},
		},
	}
}

// paperRatios are what the paper says of a delay of 15 ms [PBFT-CS §6.3].
func paperRatios() []figure.Mark {
	at := func(t Topology, s System, y float64) figure.Mark {
		return figure.Mark{Line: measured, Category: string(t) + ", " + s.String(), Y: y}
	}
	return []figure.Mark{
		at(PrimaryLocal, System{cs, 100}, 1.0/58), at(Uniform, System{cs, 100}, 0.5),
		at(Uniform, System{zyz, 1}, 0.5/0.67), at(Uniform, System{norep, 1}, 0.5/1.01),
	}
}

// Sources of what is drawn.
const (
	measured = "measured"
	model    = "model"
)

// updates is how many there are [PBFT-CS §6.3].
const updates = 2000

func counterSystems() []System {
	return []System{{norep, 1}, {plain, 1}, {zero, 100}, {zyz, 1}, {cs, 4}, {cs, 100}, {cs, 1024}}
}

func counterPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	n := bench.Pick(o, 200, updates)
	for _, d := range delays(o) {
		for _, t := range []Topology{PrimaryLocal, BackupLocal, Uniform} {
			for _, durable := range bench.Pick(o, []bool{false}, []bool{false, true}) {
				if durable && d < 15*time.Millisecond {
					continue
				}
				points = append(points, bench.Point{
					Doing: fmt.Sprintf("%s delay=%v durable=%v", t, d, durable),
					Run: func(ctx context.Context) ([]table.Row, error) {
						return counterRows(ctx, o, place{t, d}, durable, n)
					},
				})
			}
		}
	}
	return points
}

// counterRows measures all systems at a place, against PBFT, and adds the model for figures.
func counterRows(ctx context.Context, o bench.Options, p place, durable bool, n int) (rows []table.Row, err error) {
	floor, err := p.floor(n)
	if err != nil {
		return nil, err
	}
	var models []table.Row
	var base, modelBase time.Duration
	for _, s := range counterSystems() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		next, confirmed, err := p.modelled(s)
		if err != nil {
			return nil, err
		}
		expected := s.dependent(n, next, confirmed)
		took, err := run{system: s, place: p, service: counter.Service{}, durable: durable, seed: o.Seed + 1}.play(o,
			func(ctx context.Context, c *client.Client) error { return s.count(ctx, c, n) })
		if err != nil {
			return nil, fmt.Errorf("%v: %w", s, err)
		}
		if s.Name == plain {
			base, modelBase = took, expected
		}
		named := slices.Concat(s.cells(p.Topology, p.delay, "none", durable), table.Row{table.Is("updates", n),
			table.Is("label", s.String())})
		if p.delay == 15*time.Millisecond && !durable {
			named = append(named, table.Is("figure", string(p.Topology)))
			if p.Topology != BackupLocal {
				named = append(named, table.Is("figure_ratio", "ratio"))
			}
		}
		row := func(source string, took, base time.Duration) table.Row {
			r := slices.Concat(named, table.Row{table.Is("source", source), table.Measure("total_s", took.Seconds()),
				table.Measure("ms_per_update", table.Ms(took)/float64(n))})
			if base > 0 {
				r = append(r, table.Measure("ratio_to_pbft", float64(took)/float64(base)))
			}
			return r
		}
		rows = append(rows, append(row(measured, took, base), table.Measure("model_s", expected.Seconds()),
			table.Measure("floor_s", floor.Seconds())))
		models = append(models, row(model, expected, modelBase))
	}
	return append(rows, models...), nil
}
