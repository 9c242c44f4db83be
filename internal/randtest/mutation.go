package randtest

import (
	"context"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
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
