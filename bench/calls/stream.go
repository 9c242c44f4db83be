package calls

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"

	benchv1 "github.com/foresay/foresay/api/foresay/bench/v1"
)

// grpcStreamStack is plain grpc-go, with each call over a stream of its own on which the
// answer comes twice: what the messages of a server's prediction cost without Foresay.
func grpcStreamStack() stack {
	s := grpcStack()
	s.name = "grpc-stream"
	newServer := s.newServer
	s.newServer = func(opts ...grpc.ServerOption) serving {
		out := newServer(opts...)
		out.registrar = streaming{out.server}
		return out
	}
	s.dial = func(target string, opts ...grpc.DialOption) (conn, error) {
		cc, err := grpc.NewClient(target, opts...)
		return streamConn{cc}, err
	}
	return s
}

const streamSuffix = ".stream"

// streaming registers beside each unary method a stream that answers twice.
type streaming struct{ grpc.ServiceRegistrar }

// RegisterService registers a service and the streams of its unary methods.
func (s streaming) RegisterService(desc *grpc.ServiceDesc, impl any) {
	own := *desc
	for _, m := range desc.Methods {
		own.Streams = append(own.Streams[:len(own.Streams):len(own.Streams)], grpc.StreamDesc{
			StreamName: m.MethodName + streamSuffix, ServerStreams: true,
			Handler: func(srv any, ss grpc.ServerStream) error {
				response, err := m.Handler(srv, ss.Context(), ss.RecvMsg, nil)
				if err != nil {
					return err
				}
				if err := ss.SendMsg(response); err != nil {
					return err
				}
				return ss.SendMsg(response)
			},
		})
	}
	s.ServiceRegistrar.RegisterService(&own, impl)
}

// streamConn makes unary calls over streams.
type streamConn struct{ *grpc.ClientConn }

// Invoke makes one call and returns its second answer.
func (c streamConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method+streamSuffix, opts...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(args); err != nil {
		return err
	}
	first := new(benchv1.WorkResponse)
	for _, m := range []any{first, reply} {
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
	}
	if err := stream.RecvMsg(first); !errors.Is(err, io.EOF) {
		return fmt.Errorf("bench: a stream goes on after both answers: %w", err)
	}
	return nil
}
