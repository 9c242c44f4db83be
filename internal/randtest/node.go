package randtest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// node is a server, through its crashes.
type node struct {
	w      *world
	index  int
	server *kvServer

	mu   sync.Mutex
	now  *life
	past []*life
}

// life is the time of a server's process.
type life struct {
	dead    atomic.Bool
	server  server
	conns   []*connection
	clients []kvpb.TestKVClient // by server; nil where this server calls nobody
	served  chan struct{}
}

// server is a server's process, whatever it was made of.
type server interface {
	grpc.ServiceRegistrar
	Serve(l net.Listener) error
	Stop()
	GracefulStop()
}

// registered is a grpc.Server whose services are registered with a registrar.
type registered struct {
	*grpc.Server
	*specgrpc.ServiceRegistrar
}

func (r registered) RegisterService(desc *grpc.ServiceDesc, impl any) {
	r.ServiceRegistrar.RegisterService(desc, impl)
}

func (r registered) GracefulStop() { specgrpc.GracefulStop(r.Server, r.ServiceRegistrar) }

func newNode(w *world, index int) *node {
	return &node{w: w, index: index, server: newServer(w, index)}
}

// start starts the server's process.
func (n *node) start() error {
	e := &life{clients: make([]kvpb.TestKVClient, n.w.sc.knobs.Servers), served: make(chan struct{})}
	for i := n.index + 1; i < n.w.sc.knobs.Servers; i++ {
		c, err := n.w.connect(siteOf(n.index), i)
		if err != nil {
			return err
		}
		e.conns = append(e.conns, c)
		e.clients[i] = kvpb.NewTestKVClient(n.w.mutation.wrapClient(n.w, c.conn))
	}
	l, err := n.w.net.Listen(siteOf(n.index))
	if err != nil {
		return err
	}
	enter := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(context.WithValue(ctx, lifeKey{}, e), req)
		if m, ok := resp.(proto.Message); ok && err == nil {
			n.w.journal.serve(pair(fmt.Sprintf("%T", req), req.(proto.Message), m))
		}
		return resp, err
	}
	opts := []grpc.ServerOption{
		grpc.WaitForHandlers(true), grpc.ChainUnaryInterceptor(enter, n.w.mutation.authorize(n.server.authorize)),
		grpc.ChainStreamInterceptor(n.w.mutation.streamInterceptor(), n.w.strikes.watch(n.index), n.w.pretending),
	}
	e.server = n.serve(opts)
	kvpb.RegisterTestKVServer(e.server, n.server)
	go func() {
		defer close(e.served)
		_ = e.server.Serve(l) // ends when the process does
	}()
	n.mu.Lock()
	n.now = e
	n.mu.Unlock()
	return nil
}

// serve makes the server, with these options and those of the world.
func (n *node) serve(opts []grpc.ServerOption) server {
	k := n.w.sc.knobs
	if k.Keepalive {
		opts = append(opts, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second}))
	}
	if k.Streams > 0 {
		opts = append(opts, grpc.MaxConcurrentStreams(k.Streams))
	}
	if k.RefuseLate && k.Plain[n.index] {
		opts = append(opts, grpc.UnknownServiceHandler(n.refuseLate))
	}
	if k.Options {
		opts = append(opts, grpc.StatsHandler(seals{}))
	}
	switch {
	case n.w.plain || k.Plain[n.index]:
		return grpc.NewServer(opts...)
	case n.w.drawn(50, "server", serverName(n.index)):
		for _, o := range n.options() {
			opts = append(opts, o)
		}
		return specgrpc.NewServer(opts...)
	}
	s := grpc.NewServer(opts...)
	return registered{s, specgrpc.Registrar(s, n.options()...)}
}

// refuseLate does what grpc does with a method that it does not know, after a while.
func (n *node) refuseLate(_ any, stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	late := n.w.sc.chance.below(60_000, append([]string{"refuse late"}, md.Get("at")...)...)
	select {
	case <-time.After(time.Duration(late) * time.Microsecond):
	case <-stream.Context().Done():
	}
	return status.Error(codes.Unimplemented, "unknown method")
}

func (n *node) options() []specgrpc.ServerOption {
	k := n.w.sc.knobs
	opts := []specgrpc.ServerOption{
		specgrpc.WithTaskLimits(k.HandlerLimit), specgrpc.Stages(names(k.Stages[n.index])...),
		specgrpc.Replayable(names(k.Replayable[n.index])...),
	}
	if k.HalfOpen[1] > 0 {
		opts = append(opts, specgrpc.WithMaxHalfOpenCalls(k.HalfOpen[1]))
	}
	if n.w.logger != nil {
		opts = append(opts, specgrpc.WithServerLogger(n.w.logger.With("server", serverName(n.index))))
	}
	return append(opts, n.w.mutation.options...)
}

// names returns the full names of methods.
func names(set methods) []string {
	var out []string
	for _, m := range []struct {
		method methods
		name   string
	}{
		{methodPut, kvpb.TestKV_Put_FullMethodName}, {methodAppend, kvpb.TestKV_Append_FullMethodName},
		{methodRelayWrite, kvpb.TestKV_RelayWrite_FullMethodName}, {methodRelayRead, kvpb.TestKV_RelayRead_FullMethodName},
	} {
		if set&m.method != 0 {
			out = append(out, m.name)
		}
	}
	return out
}

// crash ends the server's process at once: nothing that it still does counts.
func (n *node) crash() {
	n.mu.Lock()
	e := n.now
	n.mu.Unlock()
	if e == nil {
		return // it is down already
	}
	e.dead.Store(true)
	n.w.net.Crash(siteOf(n.index))
	n.end(e)
}

// end stops a process's server and waits for it.
func (n *node) end(e *life) {
	for _, c := range e.conns {
		c.close()
	}
	e.server.Stop()
	<-e.served
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.now == e {
		n.past = append(n.past, e)
		n.now = nil
	}
}

// drain stops the server's process gracefully.
func (n *node) drain() {
	n.mu.Lock()
	e := n.now
	n.mu.Unlock()
	if e == nil {
		return
	}
	e.server.GracefulStop()
	n.end(e)
}

// restart starts the process again, unless that happened already.
func (n *node) restart() error {
	n.mu.Lock()
	e := n.now
	n.mu.Unlock()
	if e != nil {
		return nil
	}
	return n.start()
}

func (n *node) stop() {
	n.mu.Lock()
	e := n.now
	n.mu.Unlock()
	if e != nil {
		n.end(e)
	}
}

// check looks for what is left of speculation.
func (n *node) check() {
	n.mu.Lock()
	defer n.mu.Unlock()
	lives := n.past
	if n.now != nil {
		lives = append(lives[:len(lives):len(lives)], n.now)
	}
	for _, e := range lives {
		if left, ok := e.server.(interface{ HalfOpen() int }); ok && left.HalfOpen() != 0 {
			n.w.journal.brokenRule("server %s has %d half-open calls left", serverName(n.index), left.HalfOpen())
		}
		for _, c := range e.conns {
			c.check(n.w.journal, "server "+serverName(n.index))
		}
	}
}

// connect makes a connection from a site to a server.
func (w *world) connect(from wan.Site, server int) (*connection, error) {
	target := "passthrough:///" + serverName(server) + ":1"
	opts := []grpc.DialOption{
		grpc.WithContextDialer(w.net.DialContext(from)), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(introduce), grpc.WithPerRPCCredentials(sessions{}),
	}
	opts = append(opts, w.dialOptions(target, string(from)+" to "+serverName(server))...)
	if w.sc.knobs.Keepalive {
		opts = append(opts, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second,
			Timeout: 3 * time.Second}))
	}
	if w.plain {
		cc, err := grpc.NewClient(target, opts...)
		if err != nil {
			return nil, err
		}
		return &connection{conn: cc, close: cc.Close, state: cc}, nil
	}
	observe := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		err := invoker(ctx, method, req, reply, cc, opts...)
		if err == nil {
			w.journal.carry(pair(fmt.Sprintf("%T", req), req.(proto.Message), reply.(proto.Message)))
		}
		return err
	}
	opts = append(opts, grpc.WithChainUnaryInterceptor(observe, w.mutation.clientInterceptor()),
		specgrpc.WithCallSites(w.sites()...))
	k := w.sc.knobs
	if k.HalfOpen[0] > 0 {
		opts = append(opts, specgrpc.WithMaxHalfOpen(k.HalfOpen[0]))
	}
	if k.Lease > 0 {
		opts = append(opts, specgrpc.WithLease(k.Lease))
	}
	if w.logger != nil {
		opts = append(opts, specgrpc.WithLogger(w.logger.With("from", string(from))))
	}
	ctl, err := control.New(control.Config{Budget: -1}) // most guesses are wrong here
	if err != nil {
		return nil, err
	}
	cc, err := specgrpc.NewClient(target, append(opts, specgrpc.WithMode(control.ModeOn), specgrpc.WithControl(ctl))...)
	if err != nil {
		return nil, err
	}
	return &connection{conn: cc, close: cc.Close, state: cc, halfOpen: cc.HalfOpen, sites: ctl.CallSites}, nil
}

// method is what the world knows of a method.
type method struct {
	bit     methods // 0 for Get
	name    string
	request string // its type
	blank   proto.Message
}

func (w *world) methods() []method {
	get, put, app, relay := &kvpb.GetRequest{}, &kvpb.PutRequest{}, &kvpb.AppendRequest{}, &kvpb.RelayRequest{}
	return []method{
		{0, kvpb.TestKV_Get_FullMethodName, fmt.Sprintf("%T", get), &kvpb.GetResponse{}},
		{methodPut, kvpb.TestKV_Put_FullMethodName, fmt.Sprintf("%T", put), &kvpb.PutResponse{}},
		{methodAppend, kvpb.TestKV_Append_FullMethodName, fmt.Sprintf("%T", app), &kvpb.AppendResponse{}},
		{methodRelayRead, kvpb.TestKV_RelayRead_FullMethodName, fmt.Sprintf("%T", relay), &kvpb.RelayResponse{}},
		{methodRelayWrite, kvpb.TestKV_RelayWrite_FullMethodName, fmt.Sprintf("%T", relay), &kvpb.RelayResponse{}},
	}
}

// sites configures the methods.
func (w *world) sites() []control.CallSiteConfig {
	k := w.sc.knobs
	var out []control.CallSiteConfig
	for _, m := range w.methods() {
		cfg := control.CallSiteConfig{
			Name: m.name, IgnoreMetadata: []string{"at"}, Ordered: k.Ordered && !(w.sc.clock && m.bit == methodRelayRead),
			ServerPredictions: k.ServerPredictions,
			Predictors:        []control.Predictor{&oracleOfClients{w, m.request, m.blank}},
		}
		cfg.SendPlainly = k.SendPlainly && m.bit == 0 // what a relay reads its predictors would learn
		writes := m.bit&(methodPut|methodAppend|methodRelayWrite) != 0
		if writes && k.ClientStages&m.bit != 0 {
			cfg.Effect = control.EffectStaged
		}
		if cfg.Mode = k.Unguessed; writes && k.Off {
			cfg.Mode = control.ModeOff
		}
		if k.Conflict && m.bit&(methodRelayRead|methodRelayWrite) == 0 {
			cfg.ConflictKey = func(r any) string { return r.(interface{ GetKey() string }).GetKey() }
		}
		if k.OwnKey {
			cfg.Key = func(r any) []byte { return []byte("own " + bytesOf(r.(proto.Message))) }
		}
		if k.Loose && m.bit == 0 {
			cfg.Equal = func(p, a any) bool {
				return p.(*kvpb.GetResponse).GetValue() == a.(*kvpb.GetResponse).GetValue()
			}
		}
		w.mutation.site(m.bit, &cfg)
		out = append(out, cfg)
	}
	return out
}

// Half of the worlds have a service config: of methods, of the service or of all. In
// those in which it retries, handlers fail now and then, and gRPC makes up for it:
// sequential code never hears of it. Not where the network fails too, since what may
// have taken effect is then sent again, as the config says.

// retries reports whether the world's service config retries.
func (sc *Scenario) retries() bool {
	return sc.retried || !sc.Faults && sc.chance.percent(50, "service config") && sc.chance.percent(60, "retries")
}

// serviceConfig returns the world's, or "".
func (sc *Scenario) serviceConfig() string {
	if !sc.retried && !sc.chance.percent(50, "service config") {
		return ""
	}
	const service = `"service": "foresay.testkv.v1.TestKV"`
	names := []string{
		"{}", "{" + service + "}",
		"{" + service + `, "method": "Get"}, {` + service + `, "method": "Put"}, {` + service + `, "method": "Append"}, {` +
			service + `, "method": "RelayRead"}, {` + service + `, "method": "RelayWrite"}`,
	}
	var says []string
	if sc.retries() {
		says = append(says, `"retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`)
	}
	for _, field := range []string{`"timeout": "25s"`, `"waitForReady": true`, `"waitForReady": false`,
		`"maxRequestMessageBytes": 100000`, `"maxResponseMessageBytes": 100000`} {
		name, _, _ := strings.Cut(field, ":")
		if sc.chance.percent(40, "field", field) && !strings.Contains(strings.Join(says, ""), name) {
			says = append(says, field)
		}
	}
	if len(says) == 0 {
		return ""
	}
	name := names[sc.chance.below(len(names), "level")]
	return fmt.Sprintf(`{"methodConfig": [{"name": [%s], %s}]}`, name, strings.Join(says, ", "))
}

// failures counts how often handlers failed, by place.
type failures struct {
	mu sync.Mutex
	at map[string]int
}

// failing returns an error for the first attempts at some places, if gRPC retries.
func (s *kvServer) failing(in *invocation) error {
	w := s.w
	often := 20
	if w.sc.retried {
		often = 50
	}
	if !w.sc.retries() || !w.sc.chance.percent(often, "fails", in.at) {
		return nil
	}
	w.failures.mu.Lock()
	defer w.failures.mu.Unlock()
	if w.failures.at == nil {
		w.failures.at = make(map[string]int)
	}
	if w.failures.at[in.at] > w.sc.chance.below(3, "failures", in.at) {
		return nil
	}
	w.failures.at[in.at]++
	return status.Error(codes.Unavailable, "try again")
}
