package interop

import (
	"context"
	"net"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// intercepted is a server's unary interceptor: it tells in a trailer which
// method it saw.
func intercepted(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := grpc.SetTrailer(ctx, metadata.Pairs("x-intercepted", info.FullMethod)); err != nil {
		return nil, err
	}
	return handler(ctx, req)
}

// serve serves what register registers, with s's options, over the loopback
// interface.
func serve(t *testing.T, s *kv, register func(*grpc.Server), opts ...grpc.ServerOption) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(append(s.options(), opts...), grpc.WaitForHandlers(true),
		grpc.UnaryInterceptor(intercepted))...)
	register(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return l.Addr().String()
}

// servePlain serves s as any server in Go does.
func servePlain(t *testing.T, s *kv) (addr string) {
	t.Helper()
	return serve(t, s, func(server *grpc.Server) { kvpb.RegisterTestKVServer(server, s) })
}

// serveAware serves impl, which keeps its data in s, through a Registrar.
func serveAware(t *testing.T, s *kv, impl kvpb.TestKVServer, opts ...specgrpc.ServerOption) (addr string) {
	t.Helper()
	return serve(t, s, func(server *grpc.Server) {
		kvpb.RegisterTestKVServer(specgrpc.Registrar(server, opts...), impl)
	})
}

func sorted(lines []string) []string { return slices.Sorted(slices.Values(lines)) }
