package replicated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
	"github.com/foresay/foresay/wan"
)

// Load is what real replicas and clients on this machine are put under: all in one process, over
// TCP on the loopback interface.
type Load struct {
	Protocol smr.Protocol
	Ack      smr.Ack // what calls wait for; AckDefault is AckOrdered
	Replicas int
	Clients  int // each a host and a session of its own
	Window   int // calls of a client at once
	Durable  bool
	Dir      string // for disks; needed if Durable
	MaxBatch int
	For      time.Duration
}

// Rate is what came of a Load.
type Rate struct {
	Calls   int // within Lasting
	All     int // with those of the warm-up
	Lasting time.Duration
	Took    []time.Duration // of some of the calls, evenly chosen
	Commits uint64          // of the disks, many calls in one; 0 if not durable
}

// PerSecond returns the calls per second.
func (r Rate) PerSecond() float64 { return float64(r.Calls) / r.Lasting.Seconds() }

const cluster0 = "bench"

// Throughput runs a load. Writes have a key and a value of 8 bytes each.
func Throughput(ctx context.Context, l Load) (Rate, error) {
	ctx, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	g := &group{load: l, ctx: ctx, stop: stop, wg: &wg}
	defer wg.Wait()
	defer stop(nil)
	if err := g.startReplicas(); err != nil {
		return Rate{}, err
	}
	defer g.closeStores()
	defer wg.Wait()
	defer stop(nil)
	for i := range l.Clients {
		if err := g.startClient(protocol.ID(70000 + i)); err != nil {
			return Rate{}, err
		}
	}
	calls := &callers{load: l, ctx: ctx}
	for _, c := range g.clients {
		calls.put = append(calls.put, func(ctx context.Context, key, value []byte) error {
			call := smr.Call{Kind: smr.Propose, Ack: l.Ack, Command: kv.Put(key, value)}
			if l.Ack == smr.AckExecuted {
				call.Kind = smr.Execute
			}
			_, err := c.Do(ctx, call)
			return err
		})
	}
	if err := calls.warm(30 * time.Second); err != nil {
		return Rate{}, err
	}
	return calls.measure(g.commits)
}

// group is a running Load.
type group struct {
	load    Load
	ctx     context.Context
	stop    context.CancelCauseFunc
	wg      *sync.WaitGroup
	members []smr.Member
	stores  []*wal.Store
	nodes   []*host.Node[smr.Message]
	clients []*client.Client
}

func (g *group) startReplicas() error {
	var listeners []net.Listener
	for i := range g.load.Replicas {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("replica %d: %w", i+1, err)
		}
		listeners = append(listeners, lis)
		g.members = append(g.members, smr.Member{ID: protocol.ID(i + 1), Address: lis.Addr().String()})
	}
	for i, m := range g.members {
		if err := g.startReplica(m.ID, listeners[i]); err != nil {
			return fmt.Errorf("replica %d: %w", m.ID, err)
		}
	}
	return nil
}

func (g *group) startReplica(id protocol.ID, lis net.Listener) error {
	node, err := g.load.Protocol.NewReplica(smr.ReplicaConfig{
		ID: id, Members: g.members, Machine: kv.New(), Leader: 1, MaxBatch: g.load.MaxBatch, SnapshotEvery: 10_000_000,
	})
	if err != nil {
		return err
	}
	var disk host.Disk = host.NewMemory()
	if g.load.Durable {
		store, err := wal.Open(filepath.Join(g.load.Dir, fmt.Sprint("replica", id)), wal.Options{})
		if err != nil {
			return err
		}
		g.stores = append(g.stores, store)
		if disk, err = waldisk.New(store, "replica"); err != nil {
			return err
		}
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: cluster0, IDs: []protocol.ID{id}, Insecure: true},
		Listener: lis})
	if err != nil {
		return err
	}
	n, err := host.Add(h, host.Spec[smr.Message]{ID: id, Node: node, Codec: g.load.Protocol.Codec, Disk: disk,
		App: func(msg smr.Message) {
			if r, ok := msg.(smr.Refused); ok {
				g.stop(fmt.Errorf("replica %d: refused: %s", id, r.Reason))
			}
		}})
	if err != nil {
		return err
	}
	g.nodes = append(g.nodes, n)
	return g.run(h)
}

// run runs a host that knows all members.
func (g *group) run(h *host.Host) error {
	for _, m := range g.members {
		if err := h.SetPeer(m.ID, m.Address); err != nil {
			return err
		}
	}
	g.wg.Go(func() {
		if err := h.Run(g.ctx); err != nil {
			g.stop(err)
		}
	})
	return nil
}

func (g *group) startClient(id protocol.ID) error {
	node, err := g.load.Protocol.NewClient(smr.ClientConfig{ID: id, Members: g.members, Nearest: 1})
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: cluster0, Insecure: true}})
	if err != nil {
		return err
	}
	var c *client.Client
	n, err := host.Add(h, host.Spec[smr.Message]{
		ID: id, Node: node, Codec: g.load.Protocol.Codec, App: func(msg smr.Message) { c.Receive(msg) },
	})
	if err != nil {
		return err
	}
	c = client.New(func(ctx context.Context, msg smr.Message) error { return n.Deliver(ctx, msg) })
	g.clients = append(g.clients, c)
	return g.run(h)
}

func (g *group) closeStores() {
	for _, s := range g.stores {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			g.stop(err)
		}
	}
}

// commits returns how many commits the disks have made.
func (g *group) commits() uint64 {
	var sum uint64
	if g.load.Durable {
		for _, n := range g.nodes {
			sum += n.Stats().Commits
		}
	}
	return sum
}

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
	add := func(system System, l Load, run throughput) {
		points = append(points, bench.Point{
			Doing: fmt.Sprintf("%s, durable=%s batch=%s until %s", system.Name, durableName(l.Durable), batchName(l.MaxBatch),
				l.Ack),
			Run: func(ctx context.Context) ([]table.Row, error) {
				return throughputRow(ctx, o, system, run, l)
			},
		})
	}
	for _, durable := range []bool{false, true} {
		for _, batch := range bench.Pick(o, []int{0}, []int{0, 1}) {
			for _, s := range Systems() {
				s := inBatches(s, batch)
				run := func(ctx context.Context, l Load) (Rate, error) {
					l.Protocol = s.Protocol
					return Throughput(ctx, l)
				}
				add(s, Load{Ack: smr.AckDurable, Durable: durable, MaxBatch: batch}, run)
				if batch == 0 {
					add(s, Load{Ack: smr.AckExecuted, Durable: durable}, run)
				}
			}
		}
	}
	if path := Etcd(); path != "" {
		etcd := Load{Ack: smr.AckExecuted, Durable: true} // it answers what it has executed
		add(System{Protocol: smr.Protocol{Name: "etcd"}}, etcd, func(ctx context.Context, l Load) (Rate, error) {
			return EtcdThroughput(ctx, path, l)
		})
	}
	return points
}

// inBatches returns a system whose clients put no more commands in a slot than a batch has, 0 for
// the default. Only Domino's clients make batches of their own.
func inBatches(s System, batch int) System {
	if s.Options == nil || batch == 0 {
		return s
	}
	o := *s.Options
	o.Batch = batch
	return s.With(o)
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
	ctx context.Context, o bench.Options, system System, run throughput, l Load,
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
	row := slices.Concat(table.Row{table.Is("system", system.Base()), table.Is("wan", "loopback"), table.Is("site", "all"),
		table.Is("ack", l.Ack.String()), table.Is("jitter", wan.Noise{}.String())}, system.Cells(), table.Row{
		table.Is("figure", throughputFigure(l.Durable, l.Ack)),
		table.Is("durable", durableName(l.Durable)),
		table.Is("batch", batchName(l.MaxBatch)),
		table.Is("clients", l.Clients),
		table.Is("window", l.Window),
		table.Measure("ops_per_s", r.PerSecond()),
	})
	row = append(row, table.LatencyCells(r.Took)...)
	if system.Name != "etcd" { // whose processes are others
		row = append(row, table.Measure("cpu_us_per_op", float64(cpu.Microseconds())/float64(max(r.All, 1))))
	}
	if r.Commits > 0 {
		row = append(row, table.Is("disk_commits", int(r.Commits)))
	}
	return []table.Row{row}, nil
}
