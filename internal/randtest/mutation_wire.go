package randtest

import (
	"context"
	"sync"

	"github.com/foresay/foresay/driver"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// clientConn is a connection whose unary calls a mutation changes.
type clientConn struct {
	grpc.ClientConnInterface
	invoke func(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error
}

func (c *clientConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return c.invoke(ctx, method, args, reply, opts...)
}

type callerKey struct{}

// tellContext lets interceptors know the context of the code that made the call.
func tellContext(_ *world, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return &clientConn{conn, func(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
		return conn.Invoke(context.WithValue(ctx, callerKey{}, ctx), method, args, reply, opts...)
	}}
}

// heedCaller ends calls with the context of the code that made them.
func heedCaller(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if caller, ok := ctx.Value(callerKey{}).(context.Context); ok {
		defer context.AfterFunc(caller, cancel)()
	}
	return invoker(ctx, method, req, reply, cc, opts...)
}

// writesApart makes calls with side effects outside of the task.
func writesApart(_ *world, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return &clientConn{conn, func(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
		if method == kvpb.TestKV_Put_FullMethodName || method == kvpb.TestKV_Append_FullMethodName {
			md, _ := metadata.FromOutgoingContext(ctx)
			ctx = metadata.NewOutgoingContext(context.Background(), md)
		}
		return conn.Invoke(ctx, method, args, reply, opts...)
	}}
}

// cacheReplies answers reads from a cache that learns what calls return.
func cacheReplies(_ *world, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	var mu sync.Mutex
	cache := make(map[string]*kvpb.GetResponse)
	return &clientConn{conn, func(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
		get, ok := args.(*kvpb.GetRequest)
		if !ok || get.GetKey()[1] != classConstant {
			return conn.Invoke(ctx, method, args, reply, opts...)
		}
		md, _ := metadata.FromOutgoingContext(ctx)
		key := get.GetKey()
		if tenant := md.Get("tenant"); len(tenant) > 0 {
			key += tenant[0]
		}
		mu.Lock()
		known := cache[key]
		mu.Unlock()
		if known != nil {
			proto.Merge(reply.(proto.Message), known)
			return nil
		}
		err := conn.Invoke(ctx, method, args, reply, opts...)
		if err == nil {
			mu.Lock()
			cache[key] = proto.CloneOf(reply.(*kvpb.GetResponse))
			mu.Unlock()
		}
		return err
	}}
}

// learnReplies tells the predictors what calls return.
func learnReplies(w *world, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	return &clientConn{conn, func(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
		err := conn.Invoke(ctx, method, args, reply, opts...)
		if at, _ := ctx.Value(atKey{}).(string); err == nil && at != "" && driver.InTask(ctx) {
			for _, m := range w.methods() {
				if m.name == method {
					w.learn(m.request, args.(proto.Message), reply.(proto.Message))
				}
			}
		}
		return err
	}}
}

// sendAgain repeats writes that were lost.
func sendAgain(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoker(ctx, method, req, reply, cc, opts...)
	if method == kvpb.TestKV_Get_FullMethodName || status.Code(err) != codes.Unavailable {
		return err
	}
	return invoker(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(true))...)
}

// serverStream is a stream of a server whose frames a mutation changes.
type serverStream struct {
	grpc.ServerStream
	recv func(s *serverStream, f *specv1.ClientFrame) error
	send func(f *specv1.ServerFrame)

	request *specv1.Request
	words   int // that the registrar was given
}

func (s *serverStream) RecvMsg(m any) error {
	f, ok := m.(*specv1.ClientFrame)
	if !ok || s.recv == nil {
		return s.ServerStream.RecvMsg(m)
	}
	err := s.recv(s, f)
	if err == nil && f.GetRequest() != nil {
		s.request = proto.CloneOf(f.GetRequest())
	}
	return err
}

func (s *serverStream) SendMsg(m any) error {
	if f, ok := m.(*specv1.ServerFrame); ok && s.send != nil {
		f = proto.CloneOf(f)
		s.send(f)
		m = f
	}
	return s.ServerStream.SendMsg(m)
}

// say makes f the caller's Confirm.
func (s *serverStream) say(f *specv1.ClientFrame) {
	s.words++
	f.Frame = &specv1.ClientFrame_Confirm{Confirm: &specv1.Confirm{CallId: s.request.GetCallId(),
		Attempt: s.request.GetAttempt()}}
}

// speculates reports whether the caller's word is to come.
func (s *serverStream) speculates() bool {
	return s.request.GetCaller() == specv1.CallerState_CALLER_STATE_SPECULATIVE && s.words == 0
}

// abortConfirms takes Abort for Confirm.
func abortConfirms(ss grpc.ServerStream) grpc.ServerStream {
	return &serverStream{ServerStream: ss, recv: func(s *serverStream, f *specv1.ClientFrame) error {
		err := s.ServerStream.RecvMsg(f)
		if err == nil && f.GetAbort() != nil {
			s.say(f)
		}
		return err
	}}
}

// confirmAtOnce confirms a call before its caller is.
func confirmAtOnce(ss grpc.ServerStream) grpc.ServerStream {
	return &serverStream{ServerStream: ss, recv: func(s *serverStream, f *specv1.ClientFrame) error {
		if s.speculates() {
			s.say(f)
			return nil
		}
		return s.ServerStream.RecvMsg(f)
	}}
}

// endConfirms takes the end of a stream for Confirm.
func endConfirms(ss grpc.ServerStream) grpc.ServerStream {
	return &serverStream{ServerStream: ss, recv: func(s *serverStream, f *specv1.ClientFrame) error {
		err := s.ServerStream.RecvMsg(f)
		if err != nil && s.speculates() || err == nil && f.GetAbort() != nil {
			s.say(f)
			return nil
		}
		return err
	}}
}

// untentative takes what is tentative for final.
func untentative(ss grpc.ServerStream) grpc.ServerStream {
	return &serverStream{ServerStream: ss, send: func(f *specv1.ServerFrame) {
		if final := f.GetFinal(); final != nil {
			final.Tentative = false
		}
	}}
}
