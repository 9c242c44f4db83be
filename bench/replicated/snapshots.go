package replicated

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/figure"
	"github.com/foresay/foresay/bench/table"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

// Sizes of the experiment.
const (
	snapshotsClients    = 64
	snapshotsValueBytes = 1 << 10
	snapshotsDataBytes  = 4 << 10 // of a value that is there from the beginning
	snapshotsNever      = 1 << 30 // commands between two snapshots
	snapshotsRoundTrip  = "50ms"  // as 'smr init' has it
	restingBytes        = 1 << 20 // a merge of snapshots writes more in half a second
)

func smrSnapshots() bench.Experiment {
	return bench.Experiment{
		Name: "smr-snapshots",
		Summary: "64 clients of two services of three processes each, 250 MB of state, one with a snapshot every " +
			"20,000 commands, one with none, in turns: longest gap between answers, throughput, elections, memory",
		Modes:       []bench.Mode{bench.Real},
		PerProtocol: true,
		Measure:     bench.Points(perProtocol(snapshotsRow)),
		Figures: []figure.Spec{
			{
				Suffix: "ops", Title: "Throughput with a snapshot every 20,000 commands, 250 MB of state", Y: "ops_ratio",
				YLabel: "times that without snapshots",
				Across: []string{"system"}, Ratio: true,
			},
			{
				Suffix: "gap", Title: "The longest gap between answers while snapshots are written", Y: "gap_ms",
				YLabel: "milliseconds",
				Across: []string{"system"},
			},
			{
				Suffix: "memory", Title: "Memory of a replica that writes snapshots", Y: "memory_per_data",
				YLabel: "times its data",
				Across: []string{"system"}, Ratio: true,
			},
		},
	}
}

// snapshotsTurn is what a service did in a turn.
type snapshotsTurn struct {
	perSecond float64
	gap       time.Duration // the longest one without an answer to anybody
	terms     uint64        // how many began
	snapshots smr.Slot      // how far the newest ones moved, in slots
	back      time.Duration // that a replica took to come back, 0 if it did not
}

func snapshotsRow(ctx context.Context, o bench.Options, p smr.Protocol) (rows []table.Row, err error) {
	every := bench.Pick(o, 500, 20_000)
	err = bench.WithTempDir(func(dir string) error {
		var groups []*snapshotsGroup // with snapshots, and without
		for i, every := range []int{every, snapshotsNever} {
			g, err := startSnapshots(ctx, o.Program, filepath.Join(dir, fmt.Sprint(i)), p, every)
			if err != nil {
				return err
			}
			defer g.close()
			if err := g.load(ctx, bench.Pick(o, 200, 60_000)); err != nil {
				return fmt.Errorf("load: %w", err)
			}
			groups = append(groups, g)
		}
		turns := make([][]snapshotsTurn, len(groups))
		for n := range bench.Pick(o, 1, 4) {
			for _, i := range bench.Random(o.Seed, uint64(n)).Perm(len(groups)) {
				turn, err := groups[i].turn(ctx, bench.Pick(o, 500*time.Millisecond, 8*time.Second))
				if err != nil {
					return fmt.Errorf("turn %d: %w", n+1, err)
				}
				turns[i] = append(turns[i], turn)
			}
		}
		st, err := groups[0].status(ctx)
		if err != nil {
			return err
		}
		memory := func(g *snapshotsGroup) float64 { return float64(g.servers.Peak()) / float64(max(st.Bytes, 1)) }
		with, without := memory(groups[0]), memory(groups[1])
		var back []snapshotsTurn
		for _, g := range groups {
			turn, err := g.back(ctx, bench.Pick(o, 1000, 50_000), bench.Pick(o, 500*time.Millisecond, 8*time.Second))
			if err != nil {
				return fmt.Errorf("return of a replica: %w", err)
			}
			back = append(back, turn)
		}
		rows = []table.Row{slices.Concat(
			table.Row{table.Is("system", p.Name), table.Is("clients", snapshotsClients),
				table.Is("value_bytes", snapshotsValueBytes), table.Is("snapshot_every", every),
				table.Measure("data_mb", float64(st.Bytes)/1e6)},
			snapshotsCells(turns[0], turns[1]),
			table.Row{table.Measure("memory_per_data", with), table.Measure("memory_without", without)},
			table.Row{
				table.Measure("back_gap_ms", table.Ms(back[0].gap)), table.Measure("back_gap_without_ms", table.Ms(back[1].gap)),
				table.Measure("back_s", back[0].back.Seconds()),
				table.Measure("back_without_s", back[1].back.Seconds()), table.Measure("back_memory", memory(groups[0])),
			},
		)}
		return nil
	})
	return rows, err
}

// snapshotsCells compares turns with snapshots with those without. The ratio is the median of those
// within a round; gaps are the longest of all turns.
func snapshotsCells(with, without []snapshotsTurn) table.Row {
	var ratios, rates []float64
	var sum [2]snapshotsTurn
	for i, w := range with {
		ratios = append(ratios, w.perSecond/without[i].perSecond)
		rates = append(rates, w.perSecond)
		for j, t := range []snapshotsTurn{w, without[i]} {
			sum[j].gap = max(sum[j].gap, t.gap)
			sum[j].terms += t.terms
			sum[j].snapshots += t.snapshots
		}
	}
	return table.Row{
		table.Measure("ops_per_s", table.Median(rates)), table.Measure("ops_ratio", table.Median(ratios)),
		table.Measure("gap_ms", table.Ms(sum[0].gap)), table.Measure("gap_without_ms", table.Ms(sum[1].gap)),
		table.Is("elections", int(sum[0].terms)), table.Is("elections_without", int(sum[1].terms)),
		table.Is("snapshot_slots", int(sum[0].snapshots)),
	}
}

// snapshotsGroup is a service that writes snapshots, or none.
type snapshotsGroup struct{ *served }

func startSnapshots(ctx context.Context, program, dir string, p smr.Protocol, every int) (*snapshotsGroup, error) {
	cfg := service.Config{Protocol: p.Name, RoundTrip: snapshotsRoundTrip, SnapshotEvery: every}
	if every == snapshotsNever {
		cfg.LogBytes = 1 << 40
	}
	s, err := startServed(ctx, program, dir, cfg)
	if err != nil {
		return nil, err
	}
	return &snapshotsGroup{s}, nil
}

// load puts what the snapshots are made of.
func (g *snapshotsGroup) load(ctx context.Context, keys int) error {
	value := make([]byte, snapshotsDataBytes)
	err := g.all(ctx, func(ctx context.Context, client int) error {
		for n := client; n < keys; n += snapshotsClients {
			if _, err := g.client.Put(ctx, fmt.Sprintf("data/%06d", n), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.rest(ctx)
}

// all runs something for each client, until the first error, or the end of a server.
func (g *snapshotsGroup) all(ctx context.Context, f func(ctx context.Context, client int) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(g.servers.Context(), func() { stop(context.Cause(g.servers.Context())) })()
	var wg sync.WaitGroup
	for client := range snapshotsClients {
		wg.Go(func() {
			if err := f(ctx, client); err != nil {
				stop(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// turn has the clients write, each one call after the other, and then waits until the servers rest:
// what one service has begun must not weigh on the other's turn.
func (g *snapshotsGroup) turn(ctx context.Context, lasting time.Duration) (out snapshotsTurn, err error) {
	before, err := g.status(ctx)
	if err != nil {
		return out, err
	}
	if err := g.write(ctx, &out, func(took time.Duration, _ int) bool { return took >= lasting }); err != nil {
		return out, err
	}
	if err := g.rest(ctx); err != nil {
		return out, err
	}
	after, err := g.status(ctx)
	out.terms, out.snapshots = after.Term-before.Term, after.Snapshot-before.Snapshot
	return out, err
}

// write has the clients write, each one call after the other, until they have done enough.
func (g *snapshotsGroup) write(
	ctx context.Context, out *snapshotsTurn, enough func(took time.Duration, count int) bool,
) error {
	value := make([]byte, snapshotsValueBytes)
	began := time.Now()
	answers := &gapMeter{last: began}
	err := g.all(ctx, func(ctx context.Context, client int) error {
		for n := 0; ; n++ {
			if _, err := g.client.Put(ctx, fmt.Sprintf("hot/%d/%d", client, n%16), value); err != nil {
				return err
			}
			if count := answers.note(time.Now()); enough(time.Since(began), count) {
				return nil
			}
		}
	})
	out.perSecond = float64(answers.count) / time.Since(began).Seconds()
	out.gap = answers.longest
	return err
}

// back kills a replica, one that does not lead, has the clients write so many commands without it,
// which is more than logs keep if there are snapshots, and looks how they fare while it comes back.
func (g *snapshotsGroup) back(ctx context.Context, commands int, lasting time.Duration) (out snapshotsTurn, err error) {
	before, err := g.client.Status(ctx)
	if err != nil {
		return out, err
	}
	victim := len(before) - 1
	if before[victim].Role == "leader" || before[victim].Leader == before[victim].Replica {
		victim--
	}
	if err := g.servers.Kill(victim); err != nil {
		return out, err
	}
	if err := g.write(ctx, &out, func(_ time.Duration, count int) bool { return count >= commands }); err != nil {
		return out, err
	}
	most, err := g.status(ctx)
	if err != nil {
		return out, err
	}
	if err := g.servers.Restart(victim); err != nil {
		return out, err
	}
	began, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		for out.back == 0 && time.Since(began) < 2*lasting && ctx.Err() == nil {
			asking, stop := context.WithTimeout(ctx, time.Second)
			all, _ := g.client.Status(asking)
			stop()
			if victim < len(all) && all[victim].Applied >= most.Applied {
				out.back = time.Since(began)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	var turn snapshotsTurn
	err = g.write(ctx, &turn, func(took time.Duration, _ int) bool { return took >= lasting })
	<-done
	out.gap, out.perSecond = turn.gap, turn.perSecond
	return out, err
}

// rest waits until the servers have next to nothing to do and to write, such as the rest of a
// snapshot or a merge, but not for ever.
func (g *snapshotsGroup) rest(ctx context.Context) error {
	const look = 500 * time.Millisecond
	for range 60 {
		used, written := g.servers.CPU(), g.servers.Written()
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if g.servers.CPU()-used < look/5 && g.servers.Written()-written < restingBytes {
			break
		}
	}
	return nil
}

// status has of each figure the largest that a replica tells.
func (g *snapshotsGroup) status(ctx context.Context) (most service.Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	all, err := g.client.Status(ctx)
	for _, s := range all {
		most.Term, most.Snapshot, most.Bytes = max(most.Term, s.Term), max(most.Snapshot, s.Snapshot),
			max(most.Bytes, s.Bytes)
		most.Applied = max(most.Applied, s.Applied)
	}
	return most, err
}

// gapMeter keeps the longest time between two answers, to whomever.
type gapMeter struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	count   int
}

// next returns the longest time so far, and looks for another one from now on.
func (m *gapMeter) next() (longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest, m.longest = max(m.longest, time.Since(m.last)), 0
	return longest
}

func (m *gapMeter) note(at time.Time) (count int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.longest = max(m.longest, at.Sub(m.last))
	if at.After(m.last) {
		m.last = at
	}
	m.count++
	return m.count
}
