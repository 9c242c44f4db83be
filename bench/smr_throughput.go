package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/foresay/foresay/bench/replicated"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr"
)

func smrThroughput() Experiment {
	return Experiment{
		Name:    "smr-throughput",
		Summary: "writes of 16 bytes to three replicas over this machine's loopback interface; and to etcd, if the machine has it",
		Modes:   []Mode{Real},
		points:  throughputPoints,
		figures: []figure{{
			title: "Replicated writes of 16 bytes", y: "ops_per_s", yLabel: "writes per second",
			across: []string{"durable", "batch"}, series: []string{"system"},
		}},
	}
}

func throughputPoints(s scale, _ Options) []point {
	var points []point
	add := func(system string, durable bool, batch int, run throughput) {
		points = append(points, point{
			doing: fmt.Sprintf("%s durable=%s batch=%s", system, durableName(durable), batchName(batch)),
			run: func(ctx context.Context) ([]Row, error) {
				return throughputRow(ctx, s, system, run, replicated.Load{Durable: durable, MaxBatch: batch})
			},
		})
	}
	for _, durable := range []bool{false, true} {
		for _, batch := range pick(s, []int{0}, []int{0, 1}) {
			for _, p := range catalog.Protocols() {
				add(p.Name, durable, batch, func(ctx context.Context, l replicated.Load) (replicated.Rate, error) {
					l.Protocol = p
					return replicated.Throughput(ctx, l)
				})
			}
		}
	}
	if path := replicated.Etcd(); path != "" {
		add("etcd", true, 0, func(ctx context.Context, l replicated.Load) (replicated.Rate, error) {
			return replicated.EtcdThroughput(ctx, path, l)
		})
	}
	return points
}

// throughput puts a system under a load.
type throughput func(context.Context, replicated.Load) (replicated.Rate, error)

func batchName(n int) string {
	if n == 0 {
		return "default"
	}
	return fmt.Sprint(n)
}

func throughputRow(ctx context.Context, s scale, system string, run throughput, l replicated.Load) ([]Row, error) {
	dir, err := os.MkdirTemp("", "foresay-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	l.Ack, l.Replicas, l.Clients, l.Window, l.Dir = smr.Propose, 3, 4, 1024, dir
	l.For = pick(s, 500*time.Millisecond, 4*time.Second)
	before := cpuTime()
	r, err := run(ctx, l)
	if err != nil {
		return nil, err
	}
	cpu := cpuTime() - before // of the warm-up too, as of its calls
	row := Row{
		{"system", system},
		{"wan", "loopback"},
		{"site", "all"},
		{"ack", smr.Call{Kind: l.Ack}.Awaits().String()},
		{"durable", durableName(l.Durable)},
		{"batch", batchName(l.MaxBatch)},
		{"clients", l.Clients},
		{"window", l.Window},
		measure("ops_per_s", r.PerSecond()),
	}
	row = append(row, latencyCells(r.Took)...)
	if system != "etcd" { // whose processes are others
		row = append(row, measure("cpu_us_per_op", float64(cpu.Microseconds())/float64(max(r.All, 1))))
	}
	if r.Commits > 0 {
		row = append(row, Cell{"disk_commits", int(r.Commits)})
	}
	return []Row{row}, nil
}
