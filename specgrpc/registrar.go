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

	mu       sync.Mutex
	stopping bool
	calls    map[*serverCall]struct{} // speculative ones

	running atomic.Int64 // calls of any kind
	unread  atomic.Int64 // when an undone call last left frames that may not be read, Unix nanoseconds
}

var _ grpc.ServiceRegistrar = (*ServiceRegistrar)(nil)

// Registrar wraps a server, for use in its place:
//
//	pb.RegisterShopServer(specgrpc.Registrar(server, specgrpc.UnaryInterceptors(auth)), shop)
//
// The server's unary interceptors must be given once more with
// UnaryInterceptors, or NoInterceptors: they run around speculative calls too,
// with the method's own name. Registrar panics without either, and on options
// that make no sense, as RegisterService does on a service that it cannot serve.
func Registrar(s grpc.ServiceRegistrar, opts ...ServerOption) *ServiceRegistrar {
	r := &ServiceRegistrar{server: s, cfg: newServerConfig(), calls: make(map[*serverCall]struct{})}
	for _, o := range opts {
		o.apply(&r.cfg)
	}
	if err := r.cfg.check(); err != nil {
		panic(err.Error())
	}
	return r
}

// serverMethod is a unary method as this package serves it.
type serverMethod struct {
	name       string // full
	desc       grpc.MethodDesc
	admitted   bool // it may run for a speculative caller
	staged     bool // its effects are held back: its results are tentative
	replayable bool
	response   protoreflect.FullName // of the response message; empty if unknown
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
		own.Methods[i] = r.unaryDesc(m)
		own.Streams = append(own.Streams, grpc.StreamDesc{
			StreamName: md.MethodName + specSuffix, ClientStreams: true, ServerStreams: true,
			Handler: r.counted(func(srv any, ss grpc.ServerStream) error { return r.serve(m, srv, ss) }),
		})
	}
	for _, name := range r.cfg.named() {
		if strings.HasPrefix(name, "/"+desc.ServiceName+"/") && !known[name] {
			panic(fmt.Sprintf("specgrpc: an option names %s, but the service has no such unary method", name))
		}
	}
	r.server.RegisterService(&own, impl)
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
	return grpc.MethodDesc{MethodName: m.desc.MethodName, Handler: func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		r.running.Add(1)
		defer r.running.Add(-1)
		return handler(srv, ctx, dec, interceptor)
	}}
}

type methodHandler = func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

// replayableHandler runs a method's handler as a task, inside the server's
// interceptors.
func (r *ServiceRegistrar) replayableHandler(m *serverMethod) methodHandler {
	return func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		return m.desc.Handler(srv, ctx, dec, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
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
