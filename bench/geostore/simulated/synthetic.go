package simulated

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/synthetic"
)

func strSynthetic() bench.Experiment {
	e := bench.Experiment{
		Name: "str-synthetic",
		Summary: "ten keys read and updated on nine sites, six copies of each partition, by contention at the own site " +
			"and with others, 10 to 80 clients for each server: commits, latency, aborts (STR figure 3)",
		Modes: []bench.Mode{bench.Virtual}, Full: true, Intervals: nineIntervals(),
		Measure: bench.PointsAtOnce(syntheticPoints),
	}
	for _, contention := range contentions() {
		e.Figures = append(e.Figures, nineFigures(contention, "contention "+contention+", local and remote: ",
			table.Is("figure", contention))...)
	}
	return e
}

// contentions are those of Figure 3, local contention first.
func contentions() []string { return []string{"low-low", "high-low", "high-high"} }

// nineIntervals are the columns of which several seeds give an interval.
func nineIntervals() []string {
	return []string{"commits_per_s", "final_mean_ms", "perceived_mean_ms", "abort_percent"}
}

// nineFigures are the three pictures of a load, by clients: commits, final latency and aborts.
func nineFigures(suffix, title string, where table.Cell) (all []figure.Spec) {
	for _, f := range []struct{ suffix, y, label string }{
		{"commits", "commits_per_s_of_27", "commits per second on 27 servers"},
		{"final", "final_mean_ms", "mean final latency (ms)"},
		{"aborts", "abort_percent", "attempts that were aborted (%)"},
	} {
		all = append(all, figure.Spec{Suffix: suffix + "-" + f.suffix, Title: title + f.label, X: "clients",
			XLabel: "clients for each server", Y: f.y, YLabel: f.label, Series: []string{"system", "sl"}, Where: where})
	}
	return all
}

// syntheticLoad is a contention of Figure 3. What figure it belongs to is told apart from that.
func syntheticLoad(o bench.Options, contention string) load {
	c, err := synthetic.Named(contention)
	if err != nil {
		panic(err) // it is one of contentions
	}
	return load{
		cells: []table.Cell{table.Is("workload", "synthetic"), table.Is("contention", contention)},
		script: func(u *users) script {
			return script{jobs: func(x *user) func() job { return u.synthetic(x, c) }}
		},
		warm:    bench.Pick(o, 800*time.Millisecond, 2*time.Second),
		lasting: bench.Pick(o, 600*time.Millisecond, 2*time.Second),
	}
}

func syntheticPoints(o bench.Options) (points []bench.Point) {
	if o.Full {
		return sweep{load: syntheticLoad(o, "high-low"), cpu: paperCPU()}.bothSizes(o, 30)
	}
	all := bench.Pick(o, []int{80}, []int{10, 20, 30, 40, 60, 80})
	for _, contention := range contentions() {
		clients, few, long := all, []int{10, 40, 80}, []int{10, 20, 30}
		if o.Quick {
			few, long = nil, nil
		}
		if o.Quick && contention == "high-low" {
			clients, few, long = []int{10, 80}, []int{10}, []int{10}
		}
		s := sweep{load: syntheticLoad(o, contention), cpu: paperCPU(), servers: 1, figure: contention}
		points = append(points, s.of(clients, clockSIRep(), strInternal()).points(o)...)
		points = append(points, s.of(few, planet(), strExternal(1)).points(o)...)
		points = append(points, s.of(long, strExternal(longestChain)).points(o)...)
	}
	s := sweep{load: syntheticLoad(o, "high-low"), cpu: measuredCPU(), servers: 1}
	return append(points, s.of(bench.Pick(o, nil, []int{80}), clockSIRep(), strInternal()).points(o)...)
}

// longestChain is how many transactions of a user may be committed locally at most [STR §8].
const longestChain = 8

// A sweep is a load of systems by numbers of users.
type sweep struct {
	load    load
	cpu     cpu
	servers int
	figure  string // that its rows are in; empty: none
	systems []nineSystem
	users   []int
}

// of returns the sweep of other systems and numbers of users.
func (s sweep) of(users []int, systems ...nineSystem) sweep {
	s.users, s.systems = users, systems
	return s
}

// bothSizes returns the points of one number of users for each server, with a server at each site,
// as everywhere else, and with as many as in the paper.
func (s sweep) bothSizes(o bench.Options, users int) (points []bench.Point) {
	for _, s.servers = range []int{1, paperServers} {
		points = append(points, s.of([]int{users}, clockSIRep(), strInternal()).points(o)...)
	}
	return points
}

func (s sweep) points(o bench.Options) (points []bench.Point) {
	for _, users := range s.users {
		for _, system := range s.systems {
			n := nine{system: system, servers: s.servers, users: users, cpu: s.cpu, seed: o.Seed}
			points = append(points, bench.Point{
				Doing: fmt.Sprintf("%s sl=%d%s clients=%d servers=%d cpu=%s", system.name, system.ahead,
					cellsText(s.load.cells), users, s.servers*len(ringOfNine()), s.cpu.name),
				Run: func(context.Context) ([]table.Row, error) {
					rows, err := n.measure(s.load)
					for i := range rows {
						if s.figure != "" {
							rows[i] = append(rows[i], table.Is("figure", s.figure))
						}
					}
					return rows, err
				},
			})
		}
	}
	return points
}

func cellsText(cells []table.Cell) (s string) {
	for _, c := range cells {
		s += fmt.Sprintf(" %s=%s", c.Name, table.Text(c.Value, -1))
	}
	return s
}

// synthetic returns the jobs of a user: one transaction after the other.
func (u *users) synthetic(x *user, c synthetic.Config) func() job {
	client := synthetic.Client{Config: c, Own: x.number, Others: x.others}
	return func() job {
		txn := client.Next(x.random)
		return job{code: func(ctx context.Context, tx workload.Tx) error {
			return txn.Run(ctx, homed{tx, len(u.placement), homeOfSynthetic})
		}}
	}
}

// homeOfSynthetic returns the partition of a key.
func homeOfSynthetic(key string) int {
	home, _ := synthetic.Home(key)
	return home
}
