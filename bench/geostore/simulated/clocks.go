package simulated

import (
	"context"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/workload/synthetic"
)

// strClocks tells PreciseClock and speculative reads apart.
func strClocks() bench.Experiment {
	where := table.Is("figure", "clocks")
	measure := bench.PointsAtOnce(clocksPoints)
	return bench.Experiment{
		Name: "str-clocks",
		Summary: "10 to 200 keys read and updated on nine sites, 40 clients for each server, timestamps by PreciseClock or " +
			"by physical clocks, with speculative reads and without (STR table 1)",
		Modes: []bench.Mode{bench.Virtual}, Full: true, Intervals: append(nineIntervals(), "commits_ratio_to_physical"),
		Measure: func(ctx context.Context, r bench.Run) ([]table.Row, error) {
			rows, err := measure(ctx, r)
			besidePhysical(rows)
			return rows, err
		},
		Figures: []figure.Spec{
			{
				Suffix: "commits", Title: "STR's clocks and reads: commits, against physical clocks", X: "keys",
				XLabel: "keys of a transaction", Y: "commits_ratio_to_physical", YLabel: "times those with physical clocks",
				Series: []string{"system"}, Where: where,
				Marks: []figure.Mark{{Line: precise().name, X: 10, Y: 1.02}, {Line: precise().name, X: 200, Y: 1.38}},
			},
			{
				Suffix: "aborts", Title: "STR's clocks and reads: aborts", X: "keys", XLabel: "keys of a transaction",
				Y: "abort_percent", YLabel: "attempts that were aborted (%)", Series: []string{"system"}, Where: where,
			},
		},
	}
}

// The settings of Table 1 beside clocksi-rep, which has physical clocks alone, and str-internal.
func precise() nineSystem       { return nineSystem{"precise", "precise", 0} }
func physicalReads() nineSystem { return nineSystem{"physical-reads", "physical-reads", 0} }

func clocksPoints(o bench.Options) (points []bench.Point) {
	all := bench.Pick(o, []int{10, 40}, []int{10, 20, 40, 100, 200})
	if o.Full {
		all = all[:1]
	}
	for _, keys := range all {
		c, err := synthetic.Wide(keys)
		if err != nil {
			panic(err) // it is one of Table 1
		}
		// Many keys take long, and there are fewer transactions in a time.
		l := load{
			cells: []table.Cell{table.Is("workload", "synthetic"), table.Is("keys", keys)},
			script: func(u *users) script {
				return script{jobs: func(x *user) func() job { return u.synthetic(x, c) }}
			},
			warm:    bench.Pick(o, 600*time.Millisecond, max(time.Second, time.Duration(keys)*20*time.Millisecond)),
			lasting: bench.Pick(o, 600*time.Millisecond, max(time.Second, time.Duration(keys)*15*time.Millisecond)),
		}
		s := sweep{load: l, cpu: paperCPU(), servers: 1, figure: "clocks"}
		if o.Full {
			s.figure = ""
			return s.bothSizes(o, 40)
		}
		points = append(points, s.of([]int{40}, clockSIRep(), precise(), physicalReads(), strInternal()).points(o)...)
	}
	return points
}

// besidePhysical adds to each row its commits against those of physical clocks without speculative
// reads.
func besidePhysical(rows []table.Row) {
	for i, row := range rows {
		j := slices.IndexFunc(rows, func(r table.Row) bool {
			return r.Value("system") == clockSIRep().name && r.Value("keys") == row.Value("keys") &&
				r.Value("servers") == row.Value("servers")
		})
		own, ok := row.Number("commits_per_s")
		base, has := rows[max(j, 0)].Number("commits_per_s")
		if ok && has && j >= 0 && base > 0 {
			rows[i] = append(row, table.Measure("commits_ratio_to_physical", own/base))
		}
	}
}
