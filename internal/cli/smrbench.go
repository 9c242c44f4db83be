package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"text/tabwriter"
	"time"

	hdrhistogram "github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/smr/service"
)

type smrBenchFlags struct {
	clientFlags
	clients    int
	duration   time.Duration
	valueBytes int
	keys       int
	reads      int
	ack        ackFlag
}

func (p *program) smrBenchCommand() *cobra.Command {
	var f smrBenchFlags
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure a service: throughput and latency of a closed loop",
		Long: "Measure a service: each client makes one call after the other, writes of random keys and, with --reads, linearizable reads.\n" +
			"All clients share a connection to each replica. Keys begin with \"bench/\" and stay there.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.validate(); err != nil {
				return err
			}
			return p.withLastingClient(c.Context(), &f.clientFlags, func(ctx context.Context, client *service.Client) error {
				return p.smrBench(ctx, client, &f)
			})
		},
	}
	flags := c.Flags()
	f.add(flags)
	flags.IntVar(&f.clients, "clients", 64, "how many clients")
	flags.DurationVar(&f.duration, "for", 5*time.Second, "how long to measure")
	flags.IntVar(&f.valueBytes, "value-bytes", 16, "the size of values")
	flags.IntVar(&f.keys, "keys", 1000, "how many keys")
	flags.IntVar(&f.reads, "reads", 0, "how many percent of the calls are reads")
	f.ack = ackFlag(smr.AckExecuted)
	flags.Var(&f.ack, "ack", "when a write is done: durable, its position is fixed; ordered, also before all later calls; executed")
	return c
}

func (f *smrBenchFlags) validate() error {
	switch {
	case f.clients < 1 || f.clients > 50_000:
		return usagef("smr bench: --clients is %d; want 1 to 50000", f.clients)
	case f.duration <= 0:
		return usagef("smr bench: --for is %v; want more than 0", f.duration)
	case f.valueBytes < 0 || f.valueBytes > service.MaxValueBytes:
		return usagef("smr bench: --value-bytes is %d; want 0 to %d", f.valueBytes, service.MaxValueBytes)
	case f.keys < 1:
		return usagef("smr bench: --keys is %d; want 1 or more", f.keys)
	case f.reads < 0 || f.reads > 100:
		return usagef("smr bench: --reads is %d; want 0 to 100", f.reads)
	}
	return nil
}

// ackFlag is a kind of acknowledgement as a flag.
type ackFlag smr.Ack

func (a *ackFlag) String() string { return smr.Ack(*a).String() }
func (a *ackFlag) Type() string   { return "kind" }

func (a *ackFlag) Set(s string) error {
	for _, k := range []smr.Ack{smr.AckDurable, smr.AckOrdered, smr.AckExecuted} {
		if s == k.String() {
			*a = ackFlag(k)
			return nil
		}
	}
	return errors.New("durable, ordered or executed")
}

// loadRow is what a kind of call came to.
type loadRow struct {
	Op           string  `json:"op"`
	Ack          string  `json:"ack"`
	Clients      int     `json:"clients"`
	ValueBytes   int     `json:"value_bytes"`
	Ops          int64   `json:"ops"`
	Failed       int64   `json:"failed"` // rejected, or of unknown outcome
	OpsPerSecond float64 `json:"ops_per_s"`
	P50Ms        float64 `json:"p50_ms"`
	P95Ms        float64 `json:"p95_ms"`
	P99Ms        float64 `json:"p99_ms"`
	MaxMs        float64 `json:"max_ms"`
}

// callKinds are the rows.
const (
	callWrite = iota
	callRead
	callKinds
)

// meter is what one client measured.
type meter struct {
	latency [callKinds]*hdrhistogram.Histogram
	failed  [callKinds]int64
}

func newMeter() *meter {
	m := &meter{}
	for i := range m.latency {
		m.latency[i] = hdrhistogram.New(1, time.Minute.Microseconds(), 3)
	}
	return m
}

func (p *program) smrBench(ctx context.Context, c *service.Client, f *smrBenchFlags) error {
	// The first call finds the leader, and tells early if there is none.
	first, cancel := context.WithTimeout(ctx, f.timeout)
	_, err := c.Put(first, "bench/0", nil)
	cancel()
	if err != nil {
		return fmt.Errorf("smr bench: %w", err)
	}
	var done atomic.Int64
	meters := make([]*meter, f.clients)
	start := time.Now()
	end := start.Add(f.duration)
	var group errgroup.Group
	for i := range meters {
		meters[i] = newMeter()
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for time.Now().Before(end) && ctx.Err() == nil {
				f.call(ctx, c, random, meters[i])
				done.Add(1)
			}
			return nil
		})
	}
	stopped := make(chan struct{})
	go func() {
		p.showLoad(ctx, f, start, &done, stopped)
	}()
	err = group.Wait() // the loops return nil
	elapsed := time.Since(start)
	stopped <- struct{}{}
	if err != nil || ctx.Err() != nil {
		return fmt.Errorf("smr bench: interrupted: %w", context.Cause(ctx))
	}
	rows := f.rows(meters, elapsed)
	if f.json {
		return p.writeJSON(rows)
	}
	return writeLoad(p.Out, rows)
}

// call makes one call and measures it.
func (f *smrBenchFlags) call(ctx context.Context, c *service.Client, random *rand.Rand, m *meter) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	key := fmt.Appendf(nil, "bench/%d", random.IntN(f.keys))
	kind, start := callWrite, time.Now()
	var err error
	if random.IntN(100) < f.reads {
		kind = callRead
		_, err = c.Read(ctx, kv.Get(key))
	} else {
		value := make([]byte, f.valueBytes)
		for i := range value {
			value[i] = 'a' + byte(random.Uint32N(26))
		}
		start = time.Now()
		call := smr.Call{Kind: smr.Propose, Ack: smr.Ack(f.ack), Command: kv.Put(key, value)}
		if call.Ack == smr.AckExecuted {
			call.Kind = smr.Execute
		}
		_, err = c.Do(ctx, call)
	}
	if err != nil {
		m.failed[kind]++
		return
	}
	_ = m.latency[kind].RecordValue(max(time.Since(start).Microseconds(), 1)) // timeouts are below its limit, or count as that
}

// showLoad shows how far the measurement is, until stopped gets something.
func (p *program) showLoad(ctx context.Context, f *smrBenchFlags, start time.Time, done *atomic.Int64, stopped <-chan struct{}) {
	bar := newProgress(p.Err)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stopped:
			bar.clear()
			return
		case <-tick.C:
			if ctx.Err() != nil {
				continue
			}
			passed := min(time.Since(start), f.duration)
			bar.report(bench.Progress{
				Experiment: "smr bench, percent of " + f.duration.String(), Done: int(100 * passed / f.duration), Total: 100,
				Doing: fmt.Sprintf("%.0f calls per s", float64(done.Load())/max(passed.Seconds(), 0.001)),
			})
		}
	}
}

func (f *smrBenchFlags) rows(meters []*meter, elapsed time.Duration) []loadRow {
	total := newMeter()
	for _, m := range meters {
		for k := range m.latency {
			total.latency[k].Merge(m.latency[k])
			total.failed[k] += m.failed[k]
		}
	}
	rows := []loadRow{}
	for k, op := range [callKinds]string{"write", "read"} {
		h := total.latency[k]
		if h.TotalCount() == 0 && total.failed[k] == 0 {
			continue
		}
		ms := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
		row := loadRow{
			Op: op, Ack: f.ack.String(), Clients: f.clients, ValueBytes: f.valueBytes, Ops: h.TotalCount(), Failed: total.failed[k],
			OpsPerSecond: float64(h.TotalCount()) / elapsed.Seconds(), P50Ms: ms(50), P95Ms: ms(95), P99Ms: ms(99), MaxMs: float64(h.Max()) / 1000,
		}
		if k == callRead {
			row.Ack = "read"
		}
		rows = append(rows, row)
	}
	return rows
}

func writeLoad(w io.Writer, rows []loadRow) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "op\tack\tclients\tvalue bytes\tops\tfailed\tops/s\tp50 ms\tp95 ms\tp99 ms\tmax ms\t")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t\n",
			r.Op, r.Ack, r.Clients, r.ValueBytes, r.Ops, r.Failed, r.OpsPerSecond, r.P50Ms, r.P95Ms, r.P99Ms, r.MaxMs)
	}
	return t.Flush()
}
