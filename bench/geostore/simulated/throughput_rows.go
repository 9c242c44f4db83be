package simulated

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
)

// Experiments returns the experiments on stores in the simulator, in the order in which they are
// best read.
func Experiments() []bench.Experiment {
	return []bench.Experiment{carouselThroughput(), carouselFailover()}
}

// The two processors. That of the thesis is fitted: at 8000 transactions a second the leaders of
// carousel-basic are at work for 94 % of the time, and beyond that its commits fall behind. The
// measured one is what carousel-throughput --real said of carousel-basic (cpu_us_per_call) on a
// computer with two cores that had other things to do: the processor time of all machines and
// clients, in parts as many as there are messages to servers.
func thesisCPU() cpu   { return cpu{"thesis", 22500 * time.Nanosecond} }
func measuredCPU() cpu { return cpu{"measured", 100 * time.Microsecond} }

// throughputSystems are those of the thesis, and what goes beyond.
func throughputSystems() []plan.System {
	return []plan.System{plan.TAPIR, plan.CarouselBasic, plan.CarouselFast, plan.CarouselDirect}
}

// bandwidthTarget is the target at which the thesis tells bandwidth.
const bandwidthTarget = 5000

func targets(o bench.Options) (all []target) {
	add := func(c cpu, perS ...int) {
		for _, n := range perS {
			for _, s := range throughputSystems() {
				all = append(all, target{system: s, cpu: c, perS: n, seed: o.Seed,
					warm:    bench.Pick(o, 300*time.Millisecond, 500*time.Millisecond),
					lasting: bench.Pick(o, 500*time.Millisecond, 1500*time.Millisecond)})
			}
		}
	}
	if o.Quick {
		add(thesisCPU(), bandwidthTarget, 8000, 10000)
		add(measuredCPU(), bandwidthTarget)
		return all
	}
	add(thesisCPU(), 1000, 2000, 3000, 4000, bandwidthTarget, 6000, 7000, 8000, 9000, 10000)
	add(measuredCPU(), 1000, 1500, 2000, 3000, bandwidthTarget)
	return all
}

func carouselThroughput() bench.Experiment {
	thesis := table.Is("figure", thesisCPU().name)
	return bench.Experiment{
		Name: "carousel-throughput",
		Summary: "Retwis on five sites 5 ms apart, 200 clients that are to make 1000 to 10000 transactions a second: " +
			"commits, aborts and bandwidth (thesis figures 3.5 to 3.7); virtual: in the simulator, a server takes a time " +
			"for each message, a disk syncs in 1 ms",
		Modes: []bench.Mode{bench.Virtual, bench.Real}, Intervals: []string{"commits_per_s", "abort_percent"},
		Measure: func(ctx context.Context, r bench.Run) ([]table.Row, error) {
			if r.Mode == bench.Real {
				return realThroughput(ctx, r)
			}
			return bench.PointsAtOnce(throughputPoints)(ctx, r)
		},
		Figures: []figure.Spec{
			{
				Suffix: "commits", Title: "Retwis on five sites 5 ms apart: commits", X: "target_per_s",
				XLabel: "target (transactions per second)", Y: "commits_per_s", YLabel: "commits per second",
				Series: []string{"system"}, Where: thesis,
				Marks: []figure.Mark{{Line: string(plan.CarouselFast), X: 10000, Y: 8000, Bound: "about"}},
			},
			{
				Suffix: "aborts", Title: "Retwis on five sites 5 ms apart: aborted", X: "target_per_s",
				XLabel: "target (transactions per second)", Y: "abort_percent", YLabel: "aborted (%)",
				Series: []string{"system"}, Where: thesis,
				Marks: []figure.Mark{{Line: string(plan.CarouselBasic), X: 8000, Y: 7},
					{Line: string(plan.CarouselFast), X: 8000, Y: 9}},
			},
			{
				Suffix: "sent", Title: "Retwis at 5000 transactions a second: sent by each", Y: "sent_mbit_s",
				YLabel: "Mbit/s", Across: []string{"role"}, Series: []string{"system"},
				Where: table.Is("figure", "bandwidth"),
			},
			{
				Suffix: "received", Title: "Retwis at 5000 transactions a second: received by each", Y: "received_mbit_s",
				YLabel: "Mbit/s", Across: []string{"role"}, Series: []string{"system"},
				Where: table.Is("figure", "bandwidth"),
			},
		},
	}
}

func throughputPoints(o bench.Options) (points []bench.Point) {
	for _, t := range targets(o) {
		points = append(points, bench.Point{
			Doing: fmt.Sprintf("%s cpu=%s target=%d", t.system, t.cpu.name, t.perS),
			Run: func(context.Context) ([]table.Row, error) {
				m, err := t.run()
				if err != nil {
					return nil, err
				}
				return m.rows(), nil
			},
		})
	}
	return points
}

// cells tell what store it is, beside the system, and what is asked of it.
func cells(system plan.System, network, site string) table.Row {
	at := "ring"
	if system.Whole() {
		at = "everywhere"
	}
	return table.Row{table.Is("system", string(system)), table.Is("mode", client.GRPC.String()),
		table.Is("wan", network), table.Is("placement", at), table.Is("site", site),
		table.Is("class", string(plan.All)), table.Is("workload", "retwis"), table.Is("alpha", zipfAlpha)}
}

// near is the name of the network of the throughput.
const near = "5 ms apart"

// rows returns a row of what clients got, and where the thesis tells bandwidth one for each role.
func (m *measured) rows() []table.Row {
	base := append(cells(m.system, near, "all"), table.Is("cpu", m.cpu.name), table.Is("target_per_s", m.perS))
	ended := m.committed + m.aborted + m.other
	s := m.lasting.Seconds()
	row := append(slices.Clone(base),
		table.Measure("us_per_call", float64(m.cpu.call)/float64(time.Microsecond)),
		table.Measure("commits_per_s", float64(m.committed)/s),
		table.Measure("abort_percent", 100*float64(m.aborted)/float64(max(ended, 1))),
		table.Measure("unknown_percent", 100*float64(m.other)/float64(max(ended, 1))),
		table.Measure("of_target", float64(m.committed)/s/float64(m.perS)),
		table.Measure("busiest_server_percent", 100*m.busiest),
		table.Measure("calls_per_commit", float64(m.servers(m.calls))/float64(max(m.committed, 1))))
	if len(m.took) > 0 {
		row = append(row, table.Measure("attempt_p50_ms", table.Ms(table.Quantile(m.took, 0.5))),
			table.Measure("attempt_p95_ms", table.Ms(table.Quantile(m.took, 0.95))))
	}
	row = append(row, table.Is("figure", m.cpu.name))
	rows := []table.Row{row}
	if m.perS != bandwidthTarget || m.cpu != thesisCPU() {
		return rows
	}
	mbit := func(bytes, nodes int) float64 { return 8 * float64(bytes) / 1e6 / s / float64(nodes) }
	add := func(name string, nodes, sent, got, calls int) {
		if nodes > 0 {
			rows = append(rows, append(slices.Clone(base), table.Is("role", name), table.Is("nodes", nodes),
				table.Measure("sent_mbit_s", mbit(sent, nodes)), table.Measure("received_mbit_s", mbit(got, nodes)),
				table.Measure("calls_per_s", float64(calls)/s/float64(nodes)), table.Is("figure", "bandwidth")))
		}
	}
	for r, name := range [roles]string{"clients", "leaders", "followers", "coordinators"} {
		if role(r) != followerRole || m.nodes[leaderRole] > 0 { // else those are all servers
			add(name, m.nodes[r], m.sent[r], m.got[r], m.calls[r])
		}
	}
	add("servers", m.servers(m.nodes), m.servers(m.sent), m.servers(m.got), m.servers(m.calls))
	return rows
}

// servers sums up what is counted of servers.
func (m *measured) servers(of [roles]int) int {
	return of[leaderRole] + of[followerRole] + of[keylessRole]
}
