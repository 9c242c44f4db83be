package specgrpc

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ServiceRegistrar registers services with a gRPC server so that their unary
// methods can be called by speculative callers, and predict. Beside each unary
// method it registers the method's speculative stream; a plain client notices
// nothing. It is safe for concurrent use.
type ServiceRegistrar struct {
	server grpc.ServiceRegistrar
	cfg    serverConfig

	streams map[string]grpc.StreamHandler // speculative ones by name; nobody registers while the server serves

	guards atomic.Pointer[guards]
	asking sync.Mutex // held while they are asked for

	mu       sync.Mutex
	stopping bool
	admitted admitted

	running atomic.Int64 // calls of any kind
	waiting atomic.Int64 // those of them whose streams have brought no Request
	unread  atomic.Int64 // when an undone call last left frames that may not be read, Unix nanoseconds
}

var _ grpc.ServiceRegistrar = (*ServiceRegistrar)(nil)

// Registrar wraps a server that somebody else makes, for use in its place where
// services are registered. Where you make it yourself use NewServer: beside a
// Registrar the server's stream interceptors, its tap handle and GetServiceInfo see
// speculative calls as streams of their own, whose names end with ".spec". Unary
// interceptors run around them as around ordinary calls, with either. Do not wrap an
// xDS-enabled server, whose filters know paths alone.
//
// Registrar panics on options that make no sense, as RegisterService does on a
// service that it cannot serve.
func Registrar(s grpc.ServiceRegistrar, opts ...ServerOption) *ServiceRegistrar {
	cfg := newServerConfig()
	for _, o := range opts {
		o.applyServer(&cfg)
	}
	return newRegistrar(s, cfg)
}

func newRegistrar(s grpc.ServiceRegistrar, cfg serverConfig) *ServiceRegistrar {
	if err := cfg.check(); err != nil {
		panic(err.Error())
	}
	return &ServiceRegistrar{
		server: s, cfg: cfg, streams: make(map[string]grpc.StreamHandler),
		admitted: admitted{calls: make(map[*serverCall]caller), held: make(map[caller]int)},
	}
}

// serverMethod is a unary method as this package serves it.
type serverMethod struct {
	name       string // full
	desc       grpc.MethodDesc
	admitted   bool // it may run for a speculative caller
	staged     bool // its effects are held back: its results are tentative
	replayable bool
	response   protoreflect.FullName // of the response message; empty if unknown
	obeys      atomic.Bool           // its descriptor's handler is known to call its interceptor
}

// watched returns an interceptor that notes that it was called, as long as that matters.
func (m *serverMethod) watched(interceptor grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	if m.obeys.Load() {
		return interceptor
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		m.obeys.Store(true)
		if interceptor == nil {
			return handler(ctx, req)
		}
		return interceptor(ctx, req, info, handler)
	}
}

// RegisterService registers a service's methods and their speculative streams.
func (r *ServiceRegistrar) RegisterService(desc *grpc.ServiceDesc, impl any) {
	own := *desc
	own.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	own.Streams = make([]grpc.StreamDesc, len(desc.Streams))
	for i, sd := range desc.Streams {
		sd.Handler = r.counted(sd.Handler)
		own.Streams[i] = sd
	}
	known := make(map[string]bool)
	for i, md := range desc.Methods {
		name := "/" + desc.ServiceName + "/" + md.MethodName
		known[name] = true
		m := &serverMethod{
			name: name, desc: md,
			admitted:   r.cfg.pure[name] || r.cfg.staged[name] || declaredPure(name),
			staged:     r.cfg.staged[name],
			replayable: r.cfg.allReplayable || r.cfg.replayable[name],
		}
		if d := methodDescriptor(name); d != nil {
			m.response = d.Output().FullName()
		}
		m.obeys.Store(generated(desc.ServiceName, &md))
		own.Methods[i] = r.unaryDesc(m)
		stream := grpc.StreamDesc{
			StreamName: md.MethodName + specSuffix, ClientStreams: true, ServerStreams: true,
			Handler: r.counted(func(srv any, ss grpc.ServerStream) error {
				growStack(int(r.running.Load() & 1))
				return r.serve(m, srv, ss)
			}),
		}
		r.streams[name+specSuffix] = stream.Handler
		own.Streams = append(own.Streams, stream)
	}
	for _, name := range r.cfg.named() {
		if strings.HasPrefix(name, "/"+desc.ServiceName+"/") && !known[name] {
			panic(fmt.Sprintf("specgrpc: an option names %s, but the service has no such unary method", name))
		}
	}
	r.server.RegisterService(&own, impl)
}

// divert is the outermost stream interceptor of a Server: it takes speculative
// calls, which are no streams to the interceptors that follow.
func (r *ServiceRegistrar) divert(
	srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler,
) error {
	if own, ok := r.streams[info.FullMethod]; ok {
		handler = own
	}
	return handler(srv, ss)
}

// counted has a stream's handler counted among what runs.
func (r *ServiceRegistrar) counted(handler grpc.StreamHandler) grpc.StreamHandler {
	return func(srv any, ss grpc.ServerStream) error {
		r.running.Add(1)
		defer r.running.Add(-1)
		return handler(srv, ss)
	}
}

// unaryDesc returns what is registered for plain calls: the method itself, with
// its handler run as a task if it may run again.
func (r *ServiceRegistrar) unaryDesc(m *serverMethod) grpc.MethodDesc {
	handler := m.desc.Handler
	if m.replayable {
		handler = r.replayableHandler(m)
	}
	return grpc.MethodDesc{MethodName: m.desc.MethodName, Handler: func(srv any, ctx context.Context, dec func(any) error,
		interceptor grpc.UnaryServerInterceptor) (any, error) {
		if err := r.learn(ctx, interceptor); err != nil {
			return nil, err
		}
		r.running.Add(1)
		defer r.running.Add(-1)
		return handler(srv, ctx, dec, m.watched(interceptor))
	}}
}

type methodHandler = func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (
	any, error)

// replayableHandler runs a method's handler as a task, inside the server's
// interceptors.
func (r *ServiceRegistrar) replayableHandler(m *serverMethod) methodHandler {
	return func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		return m.desc.Handler(srv, ctx, dec, func(ctx context.Context, req any, info *grpc.UnaryServerInfo,
			handler grpc.UnaryHandler) (any, error) {
			task := func(ctx context.Context, req any) (any, error) { return r.runTask(ctx, m, req, handler) }
			if interceptor == nil {
				return task(ctx, req)
			}
			return interceptor(ctx, req, info, task)
		})
	}
}

// copyRequest gives each run of a handler its own request.
func copyRequest(req any) any {
	if m, ok := req.(proto.Message); ok {
		return proto.Clone(m)
	}
	return req
}
