package specgrpc

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/tap"
)

// Server is a grpc.Server whose unary methods can be called by speculative
// callers, and predict. What guards a method on a grpc.Server guards it here: a
// speculative call of a method passes through the server's unary interceptors, as
// an ordinary call does, under the method's own name; stream interceptors see
// streams, and no calls. It is safe for concurrent use.
type Server struct {
	server    *grpc.Server
	registrar *ServiceRegistrar
}

var _ grpc.ServiceRegistrar = (*Server)(nil)

// NewServer is grpc.NewServer for a server that takes calls of speculative
// callers. It takes grpc.ServerOptions and this package's in any order:
//
//	server := specgrpc.NewServer(grpc.ChainUnaryInterceptor(auth), specgrpc.Stages(pb.Shop_Buy_FullMethodName))
//	pb.RegisterShopServer(server, shop)
//
// It panics on options that make no sense, and on two that would see calls under
// the names of their streams, and have another form: grpc.StreamInterceptor
// (grpc.ChainStreamInterceptor) and grpc.InTapHandle (InTapHandle).
func NewServer(opts ...grpc.ServerOption) *Server {
	cfg := newServerConfig()
	var plain []grpc.ServerOption
	for _, o := range opts {
		if own, ok := o.(ServerOption); ok {
			own.applyServer(&cfg)
		} else {
			plain = append(plain, o)
		}
	}
	s := new(Server)
	own := []grpc.ServerOption{grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo,
		handler grpc.StreamHandler) error {
		return s.registrar.divert(srv, ss, info, handler)
	})}
	refuseHidden(own[0], plain)
	if cfg.tap != nil {
		own = append(own, grpc.InTapHandle(underOwnName(cfg.tap)))
	}
	s.server = grpc.NewServer(append(own, plain...)...)
	s.registrar = newRegistrar(s.server, cfg)
	return s
}

// refuseHidden panics if there is an option among plain that would see calls under
// the names of their streams. grpc refuses a second option of these kinds, whose
// users cannot be seen otherwise.
func refuseHidden(streams grpc.ServerOption, plain []grpc.ServerOption) {
	tried := func(own ...grpc.ServerOption) (refused string) {
		defer func() {
			if p := recover(); p != nil {
				refused = fmt.Sprint(p)
			}
		}()
		grpc.NewServer(append(own, plain...)...).Stop()
		return ""
	}
	if refused := tried(); refused != "" {
		panic(refused) // what is wrong with them is grpc's to say
	}
	tap := grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) { return ctx, nil })
	for _, try := range []struct {
		own          grpc.ServerOption
		its, instead string
	}{
		{streams, "grpc.StreamInterceptor", "grpc.ChainStreamInterceptor"},
		{tap, "grpc.InTapHandle", "specgrpc.InTapHandle"},
	} {
		switch refused := tried(try.own); {
		case strings.Contains(refused, "already set"):
			panic(fmt.Sprintf("specgrpc: NewServer: %s would see speculative calls under the names of their streams, %s: use "+
				"%s (%s)",
				try.its, "/pkg.Service/Method"+specSuffix, try.instead, refused))
		case refused != "":
			panic(refused)
		}
	}
}

// underOwnName has h see a speculative call under the name of its method.
func underOwnName(h tap.ServerInHandle) tap.ServerInHandle {
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		own := *info
		own.FullMethodName = strings.TrimSuffix(own.FullMethodName, specSuffix)
		return h(ctx, &own)
	}
}

// RegisterService registers a service; generated code calls it.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s.registrar.RegisterService(desc, impl)
}

// GetServiceInfo returns the services with their methods, for package reflection.
func (s *Server) GetServiceInfo() map[string]grpc.ServiceInfo {
	all := s.server.GetServiceInfo()
	for name, service := range all {
		var methods []grpc.MethodInfo
		for _, m := range service.Methods {
			if !strings.HasSuffix(m.Name, specSuffix) {
				methods = append(methods, m)
			}
		}
		service.Methods = methods
		all[name] = service
	}
	return all
}

// Serve takes connections from lis, as grpc.Server.Serve does.
func (s *Server) Serve(lis net.Listener) error { return s.server.Serve(lis) }

// ServeHTTP serves a call that came to an http.Server, as grpc.Server.ServeHTTP does.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.server.ServeHTTP(w, r) }

// Stop closes all connections at once. What speculative callers have not confirmed
// is undone.
func (s *Server) Stop() { s.server.Stop() }

// GracefulStop is the function GracefulStop for this server.
func (s *Server) GracefulStop() { GracefulStop(s.server, s.registrar) }

// HalfOpen returns how many calls of speculative callers are under way.
func (s *Server) HalfOpen() int { return s.registrar.HalfOpen() }

// Stats returns what became of calls of speculative callers.
func (s *Server) Stats() ServerStats { return s.registrar.Stats() }
