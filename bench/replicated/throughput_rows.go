package replicated

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/domino"
	"github.com/foresay/foresay/wan"
)

func smrThroughput() bench.Experiment {
	draw := func(durable bool, ack smr.Ack, title string, marks []figure.Mark) figure.Spec {
		part := throughputFigure(durable, ack)
		return figure.Spec{
			Suffix: part, Title: title, Y: "ops_per_s", YLabel: "writes per second, by the size of a batch",
			Across: []string{"system"}, Series: []string{"batch"}, Where: table.Is("figure", part), Marks: marks,
		}
	}
	return bench.Experiment{
		Name: "smr-throughput",
		Summary: "peak of writes of 16 bytes until durable and until executed: 4,096 at once, in batches; replicas and " +
			"clients one process, no TLS, no snapshots (thesis figure 4.14); and of etcd, one call each",
		Modes:   []bench.Mode{bench.Real},
		Measure: bench.Points(throughputPoints),
		Figures: []figure.Spec{
			draw(false, smr.AckDurable, "Replicated writes of 16 bytes in one process, until durable, in memory",
				throughputMarks()),
			draw(true, smr.AckDurable, "Replicated writes of 16 bytes in one process, until durable, on disk", []figure.Mark{
				{Line: batchName(0), Category: "epaxos", Y: 125e3, Source: "upstream"},
			}),
			draw(false, smr.AckExecuted, "Replicated writes of 16 bytes in one process, until executed, in memory", nil),
			draw(true, smr.AckExecuted, "Replicated writes of 16 bytes in one process, until executed, on disk; etcd's calls "+
				"one by one", nil),
		},
	}
}

// throughputMarks are the peaks that others have: those of the thesis, without batching, on
// machines with 12 cores each and a network of 1 Gbit/s between them [Thesis §4.5.4, Figure 4.14];
// and those of programs by others, with clients and three replicas on the loopback interface of one
// machine with two cores.
func throughputMarks() []figure.Mark {
	paper := func(system string, y float64) figure.Mark {
		return figure.Mark{Line: batchName(1), Category: system, Y: y}
	}
	return []figure.Mark{
		paper("domino", 65e3), paper("epaxos", 57e3), paper("mencius", 56e3), paper("multipaxos", 36e3),
		{Line: batchName(0), Category: "multipaxos", Y: 398e3, Source: "upstream"},
		{Line: batchName(0), Category: "epaxos", Y: 343e3, Source: "upstream"},
		{Line: batchName(1), Category: "mencius", Y: 51.5e3, Source: "upstream"},
		// the authors' program, with DM only; with DFP only 13,600
		{Line: batchName(1), Category: "domino", Y: 24.5e3, Source: "upstream"},
	}
}

// throughputFigure names the figure that shows writes in memory or on disk until some
// acknowledgement.
func throughputFigure(durable bool, ack smr.Ack) string {
	part := "memory"
	if durable {
		part = "disk"
	}
	if ack == smr.AckExecuted {
		part += "-executed"
	}
	return part
}

func throughputPoints(o bench.Options) []bench.Point {
	var points []bench.Point
	add := func(system string, variant []table.Cell, l Load, run throughput) {
		points = append(points, bench.Point{
			Doing: fmt.Sprintf("%s durable=%s batch=%s until %s", system, durableName(l.Durable), batchName(l.MaxBatch), l.Ack),
			Run: func(ctx context.Context) ([]table.Row, error) {
				return throughputRow(ctx, o, system, variant, run, l)
			},
		})
	}
	for _, durable := range []bool{false, true} {
		for _, batch := range bench.Pick(o, []int{0}, []int{0, 1}) {
			for _, p := range catalog.Protocols() {
				p, variant := inBatches(p, batch)
				run := func(ctx context.Context, l Load) (Rate, error) {
					l.Protocol = p
					return Throughput(ctx, l)
				}
				add(p.Name, variant, Load{Ack: smr.AckDurable, Durable: durable, MaxBatch: batch}, run)
				if batch == 0 {
					add(p.Name, variant, Load{Ack: smr.AckExecuted, Durable: durable}, run)
				}
			}
		}
	}
	if path := Etcd(); path != "" {
		etcd := Load{Ack: smr.AckExecuted, Durable: true} // it answers what it has executed
		add("etcd", VariantCells(smr.Protocol{Name: "etcd"}, domino.Options{}, ""), etcd,
			func(ctx context.Context, l Load) (Rate, error) {
				return EtcdThroughput(ctx, path, l)
			})
	}
	return points
}

// inBatches returns a protocol whose clients put no more commands in a slot than a batch has, 0 for
// the default, and the cells that tell so. Only Domino's clients make batches of their own.
func inBatches(p smr.Protocol, batch int) (smr.Protocol, []table.Cell) {
	o := OptionsOf(p)
	if !IsDomino(p) {
		return p, VariantCells(p, o, "")
	}
	o.Batch = batch
	return domino.New(p.Name, p.Doc, o), VariantCells(p, o, "")
}

// throughput puts a system under a load.
type throughput func(context.Context, Load) (Rate, error)

func batchName(n int) string {
	if n == 0 {
		return "default"
	}
	return fmt.Sprint(n)
}

func throughputRow(
	ctx context.Context, o bench.Options, system string, variant []table.Cell, run throughput, l Load,
) ([]table.Row, error) {
	dir, err := os.MkdirTemp("", "foresay-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	l.Replicas, l.Clients, l.Window, l.Dir = 3, 4, 1024, dir
	l.For = bench.Pick(o, 500*time.Millisecond, 4*time.Second)
	before := bench.CPUTime()
	r, err := run(ctx, l)
	if err != nil {
		return nil, err
	}
	cpu := bench.CPUTime() - before // of the warm-up too, as of its calls
	row := slices.Concat(table.Row{table.Is("system", system), table.Is("wan", "loopback"), table.Is("site", "all"),
		table.Is("ack", l.Ack.String()), table.Is("jitter", wan.Noise{}.String())}, variant, table.Row{
		table.Is("figure", throughputFigure(l.Durable, l.Ack)),
		table.Is("durable", durableName(l.Durable)),
		table.Is("batch", batchName(l.MaxBatch)),
		table.Is("clients", l.Clients),
		table.Is("window", l.Window),
		table.Measure("ops_per_s", r.PerSecond()),
	})
	row = append(row, table.LatencyCells(r.Took)...)
	if system != "etcd" { // whose processes are others
		row = append(row, table.Measure("cpu_us_per_op", float64(cpu.Microseconds())/float64(max(r.All, 1))))
	}
	if r.Commits > 0 {
		row = append(row, table.Is("disk_commits", int(r.Commits)))
	}
	return []table.Row{row}, nil
}
