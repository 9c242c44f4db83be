package specgrpc_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

const (
	getMethod    = kvpb.TestKV_Get_FullMethodName
	putMethod    = kvpb.TestKV_Put_FullMethodName
	appendMethod = kvpb.TestKV_Append_FullMethodName

	// rtt is the round trip between any two sites of a world.
	rtt = 10 * time.Millisecond
)

// world is a client and servers in a bubble of virtual time.
type world struct {
	*testing.T
	net *shape.Network
}

// inWorld runs f in a bubble. The bubble fails the test if a goroutine is left.
func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t, shape.NewNetwork(wan.Uniform(rtt, "client", "a", "b", "c"), 1)}
		t.Cleanup(func() { w.net.Close() })
		f(w)
	})
}

// serve starts a server with the services that register registers.
func (w *world) serve(site wan.Site, register func(s *grpc.Server), opts ...grpc.ServerOption) (*grpc.Server, string) {
	w.Helper()
	s := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	register(s)
	return s, w.listen(site, s)
}

// server serves impl on a specgrpc.Server.
func (w *world) server(site wan.Site, impl kvpb.TestKVServer, opts ...grpc.ServerOption) (*specgrpc.Server, string) {
	w.Helper()
	s := specgrpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	kvpb.RegisterTestKVServer(s, impl)
	return s, w.listen(site, s)
}

// listen has a server take connections at a site until the test ends.
func (w *world) listen(site wan.Site, s interface {
	Serve(l net.Listener) error
	Stop()
}) (addr string) {
	w.Helper()
	l, err := w.net.Listen(site)
	if err != nil {
		w.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	w.Cleanup(func() {
		s.Stop()
		<-done
	})
	return l.Addr().String()
}

// kv serves impl through a registrar.
func (w *world) kv(
	site wan.Site, impl kvpb.TestKVServer, opts ...grpc.ServerOption,
) (*specgrpc.ServiceRegistrar, *grpc.Server, string) {
	w.Helper()
	var r *specgrpc.ServiceRegistrar
	s, addr := w.serve(site, func(s *grpc.Server) {
		r = specgrpc.Registrar(s, own(opts)...)
		kvpb.RegisterTestKVServer(r, impl)
	}, opts...)
	return r, s, addr
}

// sideBySide has so many tasks begin, a little apart, since in reality no two begin at one instant,
// each in Do or plainly, and returns how long each took.
func (w *world) sideBySide(
	n int, apart time.Duration, speculate bool, task func(ctx context.Context, i int) error,
) []time.Duration {
	took := make([]time.Duration, n)
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			time.Sleep(time.Duration(i) * apart)
			start := time.Now()
			var err error
			if speculate {
				_, err = foresay.Do(w.Context(), func(ctx context.Context) (int, error) { return 0, task(ctx, i) })
			} else {
				err = task(w.Context(), i)
			}
			took[i] = time.Since(start)
			if err != nil {
				w.Error(err)
			}
		})
	}
	done.Wait()
	return took
}

// onGuess begins a task that guesses what a slow server will answer, and does the rest on that
// guess. The channel gets its error.
func (w *world) onGuess(gate grpc.ClientConnInterface, rest func(ctx context.Context) error) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
			if _, err := guessed(ctx, kvpb.NewTestKVClient(gate), "slow", value("slow")); err != nil {
				return 0, err
			}
			return 0, rest(ctx)
		})
		done <- err
	}()
	return done
}

// own returns those among the options that are a registrar's.
func own(opts []grpc.ServerOption) (out []specgrpc.ServerOption) {
	for _, o := range opts {
		if o, ok := o.(specgrpc.ServerOption); ok {
			out = append(out, o)
		}
	}
	return out
}

// dial connects the client's site to a server.
func (w *world) dial(addr string, opts ...grpc.DialOption) *specgrpc.ClientConn {
	w.Helper()
	return w.dialFrom("client", addr, opts...)
}

func (w *world) dialFrom(site wan.Site, addr string, opts ...grpc.DialOption) *specgrpc.ClientConn {
	w.Helper()
	cc, err := specgrpc.NewClient("passthrough:///"+addr,
		append(w.dialOptions(site), append([]grpc.DialOption{specgrpc.WithMode(control.ModeOn)}, opts...)...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cc.Close() })
	cc.Connect()
	return cc
}

func (w *world) dialOptions(site wan.Site) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(w.net.DialContext(site)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
}

// raw connects a plain gRPC client.
func (w *world) raw(addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	w.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, append(w.dialOptions("client"), opts...)...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cc.Close() })
	return cc
}

// quiet waits until nothing is half-open.
func (w *world) quiet(c *specgrpc.ClientConn, rs ...*specgrpc.ServiceRegistrar) {
	w.Helper()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	if n := c.HalfOpen(); n != 0 {
		w.Errorf("the client has %d half-open streams left", n)
	}
	for _, r := range rs {
		if n := r.HalfOpen(); n != 0 {
			w.Errorf("a server has %d half-open calls left", n)
		}
	}
}

// kvServer is a service made of functions. It notes which calls it handled.
type kvServer struct {
	kvpb.UnimplementedTestKVServer
	get    func(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error)
	put    func(context.Context, *kvpb.PutRequest) (*kvpb.PutResponse, error)
	append func(context.Context, *kvpb.AppendRequest) (*kvpb.AppendResponse, error)

	mu   sync.Mutex
	seen []string
}

func (s *kvServer) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, fmt.Sprintf(format, args...))
}

func (s *kvServer) notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.seen...)
}

func (s *kvServer) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	s.note("get %s", r.GetKey())
	if s.get != nil {
		return s.get(ctx, r)
	}
	return value(r.GetKey()), nil
}

func (s *kvServer) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	s.note("put %s=%s", r.GetKey(), r.GetValue())
	if s.put != nil {
		return s.put(ctx, r)
	}
	return &kvpb.PutResponse{Version: 1}, nil
}

func (s *kvServer) Append(ctx context.Context, r *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
	s.note("append %s+=%s", r.GetKey(), r.GetValue())
	if s.append != nil {
		return s.append(ctx, r)
	}
	return &kvpb.AppendResponse{Value: r.GetValue(), Version: 1}, nil
}

// value is what a kvServer holds under a key.
func value(key string) *kvpb.GetResponse { return &kvpb.GetResponse{Value: "value of " + key} }

// slow answers a Get of key late, and any other at once.
func slow(key string, d time.Duration) func(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	return func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		if r.GetKey() == key {
			if err := pause(ctx, d); err != nil {
				return nil, err
			}
		}
		return value(r.GetKey()), nil
	}
}

// pause sleeps unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// guessed calls Get with a prediction.
func guessed(
	ctx context.Context, c kvpb.TestKVClient, key string, prediction *kvpb.GetResponse,
) (*kvpb.GetResponse, error) {
	return c.Get(foresay.Predicting(ctx, prediction), &kvpb.GetRequest{Key: key})
}

// wantCode checks an error's status.
func wantCode(t testing.TB, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("got status %v (%v), want %v", got, err, want)
	}
}

// logs collects log lines.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// wantNotes checks what a server handled, in whatever order.
func wantNotes(t testing.TB, s *kvServer, want ...string) {
	t.Helper()
	got := s.notes()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls handled (-want +got):\n%s", diff)
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
