package oteltest

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/telemetry"
)

// BenchmarkSampled compares tasks with telemetry, of which 1 % are sampled, with tasks without: in
// a program without traces otherwise, and in one that has a span for each request and otelgrpc's
// for its calls anyhow. A round of one is followed by a round of the other; "ratio", "cpu-ratio"
// and "allocs-ratio" are what a round with takes to one without. "noise" is otelgrpc without
// telemetry against itself: what the machine's other work makes of 1.
func BenchmarkSampled(b *testing.B) {
	for _, size := range []int{64, 4096} {
		for _, name := range []string{"noise", "bare", "otelgrpc"} {
			b.Run(fmt.Sprintf("%s/%dB/16-callers", name, size), func(b *testing.B) {
				traced := name != "bare"
				without, with := newStack(b, traced, false, size), newStack(b, traced, name != "noise", size)
				compare(b, without, with)
			})
		}
	}
}

// BenchmarkTask is what telemetry costs a task that makes no calls: of a Control
// without a tracer, below a span that is not recorded, as the first span of a trace
// that is not sampled, and sampled.
func BenchmarkTask(b *testing.B) {
	never, always := provider(b, sdktrace.NeverSample()), provider(b, sdktrace.AlwaysSample())
	below, _ := never.Tracer("bench").Start(b.Context(), "request")
	for _, c := range []struct {
		name   string
		ctx    context.Context
		tracer control.Tracer
	}{
		{"untraced", b.Context(), nil},
		{"parent-not-recorded", below, telemetry.NewTracer(never)},
		{"root-not-sampled", b.Context(), telemetry.NewTracer(never)},
		{"sampled", b.Context(), telemetry.NewTracer(always)},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctl, err := control.New(control.Config{Recent: -1, Tracer: c.tracer})
			if err != nil {
				b.Fatal(err)
			}
			ctx := ctl.Context(c.ctx)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = foresay.Do(ctx, func(context.Context) (int, error) { return 0, nil })
			}
		})
	}
}

// stack makes requests of two calls, the second of which stands on a right
// prediction of the first.
type stack struct {
	client  kvpb.TestKVClient
	control *control.Control
	tracer  trace.Tracer // of the program's own spans, if it has some
	keys    [2]string
	values  [2]*kvpb.GetResponse
}

// provider records what the sampler wants, and throws it away.
func provider(b *testing.B, sampler sdktrace.Sampler) *sdktrace.TracerProvider {
	b.Helper()
	p := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sampler)), sdktrace.WithBatcher(nowhere{}))
	b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p
}

type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                             { return nil }

func newStack(b *testing.B, traced, telemetered bool, size int) *stack {
	b.Helper()
	traces := provider(b, sdktrace.TraceIDRatioBased(0.01))
	options := []otelgrpc.Option{otelgrpc.WithTracerProvider(traces),
		otelgrpc.WithMeterProvider(sdkmetric.NewMeterProvider())}
	cfg := control.Config{Recent: -1}
	var client, server stats.Handler
	if traced {
		client, server = otelgrpc.NewClientHandler(options...), otelgrpc.NewServerHandler(options...)
	}
	if telemetered {
		cfg.Tracer = telemetry.NewTracer(traces)
		if traced {
			client, server = telemetry.ClientHandler(client), telemetry.ServerHandler(server)
		}
	}
	ctl, err := control.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	if telemetered {
		reader := sdkmetric.NewManualReader()
		if _, err := telemetry.Register(ctl, sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter(
			"bench")); err != nil {
			b.Fatal(err)
		}
	}
	s := &stack{client: connected(b, ctl, client, server), control: ctl}
	if traced {
		s.tracer = traces.Tracer("bench")
	}
	for i := range s.keys {
		s.keys[i] = strings.Repeat(string(rune('a'+i)), size)
		s.values[i] = value(s.keys[i])
	}
	return s
}

// connected returns a client of a server over the loopback interface.
func connected(b *testing.B, ctl *control.Control, client, server stats.Handler) kvpb.TestKVClient {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var opts []grpc.ServerOption
	dial := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), specgrpc.WithControl(ctl),
		specgrpc.WithMode(control.ModeOn)}
	if client != nil {
		opts, dial = append(opts, grpc.StatsHandler(server)), append(dial, grpc.WithStatsHandler(client))
	}
	s := grpc.NewServer(opts...)
	kvpb.RegisterTestKVServer(specgrpc.Registrar(s), kv{})
	go func() { _ = s.Serve(l) }()
	b.Cleanup(s.Stop)
	cc, err := specgrpc.NewClient(l.Addr().String(), dial...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cc.Close() })
	return kvpb.NewTestKVClient(cc)
}

func (s *stack) request(ctx context.Context) error {
	if s.tracer != nil {
		var span trace.Span
		ctx, span = s.tracer.Start(ctx, "request")
		defer span.End()
	}
	_, err := foresay.Do(s.control.Context(ctx), func(ctx context.Context) (string, error) {
		if _, err := get(ctx, s.client, s.keys[0], s.values[0]); err != nil {
			return "", err
		}
		return get(ctx, s.client, s.keys[1])
	})
	return err
}

const (
	callers = 16
	round   = 3 // requests of each caller
)

// cost is what a round took.
type cost struct{ elapsed, cpu, allocs float64 }

// round makes requests.
func (s *stack) round(b *testing.B) cost {
	before := spent(b)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range round {
				if err := s.request(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	after := spent(b)
	return cost{after.elapsed - before.elapsed, after.cpu - before.cpu, after.allocs - before.allocs}
}

// spent returns what was spent so far: times in nanoseconds.
func spent(b *testing.B) cost {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return cost{float64(time.Now().UnixNano()), float64(u.Utime.Nano() + u.Stime.Nano()), float64(m.Mallocs)}
}

// compare measures both stacks by turns, which are short, so that other work of
// the machine falls to both alike.
func compare(b *testing.B, without, with *stack) {
	for range 3 {
		without.round(b)
		with.round(b)
	}
	var x, y []cost
	for b.Loop() {
		if len(x)%2 == 0 {
			x = append(x, without.round(b))
			y = append(y, with.round(b))
		} else {
			y = append(y, with.round(b))
			x = append(x, without.round(b))
		}
	}
	for name, of := range map[string]func(cost) float64{
		"ratio":        func(c cost) float64 { return c.elapsed },
		"cpu-ratio":    func(c cost) float64 { return c.cpu },
		"allocs-ratio": func(c cost) float64 { return c.allocs },
	} {
		b.ReportMetric(trimmed(y, of)/trimmed(x, of), name)
	}
	b.ReportMetric(trimmed(x, func(c cost) float64 { return c.cpu })/1e3/callers/round, "cpu-µs/request-without")
	b.ReportMetric(0, "ns/op")
}

// trimmed returns the mean of what rounds cost, without the tenth that cost most.
func trimmed(costs []cost, of func(cost) float64) float64 {
	v := make([]float64, len(costs))
	for i, c := range costs {
		v[i] = of(c)
	}
	slices.Sort(v)
	v = v[:max(len(v)*9/10, 1)]
	sum := 0.0
	for _, c := range v {
		sum += c
	}
	return sum / float64(len(v))
}
