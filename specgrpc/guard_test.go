package specgrpc_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// outcome makes a speculative call of a method and returns the code of its result.
func (w *world) outcome(addr, method string, req proto.Message) codes.Code {
	w.Helper()
	c := w.openRaw(w.raw(addr), method)
	c.sendRequest(c.request(req))
	st := new(spb.Status)
	if b := c.final().GetStatus(); b != nil {
		if err := proto.Unmarshal(b, st); err != nil {
			w.Error(err)
		}
	}
	c.abort()
	_ = c.end()
	return codes.Code(st.GetCode())
}

// seen notes under which names calls pass.
type seen struct {
	mu    sync.Mutex
	names map[string]int
}

func (s *seen) note(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = make(map[string]int)
	}
	s.names[kind+" "+strings.TrimPrefix(name, "/foresay.testkv.v1.TestKV")]++
}

func (s *seen) all() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.names)
}

func (s *seen) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	s.note("unary", info.FullMethod)
	if m, _ := grpc.Method(ctx); m != info.FullMethod {
		s.note("context", m)
	}
	return handler(ctx, req)
}

func (s *seen) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s.note("stream", info.FullMethod)
	return handler(srv, ss)
}

func (s *seen) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	s.note("tap", info.FullMethodName)
	return ctx, nil
}

// A speculative call that is the first call of all passes the server's unary
// interceptors, whichever way the server is made, and nothing declares them.
func TestInterceptorsAreFound(t *testing.T) {
	deny := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	pass := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, req)
	}
	for name, opts := range map[string][]grpc.ServerOption{
		"one":           {grpc.UnaryInterceptor(deny)},
		"chained":       {grpc.ChainUnaryInterceptor(deny)},
		"after another": {grpc.UnaryInterceptor(pass), grpc.ChainUnaryInterceptor(pass, deny)},
		"workers":       {grpc.ChainUnaryInterceptor(deny), grpc.NumStreamWorkers(2)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := &kvServer{}
				_, addr := w.server("a", impl, opts...)
				_, _, wrapped := w.kv("b", impl, opts...)
				for _, addr := range []string{addr, wrapped} {
					if got := w.outcome(addr, getMethod, &kvpb.GetRequest{Key: "k"}); got != codes.Unauthenticated {
						w.Errorf("got %v, want the interceptor's refusal", got)
					}
				}
				wantNotes(w, impl)
			})
		})
	}
}

// Where nobody can be asked for the interceptors, a speculative call is refused
// until a plain call has shown them.
func TestInterceptorsUnknown(t *testing.T) {
	inWorld(t, func(w *world) {
		deny := func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
			return nil, status.Error(codes.Unauthenticated, "who are you?")
		}
		var r *specgrpc.ServiceRegistrar
		_, addr := w.serve("a", func(s *grpc.Server) {
			r = specgrpc.Registrar(struct{ grpc.ServiceRegistrar }{s})
			kvpb.RegisterTestKVServer(r, &kvServer{})
		}, grpc.ChainUnaryInterceptor(deny))
		cc := w.raw(addr)
		c := w.openRaw(cc, getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		if c.next().GetRefused() == nil || r.Stats().RefusedUnknown != 1 {
			w.Errorf("the call was not refused: %+v", r.Stats())
		}
		_, err := kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{})
		wantCode(w, err, codes.Unauthenticated)
		if got := w.outcome(addr, getMethod, &kvpb.GetRequest{Key: "k"}); got != codes.Unauthenticated {
			w.Errorf("got %v, want the interceptor's refusal", got)
		}
	})
}

// Calls pass under their method's own name, once, whatever looks at them: to stream
// interceptors a speculative call is none.
func TestNamesOfSpeculativeCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		var s seen
		_, addr := w.server("a", &kvServer{}, grpc.ChainUnaryInterceptor(s.unary), grpc.ChainStreamInterceptor(s.stream),
			specgrpc.InTapHandle(s.tap))
		if got := w.outcome(addr, getMethod, &kvpb.GetRequest{Key: "k"}); got != codes.OK {
			w.Errorf("got %v", got)
		}
		if diff := cmp.Diff(map[string]int{"unary /Get": 1, "tap /Get": 1}, s.all()); diff != "" {
			w.Errorf("names (-want +got):\n%s", diff)
		}
	})
}

// What would see speculative calls under other names is refused when the server is made.
func TestNewServerRefuses(t *testing.T) {
	var s seen
	for name, tt := range map[string]struct {
		opts []grpc.ServerOption
		want string
	}{
		"stream interceptor": {[]grpc.ServerOption{grpc.StreamInterceptor(s.stream)}, "grpc.ChainStreamInterceptor"},
		"tap":                {[]grpc.ServerOption{grpc.InTapHandle(s.tap)}, "specgrpc.InTapHandle"},
		"tap twice": {[]grpc.ServerOption{specgrpc.InTapHandle(s.tap), specgrpc.InTapHandle(s.tap)},
			"one tap handle"},
		"unary twice": {[]grpc.ServerOption{grpc.UnaryInterceptor(s.unary), grpc.UnaryInterceptor(s.unary)},
			"The unary server interceptor was already set"},
		"method":          {[]grpc.ServerOption{specgrpc.Stages("Put")}, "Put"},
		"half-open calls": {[]grpc.ServerOption{specgrpc.WithMaxHalfOpenCalls(-1)}, "WithMaxHalfOpenCalls is -1"},
		"depth":           {[]grpc.ServerOption{specgrpc.WithMaxDepth(-1)}, "WithMaxDepth is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				p, _ := recover().(string)
				if !strings.Contains(p, tt.want) || strings.Contains(p, "Stream") != strings.Contains(tt.want, "Stream") {
					t.Errorf("got %q, want a panic that says %s", p, tt.want)
				}
			}()
			specgrpc.NewServer(tt.opts...)
		})
	}
}

// GetServiceInfo and reflection show methods, and nothing of their speculative streams.
func TestServiceInfo(t *testing.T) {
	s := specgrpc.NewServer()
	kvpb.RegisterTestKVServer(s, &kvServer{})
	reflection.Register(s)
	plain := grpc.NewServer()
	kvpb.RegisterTestKVServer(plain, &kvServer{})
	reflection.Register(plain)
	names := func(all map[string]grpc.ServiceInfo) (out []string) {
		for service, info := range all {
			for _, m := range info.Methods {
				out = append(out, service+"/"+m.Name)
			}
		}
		slices.Sort(out)
		return out
	}
	if diff := cmp.Diff(names(plain.GetServiceInfo()), names(s.GetServiceInfo())); diff != "" {
		t.Errorf("methods (-want +got):\n%s", diff)
	}
}

// counting is a stats handler that counts what begins.
type counting struct{ seen }

func (c *counting) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	c.note("rpc", info.FullMethodName)
	return ctx
}
func (*counting) HandleRPC(context.Context, stats.RPCStats)                         {}
func (*counting) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*counting) HandleConn(context.Context, stats.ConnStats)                       {}

// The server asks itself for its interceptors once, and not at all if a plain call
// came first.
func TestAskingOnce(t *testing.T) {
	for _, plainFirst := range []bool{false, true} {
		inWorld(t, func(w *world) {
			var c counting
			_, addr := w.server("a", &kvServer{}, grpc.StatsHandler(&c))
			want := map[string]int{"rpc /Get": 1, "rpc /Get.spec": 3}
			if plainFirst {
				if _, err := kvpb.NewTestKVClient(w.raw(addr)).Get(w.Context(), &kvpb.GetRequest{}); err != nil {
					w.Error(err)
				}
			}
			for range 3 {
				if got := w.outcome(addr, getMethod, &kvpb.GetRequest{Key: "k"}); got != codes.OK {
					w.Errorf("got %v", got)
				}
			}
			synctest.Wait()
			if diff := cmp.Diff(want, c.all()); diff != "" {
				w.Errorf("plain first %v: calls (-want +got):\n%s", plainFirst, diff)
			}
		})
	}
}
