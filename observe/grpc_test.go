package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	bffpb "github.com/foresay/foresay/api/foresay/bff/v1"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
)

// records collects what requests were.
type records struct {
	mu  sync.Mutex
	all []control.RequestRecord
}

func (r *records) add(rec *control.RequestRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, *rec)
}

func (r *records) take() []control.RequestRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func recorded(t testing.TB) (*records, *control.Control) {
	t.Helper()
	r := new(records)
	ctl, err := control.New(control.Config{Budget: -1, OnRequest: []func(*control.RequestRecord){r.add}})
	if err != nil {
		t.Fatal(err)
	}
	return r, ctl
}

// TestDiscardedCallsAreNoRequests: of the calls that a page's server gets for guesses, those count
// that are confirmed, with the calls that they made, and no others; a wrong guess fails no request.
func TestDiscardedCallsAreNoRequests(t *testing.T) {
	for _, fast := range []bool{false, true} { // the handler has answered when the word comes, or it has not
		t.Run(fmt.Sprint("fast=", fast), func(t *testing.T) {
			inShop(t, func(s *shop) {
				t := s.t
				addr := s.registered()
				requests, ctl := recorded(t)
				inner := bffpb.NewPricingClient(s.dial("front", addr, specgrpc.WithControl(ctl)))
				h := &pricedPage{pricing: inner, fast: fast}
				i := observe.UnaryServerInterceptor(ctl)
				stream := observe.StreamServerInterceptor(ctl)
				frontAddr := s.serve("front", func(server *grpc.Server) {
					kvpb.RegisterTestKVServer(specgrpc.Registrar(server), h)
				}, grpc.ChainUnaryInterceptor(i), grpc.ChainStreamInterceptor(stream))
				client, err := control.New(control.Config{Budget: -1})
				if err != nil {
					t.Fatal(err)
				}
				opts := []grpc.DialOption{specgrpc.WithControl(client), specgrpc.WithMode(control.ModeOn),
					specgrpc.WithCallSites(control.CallSiteConfig{
						Name: getUser, Predictors: []control.Predictor{predict.Constant(&bffpb.GetUserResponse{Plan: "free"})},
					})}
				users := bffpb.NewUsersClient(s.dial("client", addr, opts...))
				page := kvpb.NewTestKVClient(s.dial("client", frontAddr, opts...))
				time.Sleep(time.Second)
				const visits = 10
				for i := range visits {
					s.become([]string{"free", "gold"}[i%2])
					_, err := foresay.Do(t.Context(), func(ctx context.Context) (*kvpb.GetResponse, error) {
						u, err := users.GetUser(ctx, &bffpb.GetUserRequest{User: "ada"})
						if err != nil {
							return nil, err
						}
						return page.Get(ctx, &kvpb.GetRequest{Key: u.GetPlan()})
					})
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(100 * time.Millisecond)
				}
				synctest.Wait()
				if n := len(h.handledKeys()); n != visits+visits/2 {
					t.Fatalf("the page was asked for %d times; want %d, for each of the wrong guesses once more", n, visits+visits/2)
				}
				var got []string
				for _, r := range requests.take() {
					got = append(got, fmt.Sprintf("%s failed=%v calls=%d %v", r.Name, r.Failed, len(r.Calls), r.Duration))
				}
				took, calls := "20ms", 1
				if fast {
					took, calls = "1ms", 0
				}
				var want []string
				for range visits {
					want = append(want, fmt.Sprintf("%s failed=false calls=%d %s", front, calls, took))
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// pricedPage answers by a plan, with the price or at once.
type pricedPage struct {
	kvpb.UnimplementedTestKVServer
	pricing bffpb.PricingClient
	fast    bool

	mu   sync.Mutex
	keys []string
}

func (p *pricedPage) handledKeys() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.keys)
}

func (p *pricedPage) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	p.mu.Lock()
	p.keys = append(p.keys, r.GetKey())
	p.mu.Unlock()
	if p.fast {
		time.Sleep(time.Millisecond)
		return &kvpb.GetResponse{Value: r.GetKey()}, nil
	}
	q, err := p.pricing.Quote(ctx, &bffpb.QuoteRequest{Plan: r.GetKey()})
	if err != nil {
		return nil, err
	}
	return &kvpb.GetResponse{Value: fmt.Sprint(q.GetPriceCents())}, nil
}

// TestRequestIDs: what decides the side of a canary is the trace, else the id that came along.
func TestRequestIDs(t *testing.T) {
	const traced, other = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	id, err := trace.TraceIDFromHex(traced)
	if err != nil {
		t.Fatal(err)
	}
	inTrace := trace.ContextWithSpanContext(t.Context(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}}))
	parent := "00-" + other + "-00f067aa0ba902b7-01"
	long := string(make([]byte, 129))
	for _, test := range []struct {
		name string
		ctx  context.Context
		md   []string
		want string
	}{
		{"nothing", t.Context(), nil, ""},
		{"a span", inTrace, []string{"traceparent", parent, "x-request-id", "r"}, traced},
		{"a header", t.Context(), []string{"traceparent", parent, "x-request-id", "r"}, other},
		{"a header of a later version", t.Context(), []string{"traceparent", "cc" + parent[2:] + "-more"}, other},
		{"two headers", t.Context(), []string{"traceparent", parent, "traceparent", parent, "x-request-id", "r"}, "r"},
		{"an id", t.Context(), []string{"x-request-id", "r"}, "r"},
		{"a long id", t.Context(), []string{"x-request-id", long}, ""},
		{"capitals", t.Context(), []string{"traceparent", "00-" + "4BF92F3577B34DA6A3CE929D0E0E4736" + parent[35:]}, ""},
		{"too short", t.Context(), []string{"traceparent", parent[:54]}, ""},
		{"too long", t.Context(), []string{"traceparent", parent + "-00"}, ""},
		{"a version that is none", t.Context(), []string{"traceparent", "ff" + parent[2:]}, ""},
		{"no trace", t.Context(), []string{"traceparent", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"}, ""},
		{"no parent", t.Context(), []string{"traceparent", "00-" + other + "-0000000000000000-01"}, ""},
		{"other separators", t.Context(), []string{"traceparent", "00_" + other + "_00f067aa0ba902b7_01"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			requests, ctl := recorded(t)
			ctx := metadata.NewIncomingContext(test.ctx, metadata.Pairs(test.md...))
			var seen string
			_, _ = observe.UnaryServerInterceptor(ctl)(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
				func(ctx context.Context, _ any) (any, error) {
					seen = control.RequestOf(ctx).ID()
					return nil, nil
				})
			if seen != test.want {
				t.Errorf("id %q, want %q", seen, test.want)
			}
			if got := requests.take(); len(got) != 1 || got[0].Name != "/a.B/C" || got[0].ID != test.want {
				t.Errorf("requests %+v", got)
			}
		})
	}
}

// FuzzTraceparent: whatever comes in a header, an id is a trace id or none.
func FuzzTraceparent(f *testing.F) {
	f.Add("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	f.Add("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x")
	f.Add(strings.Repeat("-", 55))
	f.Fuzz(func(t *testing.T, header string) {
		requests, ctl := recorded(t)
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"traceparent": {header}})
		_, _ = observe.UnaryServerInterceptor(ctl)(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/a.B/C"},
			func(context.Context, any) (any, error) { return nil, nil })
		id := requests.take()[0].ID
		if id == "" {
			return
		}
		if trace, err := trace.TraceIDFromHex(id); err != nil || !trace.IsValid() || !strings.Contains(header, id) {
			t.Errorf("%q has the id %q", header, id)
		}
	})
}

// TestInterceptorsTellFailures: errors and panics fail a request, and go on as they are.
func TestInterceptorsTellFailures(t *testing.T) {
	requests, ctl := recorded(t)
	refused := status.Error(codes.NotFound, "no such page")
	unary := observe.UnaryServerInterceptor(ctl)
	stream := observe.StreamServerInterceptor(ctl)
	info, streamInfo := &grpc.UnaryServerInfo{FullMethod: "/a.B/C"}, &grpc.StreamServerInfo{FullMethod: "/a.B/S"}
	if _, err := unary(t.Context(), nil, info, func(context.Context, any) (any, error) {
		return nil, refused
	}); !errors.Is(err, refused) {
		t.Errorf("got error %v, want %v", err, refused)
	}
	if err := stream(nil, &fakeStream{ctx: t.Context()}, streamInfo, func(_ any, s grpc.ServerStream) error {
		if control.RequestOf(s.Context()) == nil {
			t.Error("the stream's context belongs to no request")
		}
		return refused
	}); !errors.Is(err, refused) {
		t.Errorf("got error %v, want %v", err, refused)
	}
	if p := panicked(func() {
		_, _ = unary(t.Context(), nil, info, func(context.Context, any) (any, error) { panic("a bug") })
	}); p != "a bug" {
		t.Errorf("the panic became %v", p)
	}
	if _, err := unary(t.Context(), nil, info, func(context.Context, any) (any, error) { return 1, nil }); err != nil {
		t.Error(err)
	}
	// A speculative stream is not a request: the call in it is.
	if err := stream(nil, &fakeStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: "/a.B/C.spec"},
		func(any, grpc.ServerStream) error { return nil }); err != nil {
		t.Error(err)
	}
	var got []string
	for _, r := range requests.take() {
		got = append(got, fmt.Sprint(r.Name, " failed=", r.Failed))
	}
	if diff := cmp.Diff([]string{"/a.B/C failed=true", "/a.B/S failed=true", "/a.B/C failed=true", "/a.B/C failed=false"},
		got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if p := panicked(func() { observe.UnaryServerInterceptor(nil) }); p == nil {
		t.Error("an interceptor without a control was made")
	}
}

type fakeStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *fakeStream) Context() context.Context { return s.ctx }

func panicked(f func()) (p any) {
	defer func() { p = recover() }()
	f()
	return nil
}
