package randtest

import (
	"context"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/specgrpc"
)

// Mutation is a rule removed. The zero Mutation removes none.
type Mutation struct {
	Name   string
	Faults bool // only faults show it

	client      func(conn grpc.ClientConnInterface) grpc.ClientConnInterface
	intercept   grpc.UnaryClientInterceptor // innermost of the user's
	stream      grpc.StreamServerInterceptor
	unguarded   bool // no unary interceptors on the sibling path
	options     []specgrpc.ServerOption
	configure   func(m methods, cfg *foresay.SiteConfig)
	stop        func(e *epoch)
	hooksAtOnce bool
	noBarrier   bool
}

func (m Mutation) wrapClient(conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	if m.client == nil {
		return conn
	}
	return m.client(conn)
}

func (m Mutation) clientInterceptor() grpc.UnaryClientInterceptor {
	if m.intercept != nil {
		return m.intercept
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
}

func (m Mutation) streamInterceptor() grpc.StreamServerInterceptor {
	if m.stream != nil {
		return m.stream
	}
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		return handler(srv, ss)
	}
}

func (m Mutation) interceptors(enter, authorize grpc.UnaryServerInterceptor) specgrpc.ServerOption {
	if m.unguarded {
		return specgrpc.UnaryInterceptors(enter)
	}
	return specgrpc.UnaryInterceptors(enter, authorize)
}

func (m Mutation) serverOptions() []specgrpc.ServerOption { return m.options }

func (m Mutation) site(method methods, cfg *foresay.SiteConfig) {
	if m.configure != nil {
		m.configure(method, cfg)
	}
}

func (m Mutation) gracefulStop(e *epoch) {
	switch {
	case m.stop != nil:
		m.stop(e)
	case e.reg == nil:
		e.grpc.GracefulStop()
	default:
		specgrpc.GracefulStop(e.grpc, e.reg)
	}
}

// onCommit is foresay.OnCommit.
func (w *world) onCommit(ctx context.Context, f func()) {
	if w.mutation.hooksAtOnce {
		f()
		return
	}
	foresay.OnCommit(ctx, f)
}

// barrier is foresay.Barrier.
func (w *world) barrier(ctx context.Context) error {
	if w.mutation.noBarrier {
		return nil
	}
	return foresay.Barrier(ctx)
}
