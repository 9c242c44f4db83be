package specgrpc_test

import (
	"context"
	"net"
	"runtime"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// loopback serves an echo over TCP.
func loopback(b testing.TB, impl kvpb.TestKVServer) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := grpc.NewServer()
	kvpb.RegisterTestKVServer(specgrpc.Registrar(s), impl)
	go func() { _ = s.Serve(l) }()
	b.Cleanup(s.Stop)
	return l.Addr().String()
}

type echo struct{ kvpb.UnimplementedTestKVServer }

func (echo) Get(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return &kvpb.GetResponse{Value: r.GetKey()}, nil
}

// foretold is an echo that predicts what it answers: whoever asks for predictions goes on
// asking.
type foretold struct{ echo }

func (e foretold) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	response, err := e.echo.Get(ctx, r)
	_ = foresay.Predict(ctx, response)
	return response, err
}

const echoed = "0123456789012345678901234567890123456789012345678901234567890123"

// BenchmarkEcho compares calls of one method over one connection. Each
// sub-benchmark is to be read against "grpc" of the same run and callers.
func BenchmarkEcho(b *testing.B) {
	plainly, foretelling := loopback(b, echo{}), loopback(b, foretold{})
	asking := specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true})
	bare, cc, asked := grpcAlone(b, plainly), speculating(b, plainly), speculating(b, plainly, asking)
	streams := speculating(b, foretelling, asking)
	for _, callers := range []int{1, 16} {
		for name, call := range map[string]func(ctx context.Context) error{
			"grpc":                get(bare),
			"outside-of-tasks":    get(cc),
			"task-unpredicted":    inTask(cc, ""),
			"task-right":          inTask(cc, echoed),
			"task-wrong":          inTask(cc, "wrong"),
			"task-right-asked":    inTask(asked, echoed),
			"task-right-streamed": inTask(streams, echoed),
		} {
			b.Run(name+map[int]string{1: "/1-caller", 16: "/16-callers"}[callers], func(b *testing.B) {
				measure(b, callers, call)
			})
		}
	}
}

// grpcAlone and speculating connect to a server until the test ends.
func grpcAlone(tb testing.TB, addr string) *grpc.ClientConn {
	tb.Helper()
	cc, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { cc.Close() })
	return cc
}

func speculating(tb testing.TB, addr string, opts ...grpc.DialOption) *specgrpc.ClientConn {
	tb.Helper()
	opts = append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), specgrpc.WithMode(control.ModeOn))
	cc, err := specgrpc.NewClient(addr, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { cc.Close() })
	return cc
}

// always has all guesses made although no guess saves anything here.
func always(tb testing.TB) grpc.DialOption {
	tb.Helper()
	ctl, err := control.New(control.Config{Budget: -1})
	if err != nil {
		tb.Fatal(err)
	}
	return specgrpc.WithControl(ctl)
}

func get(cc grpc.ClientConnInterface) func(ctx context.Context) error {
	c := kvpb.NewTestKVClient(cc)
	return func(ctx context.Context) error {
		_, err := c.Get(ctx, &kvpb.GetRequest{Key: echoed})
		return err
	}
}

func inTask(cc grpc.ClientConnInterface, prediction string) func(ctx context.Context) error {
	c := kvpb.NewTestKVClient(cc)
	return func(ctx context.Context) error {
		_, err := foresay.Do(ctx, func(ctx context.Context) (*kvpb.GetResponse, error) {
			if prediction != "" {
				ctx = foresay.Predicting(ctx, &kvpb.GetResponse{Value: prediction})
			}
			return c.Get(ctx, &kvpb.GetRequest{Key: echoed})
		})
		return err
	}
}

func measure(b *testing.B, callers int, call func(ctx context.Context) error) {
	b.ReportAllocs()
	if callers == 1 {
		for b.Loop() {
			if err := call(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if err := call(b.Context()); err != nil {
				b.Error(err)
			}
		}
	})
}
