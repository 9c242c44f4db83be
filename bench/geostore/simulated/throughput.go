package simulated

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/geostore"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// The setting of Carousel's throughput [Carousel §3.4.4]: five sites in one room, each with three
// servers, and eight machines with clients. How many clients a machine has is told of the other
// experiments only [Carousel §3.4.1].
const (
	nearTrip       = 5 * time.Millisecond
	clientMachines = 8
	machineClients = 5
	keyCount       = 10_000_000
	zipfAlpha      = 0.75
	valueBytes     = 64
	// leastRoundTrip is what nodes are told of the network: less would have them take a queue for a
	// failure.
	leastRoundTrip = 100 * time.Millisecond
	// roomOffset bounds how far clocks of one room are apart.
	roomOffset = time.Millisecond
)

// A cpu says how long a server is at work on a message from another node.
type cpu struct {
	name string
	call time.Duration
}

// target is a system that is asked for so many transactions a second.
type target struct {
	system  plan.System
	cpu     cpu
	perS    int
	seed    uint64
	warm    time.Duration
	lasting time.Duration
}

// A role is what a node is there for.
type role int

const (
	clientRole   role = iota // clients, and the agents that work for them
	leaderRole               // of a partition
	followerRole             // of a partition, or any server of one that has no leader
	keylessRole              // servers of groups that only coordinate
	roles
)

// traffic counts what goes from one node to another, of different machines.
type traffic struct {
	codec      protocol.Codec[store.Message]
	buffer     []byte
	roles      map[protocol.ID]role
	on         bool
	calls      [roles]int
	sent, got  [roles]int // bytes
	handled    map[protocol.ID]int
	perMessage time.Duration
}

// serve counts a call, and says how long it takes.
func (t *traffic) serve(c sim.Call[store.Message]) time.Duration {
	if c.Kind != sim.CallReceive || c.From == protocol.App || c.From == c.Node {
		return 0
	}
	from, to := t.roles[c.From], t.roles[c.Node]
	if t.on && (from != clientRole || to != clientRole) {
		var err error
		if t.buffer, err = t.codec.Append(t.buffer[:0], c.Msg); err == nil {
			t.sent[from] += len(t.buffer)
			t.got[to] += len(t.buffer)
		}
		t.calls[to]++
		t.handled[c.Node]++
	}
	if to == clientRole {
		return 0
	}
	return t.perMessage
}

// rolesOf returns what each node of a layout is there for.
func rolesOf(l store.Layout, leads bool) map[protocol.ID]role {
	all := map[protocol.ID]role{} // clients and agents are not in it, and so of the first one
	shards := len(l.Sites[0].Shards)
	for i, s := range l.Sites {
		for k, id := range s.Shards {
			switch {
			case id == 0:
			case k >= shards-l.Keyless:
				all[id] = keylessRole
			case leads && l.FirstOf(k) == i:
				all[id] = leaderRole
			default:
				all[id] = followerRole
			}
		}
	}
	return all
}

// measured is what came of a target.
type measured struct {
	target
	traffic
	nodes              [roles]int
	committed, aborted int
	other              int // neither
	took               []time.Duration
	busiest            float64 // the largest share of the time that a server is at work
}

// run measures it.
func (t target) run() (*measured, error) {
	sites := wan.Uniform(nearTrip, wan.Carousel().Sites()...)
	placement, err := placementOf(sites)
	if err != nil {
		return nil, err
	}
	keys, err := workload.Zipfian(keyCount, zipfAlpha)
	if err != nil {
		return nil, err
	}
	p, _ := storesim.ProtocolOf(t.system)
	m := &measured{target: t, traffic: traffic{codec: p.Codec, handled: map[protocol.ID]int{}, perMessage: t.cpu.call}}
	all, err := populate(setting{system: t.system, wan: sites, placement: placement, agents: clientMachines,
		clients:   atEach(sites, clientMachines*machineClients),
		roundTrip: leastRoundTrip, maxOffset: roomOffset, seed: max(t.seed, 1),
		disk: sim.Disk{Latency: bench.SyncTime}, service: m.serve})
	if err != nil {
		return nil, err
	}
	defer all.close()
	m.roles = rolesOf(all.Layout, all.Protocol.Leads)
	for _, id := range all.IDs() {
		m.nodes[m.roles[id]]++
	}
	m.nodes[clientRole] = clientMachines * len(sites.Sites())
	value := make([]byte, valueBytes)
	all.value = func([]byte) []byte { return value }
	all.ended = func(_ *caller, r result) {
		switch {
		case !m.on:
		case r.verdict == store.Committed:
			m.committed++
			m.took = append(m.took, r.took)
		case r.verdict == store.Aborted:
			m.aborted++
		default:
			m.other++
		}
	}
	all.begin(workload.Retwis{Keys: keys}, time.Duration(len(all.clients))*time.Second/time.Duration(t.perS),
		func() bool { return true })
	if err := all.Pass(t.warm); err != nil {
		return nil, err
	}
	m.on = true
	before := map[protocol.ID]time.Duration{}
	for id := range m.roles {
		before[id] = all.Busy(id)
	}
	if err := all.Pass(t.lasting); err != nil {
		return nil, err
	}
	for id := range m.roles {
		m.busiest = max(m.busiest, (all.Busy(id)-before[id]).Seconds()/t.lasting.Seconds())
	}
	slices.Sort(m.took)
	return m, nil
}

// The two processors. That of the thesis is fitted: at 8000 transactions a second the leaders of
// carousel-basic are at work for 94 % of the time, and beyond that its commits fall behind. The
// measured one is what carousel-throughput --real said of carousel-basic (cpu_us_per_call) on a
// computer with two cores: the processor time of all machines and clients, in parts as many as
// there are messages to servers.
func thesisCPU() cpu   { return cpu{"thesis", 22500 * time.Nanosecond} }
func measuredCPU() cpu { return cpu{"measured", 30 * time.Microsecond} }

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
		add(measuredCPU(), 8000)
		return all
	}
	add(thesisCPU(), 1000, 2000, 3000, 4000, bandwidthTarget, 6000, 7000, 8000, 9000, 10000)
	add(measuredCPU(), 2000, 4000, 6000, 8000, 10000)
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

// turn is what a system did on the wall clock in one turn.
type turn struct {
	commitsPerS, cpuPerCommit, abortPercent float64
	failed                                  int
	took                                    []time.Duration
}

// median is how long an attempt that committed took.
func (t turn) median() float64 { return table.Ms(table.Quantile(t.took, 0.5)) }

// realThroughput has the systems take turns on this computer: all machines, their disks and the
// clients share its processors. Clients make one transaction after the other.
func realThroughput(ctx context.Context, r bench.Run) (rows []table.Row, err error) {
	systems, rounds := throughputSystems(), bench.Pick(r.Options, 1, 5)
	turns := make([][]turn, len(systems))
	for round := range rounds {
		for i, s := range bench.Random(r.Seed, uint64(round)).Perm(len(systems)) {
			r.Step(round*len(systems)+i, rounds*len(systems), fmt.Sprintf("%s round=%d", systems[s], round+1))
			t, err := realTurn(ctx, systems[s], r, r.Seed+uint64(round)) // all play the same in a round
			if err != nil {
				return nil, fmt.Errorf("%s: %w", systems[s], err)
			}
			turns[s] = append(turns[s], t)
		}
	}
	calls, err := callsPerCommit(r)
	if err != nil {
		return nil, err
	}
	basic, cpuOf := turns[1], func(t turn) float64 { return t.cpuPerCommit }
	for i, s := range systems {
		cpu := table.MedianOf(turns[i], cpuOf)
		row := append(cells(s, near, "all"), table.Is("clients", realClients*len(wan.Carousel().Sites())),
			table.Measure("commits_per_s", table.MedianOf(turns[i], func(t turn) float64 { return t.commitsPerS })),
			table.Measure("abort_percent", table.MedianOf(turns[i], func(t turn) float64 { return t.abortPercent })),
			table.Measure("attempt_p50_ms", table.MedianOf(turns[i], turn.median)),
			table.Measure("failed", table.MedianOf(turns[i], func(t turn) float64 { return float64(t.failed) })))
		if cpu > 0 {
			row = append(row, table.Measure("cpu_us_per_commit", cpu),
				table.Measure("cpu_us_per_call", cpu/calls[i]),
				table.Measure("cpu_ratio_to_carousel-basic", table.RatioOf(turns[i], basic, cpuOf)))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// realClients is how many clients a site has on the wall clock, in one program: enough for two
// processors, and few enough for nobody to take a queue for a failure.
const realClients = machineClients

func realTurn(ctx context.Context, s plan.System, r bench.Run, seed uint64) (t turn, err error) {
	p, _ := storesim.ProtocolOf(s)
	matrix := wan.Uniform(nearTrip, wan.Carousel().Sites()...)
	placement, err := placementOf(matrix)
	if err != nil {
		return t, err
	}
	keys, err := workload.Zipfian(keyCount, zipfAlpha)
	if err != nil {
		return t, err
	}
	cfg := geostore.Config{Protocol: p, Matrix: matrix, Shards: len(placement), ValueBytes: valueBytes, Declared: true,
		Once: true, MaxOffset: roomOffset, Loopback: true, Seed: seed}
	for _, at := range placement {
		var names []string
		for _, site := range at {
			names = append(names, string(site))
		}
		cfg.Placement = append(cfg.Placement, names)
	}
	err = bench.WithTempDir(func(dir string) (err error) {
		cfg.Dir = dir
		s, err := geostore.Open(ctx, cfg)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		clients, err := s.ConnectShared(client.GRPC, realClients, machineClients)
		if err != nil {
			return err
		}
		defer clients.Close()
		load := geostore.Load{Workload: workload.Retwis{Keys: keys}, Seed: seed, For: time.Second, Failures: true}
		if _, err := clients.Play(ctx, load); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		runtime.GC() // the garbage of the turn before is not this one's
		load.Seed, load.For = seed+1, bench.Pick(r.Options, time.Second, 4*time.Second)
		before := bench.CPUTime()
		played, err := clients.Play(ctx, load)
		if err != nil {
			return err
		}
		t = turnOf(played, bench.CPUTime()-before)
		return nil
	})
	return t, err
}

func turnOf(p geostore.Played, used time.Duration) (t turn) {
	commits, aborted := 0, 0
	for _, n := range p.Commits {
		commits += n
	}
	for _, x := range p.Txns {
		for _, a := range x.Attempts {
			if a.Committed {
				t.took = append(t.took, a.Took)
			} else {
				aborted++
			}
		}
	}
	slices.Sort(t.took)
	t.failed = p.Failed
	t.commitsPerS = float64(commits) / p.Lasting.Seconds()
	t.abortPercent = 100 * float64(aborted) / float64(max(len(p.Txns), 1))
	committed := 1 - t.abortPercent/100 // of those that ended while time was taken
	t.cpuPerCommit = float64(used.Microseconds()) / max(float64(p.All)*committed, 1)
	return t
}

// callsPerCommit counts, in the simulator, how many messages servers get for each transaction that
// commits, of each system.
func callsPerCommit(r bench.Run) (all []float64, err error) {
	for _, s := range throughputSystems() {
		m, err := target{system: s, perS: 1000, seed: r.Seed, warm: 300 * time.Millisecond, lasting: time.Second}.run()
		if err != nil {
			return nil, err
		}
		all = append(all, float64(m.servers(m.calls))/float64(max(m.committed, 1)))
	}
	return all, nil
}
