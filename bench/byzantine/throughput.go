package byzantine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
)

func throughputExperiment() bench.Experiment {
	return bench.Experiment{
		Name: "bft-throughput",
		Summary: "updates of a replicated counter per second by 1 to 85 clients, each of which needs the reply to its one " +
			"before, what each part of client speculation costs, and the peak; all one process, no TLS (PBFT-CS figure 3, " +
			"table 1)",
		Modes:   []bench.Mode{bench.Real},
		Measure: throughputTurns,
		Figures: []figure.Spec{
			{
				Suffix: "clients", Title: "A replicated counter, all replicas and clients in one process", X: "clients",
				XLabel: "clients", Y: "ops_per_s", YLabel: "updates per second", Series: []string{"label"},
				Where: table.Is("figure", "clients"),
			},
			{
				Suffix: "ratio", Title: "The same against PBFT", X: "clients", XLabel: "clients", Y: "ratio_to_pbft",
				YLabel: "times the updates of PBFT", Series: []string{"label"}, Where: table.Is("figure", "clients"),
				Marks: []figure.Mark{
					{Line: "pbft-cs (4)", X: 1, Y: 1.79, Bound: "at least"}, {Line: "pbft-cs (4)", X: 12, Y: 1.79, Bound: "at least"},
					{Line: "pbft-cs (4)", X: 85, Y: 1 - 0.176},
				},
			},
			{
				Suffix: "parts", Title: "What each part of client speculation costs, 85 clients", Y: "slowdown_pct",
				YLabel: "fewer updates per second than without it (%)", Across: []string{"part"}, Series: []string{"source"},
				Where: table.Is("figure", "parts"), Marks: paperParts(),
			},
			{
				Suffix: "peak", Title: "Updates that do not depend on each other, 16 clients with 64 under way each",
				Y: "ops_per_s", YLabel: "updates per second", Across: []string{"label", "durable"}, Series: []string{"source"},
				Where: table.Is("figure", "peak"),
			},
		},
	}
}

// paperParts are the paper's [PBFT-CS Table 1]. The larger request and the predicates are one part
// here.
func paperParts() (marks []figure.Mark) {
	for part, pct := range map[Variant]float64{Firsts: 8.2, Engine: 2.8, Speculated: 4.1 + 1.8} {
		marks = append(marks, figure.Mark{Line: measured, Category: string(part), Y: pct})
	}
	slices.SortFunc(marks, func(a, b figure.Mark) int { return slices.Compare([]byte(a.Category), []byte(b.Category)) })
	return marks
}

// A contender is one of the loads that take turns, and what its turns came to.
type contender struct {
	Load
	figure string
	base   int // the contender that it is compared with, -1 for none
	rates  []float64
	cpu    []float64 // microseconds per call
}

func (c *contender) doing() string {
	return fmt.Sprintf("%s %v %s clients=%d", c.figure, c.System, c.Variant, c.Clients)
}

// clientCounts are how many clients there are, five machines with up to 17 [PBFT-CS §6.2].
func clientCounts(o bench.Options) []int {
	return bench.Pick(o, []int{1, 8}, []int{1, 4, 12, 40, 85})
}

// contests are groups of contenders, of which those of one take turns.
func contests(o bench.Options) (all [][]*contender) {
	for _, n := range clientCounts(o) {
		var one []*contender
		for _, s := range []System{{plain, 1}, {cs, 4}, {zyz, 1}} {
			l := Load{System: s, Variant: Plain, Clients: n}
			if s.Name == cs {
				l.Variant = Speculated
			}
			one = append(one, &contender{Load: l, figure: "clients"})
		}
		all = append(all, one)
	}
	var parts []*contender
	for i, v := range []Variant{Plain, Firsts, Engine, Unchecked, Speculated} {
		s := System{plain, 1}
		if v == Unchecked || v == Speculated {
			s = System{cs, 4}
		}
		parts = append(parts, &contender{Load: Load{System: s, Variant: v, Clients: bench.Pick(o, 8, 85)}, figure: "parts",
			base: i - 1})
	}
	all = append(all, parts)
	for _, durable := range []bool{false, true} {
		var peak []*contender
		for _, s := range []System{{plain, 1}, {cs, 1}, {zyz, 1}} {
			l := Load{System: s, Variant: Plain, Clients: bench.Pick(o, 4, 16), Pipelined: 64, Durable: durable}
			if s.Name == cs {
				l.Variant = Firsts
			}
			peak = append(peak, &contender{Load: l, figure: "peak"})
		}
		all = append(all, peak)
	}
	return all
}

// throughputTurns has contenders take turns in shuffled rounds. Ratios are medians over the rounds.
func throughputTurns(ctx context.Context, w bench.Run) (rows []table.Row, err error) {
	all := contests(w.Options)
	rounds := bench.Pick(w.Options, 2, 3)
	for k, contest := range all {
		for r := range rounds {
			for _, i := range bench.Random(w.Seed, uint64(k), uint64(r)).Perm(len(contest)) {
				c := contest[i]
				w.Step(k*rounds+r, len(all)*rounds, c.doing())
				err := bench.WithTempDir(func(dir string) error {
					c.Dir, c.For = dir, bench.Pick(w.Options, 300*time.Millisecond, 2*time.Second)
					rate, err := c.Measure(ctx)
					c.rates = append(c.rates, rate.PerSecond())
					c.cpu = append(c.cpu, float64(rate.CPU.Microseconds())/float64(max(rate.Calls, 1)))
					return err
				})
				if err != nil {
					return nil, fmt.Errorf("%s: %w", c.doing(), err)
				}
			}
		}
		for _, c := range contest {
			rows = append(rows, c.row(contest))
		}
	}
	return rows, nil
}

// row returns what a contender's turns came to.
func (c *contender) row(contest []*contender) table.Row {
	row := slices.Concat(c.cells("loopback", 0, "none", c.Durable), table.Row{table.Is("figure", c.figure),
		table.Is("label", c.String()), table.Is("source", measured), table.Is("clients", c.Clients),
		table.Is("pipelined", c.Pipelined), table.Measure("ops_per_s", table.Median(c.rates)),
		table.Measure("cpu_us_per_op", table.Median(c.cpu))})
	ratio := func(to *contender) float64 {
		var each []float64
		for i := range c.rates {
			each = append(each, c.rates[i]/to.rates[i])
		}
		return table.Median(each)
	}
	if c.figure != "parts" {
		row = append(row, table.Measure("ratio_to_pbft", ratio(contest[0])))
		if c.Clients == 1 {
			row = append(row, table.Measure("updates_2000_s", updates/table.Median(c.rates)))
		}
		return row
	}
	row = append(row, table.Is("part", string(c.Variant)), table.Measure("ratio_to_plain", ratio(contest[0])))
	if c.Variant != Plain && c.Variant != Unchecked { // which has more under way than the one before
		row = append(row, table.Measure("slowdown_pct", 100*(1-ratio(contest[c.base]))))
	}
	return row
}

// String names the load as figures do: what is pipelined stands on no guess.
func (l Load) String() string {
	if l.Pipelined > 0 {
		return l.Name
	}
	return l.System.String()
}
