package randtest

import (
	"context"
	"sync"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/driver"
	"github.com/foresay/foresay/specgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Mutation is a rule removed, from the outside: by what wraps the connections,
// the streams or the sites, or by code that does without. The zero Mutation
// removes none.
type Mutation struct {
	Name   string
	Faults bool // it shows when something fails

	client     func(w *world, conn grpc.ClientConnInterface) grpc.ClientConnInterface
	intercept  grpc.UnaryClientInterceptor // innermost of the user's
	stream     func(grpc.ServerStream) grpc.ServerStream
	unguarded  bool // no authorisation on the speculative path
	options    []specgrpc.ServerOption
	configure  func(m methods, cfg *control.CallSiteConfig)
	hooksApart bool // commit hooks run at once
	noBarrier  bool
	actsApart  bool // acts run at once
	memosApart bool // memos are computed each time
}

// Mutations returns the rules that can be removed from the outside.
func Mutations() []Mutation {
	free := specgrpc.SideEffectFree(names(methodPut | methodAppend | methodRelayWrite)...)
	return []Mutation{
		{Name: "a read does not wait for a predicted write", configure: readsCommute},
		{Name: "a read from before a write is adopted", configure: writesUnseen},
		{Name: "the caller's cancel is the call's result", client: tellContext, intercept: heedCaller},
		{Name: "an effect happens in each run", client: writesApart},
		{Name: "hooks run before it is known who is right", hooksApart: true},
		{Name: "a barrier lets everybody pass", noBarrier: true},
		{Name: "an act happens in each run", actsApart: true},
		{Name: "a memo is computed in each run", memosApart: true},
		{Name: "a wrong caller's calls take effect", stream: abortConfirms},
		{Name: "a call is confirmed before what it depends on", stream: confirmAtOnce},
		{Name: "the end of a stream confirms", stream: endConfirms},
		{Name: "a tentative result is final", stream: untentative, Faults: true},
		{Name: "a lost call is sent again", intercept: sendAgain, Faults: true},
		{Name: "a prediction is learnt by a cache", client: cacheReplies},
		{Name: "a prediction is learnt by a predictor", client: learnReplies},
		{Name: "authorisation is skipped on the sibling path", unguarded: true},
		{Name: "what has side effects runs for a speculative caller", options: []specgrpc.ServerOption{free}},
		{Name: "what cannot be repeated is run again", options: []specgrpc.ServerOption{specgrpc.AllReplayable()}},
		{Name: "metadata are not part of a call", configure: func(_ methods, cfg *control.CallSiteConfig) {
			cfg.IgnoreMetadata = []string{"at", "tenant"}
		}},
	}
}

// readsCommute declares that reads and writes never conflict.
func readsCommute(m methods, cfg *control.CallSiteConfig) {
	cfg.ConflictKey = func(any) string {
		if m&(methodPut|methodAppend|methodRelayWrite) != 0 {
			return "writes"
		}
		return "reads"
	}
}

// writesUnseen declares that writes have no side effects. They take no
// predictions, so that a later call is made only when they are answered.
func writesUnseen(m methods, cfg *control.CallSiteConfig) {
	if m&(methodPut|methodAppend|methodRelayWrite) != 0 {
		cfg.Effect, cfg.Mode = control.EffectNone, control.ModeOff
	}
}

func (m Mutation) wrapClient(w *world, conn grpc.ClientConnInterface) grpc.ClientConnInterface {
	if m.client == nil {
		return conn
	}
	return m.client(w, conn)
}

func (m Mutation) clientInterceptor() grpc.UnaryClientInterceptor {
	if m.intercept != nil {
		return m.intercept
	}
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		return invoker(ctx, method, req, reply, cc, opts...)
	}
}

func (m Mutation) streamInterceptor() grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if m.stream != nil {
			ss = m.stream(ss)
		}
		return handler(srv, ss)
	}
}

// authorize guards a server, unless that rule is removed for speculative calls.
func (m Mutation) authorize(guard grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if m.unguarded && specgrpc.AfterWord(ctx, func(bool) {}) {
			return handler(ctx, req)
		}
		return guard(ctx, req, info, handler)
	}
}

func (m Mutation) site(method methods, cfg *control.CallSiteConfig) {
	if m.configure != nil {
		m.configure(method, cfg)
	}
}

// onCommit is foresay.OnCommit.
func (w *world) onCommit(ctx context.Context, f func()) {
	if w.mutation.hooksApart {
		ctx = context.Background()
	}
	foresay.OnCommit(ctx, f)
}

// barrier is foresay.Barrier.
func (w *world) barrier(ctx context.Context) error {
	if w.mutation.noBarrier {
		ctx = context.Background()
	}
	return foresay.Barrier(ctx)
}

// act is foresay.Act.
func (w *world) act(ctx context.Context, at, digest string) (int, error) {
	if w.mutation.actsApart {
		ctx = context.Background()
	}
	return foresay.Act(ctx, at, func(context.Context) (int, error) { return w.journal.act(at, digest), nil })
}

// memo is foresay.Memo.
func (w *world) memo(ctx context.Context, at string) (int, error) {
	if w.mutation.memosApart {
		ctx = context.Background()
	}
	return foresay.Memo(ctx, at, func(context.Context) (int, error) { return w.journal.memo(at), nil })
}

// once is an act with a key that does not depend on the lane. Sequentially,
// where an act is a plain call, it keeps the result itself.
func (w *world) once(ctx context.Context, key string) (int, error) {
	if w.plain {
		w.journal.actOnce(key)
		return 1, nil
	}
	return foresay.Act(ctx, key, func(context.Context) (int, error) { return w.journal.act(key, ""), nil })
}

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
