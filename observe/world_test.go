package observe_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	bffpb "github.com/foresay/foresay/api/foresay/bff/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/observe"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	getUser    = bffpb.Users_GetUser_FullMethodName
	recordView = bffpb.Users_RecordView_FullMethodName
	check      = bffpb.Permissions_Check_FullMethodName
	quote      = bffpb.Pricing_Quote_FullMethodName
	front      = kvpb.TestKV_Get_FullMethodName

	rtt = 10 * time.Millisecond // between any two sites
)

// shop is the services behind a page, in a bubble of virtual time: users answer after 15 ms,
// permissions after 10, prices after 20.
type shop struct {
	bffpb.UnimplementedUsersServer
	bffpb.UnimplementedPermissionsServer
	bffpb.UnimplementedPricingServer
	t       *testing.T
	net     *shape.Network
	refuses string // a plan that has no price
	seed    uint64 // spreads the times of the services, if it is not 0

	mu     sync.Mutex
	visits uint64
	plan   string
	calls  []string // with what the server saw of them
}

func inShop(t *testing.T, f func(s *shop)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{t: t, net: shape.NewNetwork(wan.Uniform(rtt, "client", "front", "back"), 1), plan: "free"}
		t.Cleanup(func() { s.net.Close() })
		f(s)
	})
}

// handled notes a call with what distinguishes it.
func (s *shop) handled(ctx context.Context, what string) string {
	md, _ := metadata.FromIncomingContext(ctx)
	md.Delete("content-type")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf("%s %v", what, md))
	return s.plan
}

// become begins another visit, of a user with this plan.
func (s *shop) become(plan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
	s.visits++
}

// work takes a service some time, or with a seed between none and four times that, the same for all
// calls of a visit.
func (s *shop) work(service uint64, d time.Duration) {
	if s.seed != 0 {
		s.mu.Lock()
		chance := rand.New(rand.NewPCG(s.seed, s.visits<<8|service))
		s.mu.Unlock()
		d = time.Duration(4 * chance.Float64() * chance.Float64() * float64(d))
	}
	time.Sleep(d)
}

func (s *shop) handledCalls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.calls...)
}

func (s *shop) GetUser(ctx context.Context, r *bffpb.GetUserRequest) (*bffpb.GetUserResponse, error) {
	plan := s.handled(ctx, "user "+r.GetUser())
	s.work(1, 5*time.Millisecond)
	return &bffpb.GetUserResponse{Plan: plan}, nil
}

func (s *shop) RecordView(ctx context.Context, r *bffpb.RecordViewRequest) (*bffpb.RecordViewResponse, error) {
	s.handled(ctx, "view "+r.GetUser())
	return &bffpb.RecordViewResponse{}, nil
}

func (s *shop) Check(ctx context.Context, r *bffpb.CheckRequest) (*bffpb.CheckResponse, error) {
	s.handled(ctx, "check "+r.GetPlan())
	if s.seed != 0 {
		s.work(2, 8*time.Millisecond)
	}
	return &bffpb.CheckResponse{Allowed: true}, nil
}

func (s *shop) Quote(ctx context.Context, r *bffpb.QuoteRequest) (*bffpb.QuoteResponse, error) {
	s.handled(ctx, "quote "+r.GetPlan())
	if r.GetPlan() == s.refuses {
		return nil, status.Error(codes.FailedPrecondition, "no price for the plan "+r.GetPlan())
	}
	s.work(3, 10*time.Millisecond)
	return &bffpb.QuoteResponse{PriceCents: uint32(len(r.GetPlan()))}, nil
}

func (s *shop) serve(site wan.Site, register func(s *grpc.Server), opts ...grpc.ServerOption) string {
	s.t.Helper()
	l, err := s.net.Listen(site)
	if err != nil {
		s.t.Fatal(err)
	}
	server := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	register(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	s.t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return l.Addr().String()
}

// back starts the services behind the page, which speak plain gRPC.
func (s *shop) back() string {
	return s.serve("back", func(server *grpc.Server) { s.register(server) })
}

// registered is back for services that take calls on guesses.
func (s *shop) registered() string {
	return s.serve("back", func(server *grpc.Server) { s.register(specgrpc.Registrar(server)) })
}

func (s *shop) register(r grpc.ServiceRegistrar) {
	bffpb.RegisterUsersServer(r, s)
	bffpb.RegisterPermissionsServer(r, s)
	bffpb.RegisterPricingServer(r, s)
}

func (s *shop) dialOptions(site wan.Site) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithContextDialer(s.net.DialContext(site)),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	}
}

// dial connects two sites by a connection of specgrpc's.
func (s *shop) dial(from wan.Site, addr string, opts ...grpc.DialOption) *specgrpc.ClientConn {
	s.t.Helper()
	cc, err := specgrpc.NewClient("passthrough:///"+addr, append(s.dialOptions(from), opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cc.Close() })
	cc.Connect()
	return cc
}

// plain connects two sites by a connection of grpc's own.
func (s *shop) plain(from wan.Site, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	s.t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, append(s.dialOptions(from), opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cc.Close() })
	cc.Connect()
	return cc
}

// watched makes a collector and its control.
func watched(t testing.TB, cfg control.Config) (*observe.Collector, *control.Control) {
	t.Helper()
	c, err := observe.NewCollector(observe.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.OnRequest = append(cfg.OnRequest, c.Record)
	ctl, err := control.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c, ctl
}

// predictors are the last values of the three reads.
func predictors() []control.CallSiteConfig {
	return []control.CallSiteConfig{
		{Name: getUser, Predictors: []control.Predictor{predict.LastValue((*bffpb.GetUserRequest).GetUser, 0)}},
		{Name: check, Predictors: []control.Predictor{predict.LastValue((*bffpb.CheckRequest).GetPlan, 0)}},
		{Name: quote, Predictors: []control.Predictor{predict.LastValue((*bffpb.QuoteRequest).GetPlan, 0)}},
	}
}

// page is an ordinary handler, which calls one service after the other.
type page struct {
	kvpb.UnimplementedTestKVServer
	back grpc.ClientConnInterface
	wrap func(ctx context.Context, f func(ctx context.Context) (*kvpb.GetResponse, error)) (*kvpb.GetResponse, error)
	view bool // records a view before the price
}

func (p *page) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if p.wrap == nil {
		return p.show(ctx, r.GetKey())
	}
	return p.wrap(ctx, func(ctx context.Context) (*kvpb.GetResponse, error) { return p.show(ctx, r.GetKey()) })
}

func (p *page) show(ctx context.Context, user string) (*kvpb.GetResponse, error) {
	u, err := bffpb.NewUsersClient(p.back).GetUser(ctx, &bffpb.GetUserRequest{User: user})
	if err != nil {
		return nil, err
	}
	if _, err := bffpb.NewPermissionsClient(p.back).Check(ctx, &bffpb.CheckRequest{Plan: u.GetPlan()}); err != nil {
		return nil, err
	}
	if p.view {
		if _, err := bffpb.NewUsersClient(p.back).RecordView(ctx, &bffpb.RecordViewRequest{User: user}); err != nil {
			return nil, err
		}
	}
	q, err := bffpb.NewPricingClient(p.back).Quote(ctx, &bffpb.QuoteRequest{Plan: u.GetPlan()})
	if err != nil {
		return nil, err
	}
	return &kvpb.GetResponse{Value: fmt.Sprint(u.GetPlan(), q.GetPriceCents())}, nil
}

// visit starts the page's server and has it visited n times, the user's plan being another every
// tenth time. It returns what the visitor saw.
func (s *shop) visit(n int, p *page, interceptors ...grpc.UnaryServerInterceptor) (seen []string) {
	s.t.Helper()
	addr := s.serve("front", func(server *grpc.Server) {
		kvpb.RegisterTestKVServer(server, p)
	}, grpc.ChainUnaryInterceptor(interceptors...))
	visitor := kvpb.NewTestKVClient(s.plain("client", addr))
	// The connections are there before it begins.
	time.Sleep(time.Second)
	for i := range n {
		s.become([]string{"free", "gold"}[i%10/9])
		r, err := visitor.Get(s.t.Context(), &kvpb.GetRequest{Key: "ada"})
		seen = append(seen, fmt.Sprint(r.GetValue(), err))
		time.Sleep(100 * time.Millisecond)
	}
	return seen
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
