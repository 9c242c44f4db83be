package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// errPanic is what a request ended with whose handler panicked. The panic itself goes on.
var errPanic = errors.New("observe: the handler panicked")

// UnaryServerInterceptor begins a request for each unary call that a server gets, named by its full
// method, and ends it with the handler's error. It should be the outermost but for what puts spans
// into contexts. On a server of specgrpc.NewServer it runs around speculative calls too: one whose
// caller took it back is no request and does not count.
//
// The request's id, which decides the side of a canary, is the trace id of the context's
// OpenTelemetry span, else that of an incoming traceparent header, else an incoming x-request-id.
func UnaryServerInterceptor(ctl *control.Control) grpc.UnaryServerInterceptor {
	mustHave(ctl)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, r := ctl.Begin(ctx, info.FullMethod, requestID(ctx, incoming(ctx)))
		err := errPanic
		defer func() { end(ctx, r, err) }()
		var response any
		response, err = handler(ctx, req)
		return response, err
	}
}

// StreamServerInterceptor is UnaryServerInterceptor for streams: a stream is one request, until its
// handler returns.
func StreamServerInterceptor(ctl *control.Control) grpc.StreamServerInterceptor {
	mustHave(ctl)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if isSpeculative(info.FullMethod) {
			return handler(srv, stream)
		}
		ctx := stream.Context()
		ctx, r := ctl.Begin(ctx, info.FullMethod, requestID(ctx, incoming(ctx)))
		err := errPanic
		defer func() { end(ctx, r, err) }()
		err = handler(srv, &requestStream{stream, ctx})
		return err
	}
}

// isSpeculative tells that a stream is specgrpc's, which carries a unary call for a speculative
// caller: the interceptors of unary calls run within it.
func isSpeculative(fullMethod string) bool { return strings.HasSuffix(fullMethod, ".spec") }

// end ends a request, once its caller's word is known if it has a speculative one: a request that
// was made for a guess that turned out wrong is never ended, so that it counts nowhere.
func end(ctx context.Context, r *control.Request, err error) {
	r.Answered()
	if !specgrpc.AfterWord(ctx, func(confirmed bool) {
		if confirmed {
			r.End(err)
		}
	}) {
		r.End(err)
	}
}

type requestStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *requestStream) Context() context.Context { return s.ctx }

func incoming(ctx context.Context) func(name string) []string {
	md, _ := metadata.FromIncomingContext(ctx)
	return md.Get
}

func mustHave(ctl *control.Control) {
	if ctl == nil {
		panic(fmt.Sprintf("observe: the %T is nil", ctl))
	}
}
