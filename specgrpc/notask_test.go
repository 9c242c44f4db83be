package specgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// TestNoTask: a function whose calls are never guessed gets no task after a while, and
// what it sees of gRPC is what it sees in one.
func TestNoTask(t *testing.T) {
	for name, f := range map[string]func(ctx context.Context, c kvpb.TestKVClient) string{
		"a call": func(ctx context.Context, c kvpb.TestKVClient) string {
			v, err := c.Get(metadata.AppendToOutgoingContext(ctx, "x-user", "ann"), &kvpb.GetRequest{Key: "k"})
			return fmt.Sprint(v.GetValue(), err)
		},
		"a prediction": func(ctx context.Context, c kvpb.TestKVClient) string {
			v, err := guessed(ctx, c, "k", value("other"))
			return fmt.Sprint(v.GetValue(), err)
		},
		"an effect": func(ctx context.Context, c kvpb.TestKVClient) string {
			v, err := c.Put(ctx, &kvpb.PutRequest{Key: "k", Value: "v"})
			return fmt.Sprint(v.GetVersion(), err)
		},
		"a failure": func(ctx context.Context, c kvpb.TestKVClient) string {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "missing"})
			return fmt.Sprint(err)
		},
		"its own deadline": func(ctx context.Context, c kvpb.TestKVClient) string {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "slow"})
			_, again := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
			return fmt.Sprint(status.Code(err), status.Code(again), ctx.Err())
		},
		"its own cancellation": func(ctx context.Context, c kvpb.TestKVClient) string {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "slow"})
			return fmt.Sprint(status.Code(err), ctx.Err())
		},
		"options that look": func(ctx context.Context, c kvpb.TestKVClient) string {
			var header, trailer metadata.MD
			var from peer.Peer
			finished := 0
			v, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"}, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from),
				grpc.OnFinish(func(error) { finished++ }))
			return fmt.Sprint(v.GetValue(), err, header.Get("h"), trailer.Get("t"), from.Addr != nil, finished)
		},
		"credentials": func(ctx context.Context, c kvpb.TestKVClient) string {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"}, grpc.PerRPCCredentials(userToken("alice")))
			_, failed := c.Get(ctx, &kvpb.GetRequest{Key: "k"}, grpc.PerRPCCredentials(noToken{}))
			return fmt.Sprint(err, status.Code(failed))
		},
		"an interceptor's panic": func(ctx context.Context, c kvpb.TestKVClient) (out string) {
			defer func() { out = fmt.Sprint("panic ", recover()) }()
			_, _ = c.Get(ctx, &kvpb.GetRequest{Key: "panic"})
			return ""
		},
		"a group": func(ctx context.Context, c kvpb.TestKVClient) string {
			g := foresay.NewGroup(ctx)
			var got [2]string
			for i, key := range []string{"slow", "k"} {
				g.Go(func(ctx context.Context) error {
					v, err := c.Get(ctx, &kvpb.GetRequest{Key: key})
					got[i] = v.GetValue()
					return err
				})
			}
			return fmt.Sprint(g.Wait(), got)
		},
	} {
		t.Run(name, func(t *testing.T) { inWorld(t, func(w *world) { testNoTask(w, f) }) })
	}
}

func testNoTask(w *world, f func(ctx context.Context, c kvpb.TestKVClient) string) {
	impl := &kvServer{}
	impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		_ = grpc.SetHeader(ctx, metadata.Pairs("h", "1"))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("t", "2"))
		switch r.GetKey() {
		case "missing":
			return nil, status.Error(codes.NotFound, "no such key")
		case "slow":
			if err := pause(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
		}
		md, _ := metadata.FromIncomingContext(ctx)
		return &kvpb.GetResponse{Value: fmt.Sprint(r.GetKey(), md.Get("x-user"), md.Get("authorization"))}, nil
	}
	r, _, addr := w.kv("a", impl)
	seen := ""
	var mu sync.Mutex
	within := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		mu.Lock()
		seen += fmt.Sprint(" ", method, driver.InTask(ctx))
		mu.Unlock()
		if req, ok := req.(*kvpb.GetRequest); ok && req.GetKey() == "panic" {
			panic("ouch")
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	cc := w.dial(addr, grpc.WithUnaryInterceptor(within), specgrpc.WithMode(control.ModeObserve))
	c := kvpb.NewTestKVClient(cc)
	isTask := false
	do := func(f func(ctx context.Context, c kvpb.TestKVClient) string, opts ...foresay.Option) string {
		impl.seen, seen = nil, ""
		began := time.Now()
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			isTask = !strings.Contains(string(debug.Stack()), "(*light).do")
			return f(ctx, c), errors.New("with an error")
		}, opts...)
		took := time.Since(began)
		time.Sleep(time.Second)
		notes := impl.notes()
		slices.Sort(notes)
		return fmt.Sprintln(got, err, seen, took, notes)
	}
	nothing := func(context.Context, kvpb.TestKVClient) string { return "" }
	get := func(ctx context.Context, c kvpb.TestKVClient) string {
		_, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
		return fmt.Sprint(err)
	}
	reported := foresay.WithReport(func(*report.Report) {})
	do(get, reported) // the connection is made
	inTask := do(f, reported)
	if !isTask {
		w.Error("a reported task is none")
	}
	for range 64 {
		do(nothing)
	}
	without := do(f)
	if isTask {
		w.Error("it has a task although none was needed for 64 times")
	}
	if inTask != without {
		w.Errorf("in a task\n%swithout\n%s", inTask, without)
	}
	if st := cc.CallSite(getMethod).Stats(); st.Plain != 0 {
		w.Errorf("%d calls of tasks count as plain ones", st.Plain)
	}
	w.quiet(cc, r)
}

// TestRestingStreams: calls go over streams of their own only while that saves something.
func TestRestingStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			_ = foresay.Predict(ctx, value(r.GetKey()))
			return value(r.GetKey()), pause(ctx, 5*time.Millisecond)
		}
		streams := 0
		r, _, addr := w.kv("a", impl, grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo,
			handler grpc.StreamHandler) error {
			streams++
			return handler(srv, ss)
		}))
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true}))
		c := kvpb.NewTestKVClient(cc)
		calls := func(n int, work time.Duration) (of int) {
			before := streams
			for range n {
				got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
					v, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
					time.Sleep(work)
					return v.GetValue(), err
				})
				if want := value("k").GetValue(); got != want || err != nil {
					w.Fatalf("got %q, %v", got, err)
				}
			}
			return streams - before
		}
		calls(50, 0)
		if n := calls(200, 0); n != 0 {
			w.Errorf("%d of 200 calls went over streams although that saves nothing", n)
		}
		if st := cc.Control().Status().CallSites[0]; !strings.HasPrefix(st.Reason, "saves nothing: ") {
			w.Errorf("%v: %q", st.State, st.Reason)
		}
		time.Sleep(cc.Control().Config().Retry)
		calls(60, time.Millisecond)
		if n := calls(60, time.Millisecond); n != 60 {
			w.Errorf("%d of 60 calls went over streams when work follows them", n)
		}
		w.quiet(cc, r)
	})
}
