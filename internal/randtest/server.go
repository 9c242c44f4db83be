package randtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// kvServer is a server's state, which outlives its crashes, and the handlers.
type kvServer struct {
	kvpb.UnimplementedTestKVServer
	w     *world
	index int

	mu      sync.Mutex
	kv      map[string]*kvpb.GetResponse
	effects []effect
}

func newServer(w *world, index int) *kvServer {
	s := &kvServer{w: w, index: index, kv: make(map[string]*kvpb.GetResponse)}
	for i := range 2 {
		s.kv[keyOf(index, classConstant, i)] = &kvpb.GetResponse{Value: fmt.Sprintf("const%d", i), Version: 1}
		s.kv[keyOf(index, classSecret, i)] = &kvpb.GetResponse{Value: "secret", Version: 1}
		replica := &kvpb.GetResponse{Value: fmt.Sprintf("replica%d", i), Version: 1}
		if index == 2 && i == 1 {
			replica.Value = "stale"
		}
		s.kv[keyOf(0, classReplica, i)] = replica
	}
	return s
}

// invocation is what a handler knows of the call that it handles.
type invocation struct {
	ctx     context.Context
	at      string
	method  methods
	request proto.Message
	life    *life
	staged  map[string]*kvpb.GetResponse // writes to come
	reads   int
	writes  int
}

type lifeKey struct{}

func (s *kvServer) begin(ctx context.Context, method methods, r proto.Message) *invocation {
	in := &invocation{ctx: ctx, method: method, request: r, staged: make(map[string]*kvpb.GetResponse)}
	if md, ok := metadata.FromIncomingContext(ctx); ok && len(md.Get("at")) > 0 {
		in.at = md.Get("at")[0]
	}
	in.life, _ = ctx.Value(lifeKey{}).(*life)
	return in
}

// early answers before the work is done, rightly or wrongly.
func (s *kvServer) early(in *invocation, blank proto.Message) error {
	for _, v := range s.w.guesses(in.at, "early", s.w.sc.knobs.Early, blank) {
		if m, ok := v.(proto.Message); ok {
			if err := foresay.Predict(in.ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// work takes as long as the place or the request says.
func (s *kvServer) work(in *invocation) error {
	select {
	case <-time.After(s.w.sc.work(in.at, in.request)):
		return nil
	case <-in.ctx.Done():
		return status.FromContextError(in.ctx.Err()).Err()
	}
}

// Get reads a key; who asks shows in the value, as in what Put and Append write.
func (s *kvServer) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	in := s.begin(ctx, 0, r)
	if r.GetKey()[1] == classNever {
		if err := s.early(in, &kvpb.GetResponse{}); err != nil {
			return nil, err
		}
		<-in.ctx.Done()
		return nil, status.FromContextError(in.ctx.Err()).Err()
	}
	if class := r.GetKey()[1]; class != classReplica && class != classClock { // the first answer of several may count
		if err := s.failing(in); err != nil {
			return nil, err
		}
	}
	if err := s.early(in, &kvpb.GetResponse{}); err != nil {
		return nil, err
	}
	if err := s.work(in); err != nil {
		return nil, err
	}
	if r.GetKey()[1] == classSecret {
		s.w.journal.brokenRule("the handler of %s reads %s although the interceptor denies it", in.at, r.GetKey())
	}
	got, err := s.read(in, r.GetKey())
	if err != nil {
		return nil, err
	}
	if got.Value = signedBy(ctx, got.GetValue()); steady(r.GetKey()) {
		got.Value = sealedBy(ctx, got.GetValue())
	}
	stamp := metadata.Pairs("stamp", got.GetValue())
	if err := errors.Join(grpc.SetHeader(ctx, stamp), grpc.SetTrailer(ctx, stamp)); err != nil {
		return nil, err
	}
	return got, nil
}

// steady reports whether what calls of this key answer is the same in each execution.
func steady(key string) bool { return key[1] == classOwn || key[1] == classConstant }

// read returns a key's value as the invocation sees it. What it finds is
// recorded: the handler's own acts change it, and the handler may run again.
func (s *kvServer) read(in *invocation, key string) (*kvpb.GetResponse, error) {
	if staged := in.staged[key]; staged != nil {
		return proto.CloneOf(staged), nil
	}
	in.reads++
	v, err := foresay.Memo(in.ctx, fmt.Sprint("read ", in.reads, key), func(context.Context) (*kvpb.GetResponse, error) {
		return s.state(key), nil
	})
	return proto.CloneOf(v), err
}

func (s *kvServer) state(key string) *kvpb.GetResponse {
	if key[1] == classClock {
		return &kvpb.GetResponse{Value: "tick", Version: uint64(time.Since(s.w.start) / time.Microsecond)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.kv[key]; v != nil {
		return proto.CloneOf(v)
	}
	return &kvpb.GetResponse{}
}

// Put replaces a key's value.
func (s *kvServer) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	in := s.begin(ctx, methodPut, r)
	if err := s.failing(in); err != nil {
		return nil, err
	}
	if err := s.early(in, &kvpb.PutResponse{}); err != nil {
		return nil, err
	}
	if err := s.work(in); err != nil {
		return nil, err
	}
	v, err := s.write(in, kindPut, r.GetKey(), signedBy(ctx, r.GetValue()))
	if err != nil {
		return nil, err
	}
	return &kvpb.PutResponse{Version: v.GetVersion()}, nil
}

// Append extends a key's value.
func (s *kvServer) Append(ctx context.Context, r *kvpb.AppendRequest) (*kvpb.AppendResponse, error) {
	in := s.begin(ctx, methodAppend, r)
	if err := s.failing(in); err != nil {
		return nil, err
	}
	if err := s.early(in, &kvpb.AppendResponse{}); err != nil {
		return nil, err
	}
	if err := s.work(in); err != nil {
		return nil, err
	}
	v, err := s.write(in, kindAppend, r.GetKey(), signedBy(ctx, r.GetValue()))
	if err != nil {
		return nil, err
	}
	return &kvpb.AppendResponse{Value: v.GetValue(), Version: v.GetVersion()}, nil
}

// style is how a handler holds an effect back.
type style int

const (
	styleCommit style = iota // OnCommit and OnRollback
	styleAct
	styleBarrier
	styleDirect
)

// styleOf returns how an invocation writes. A handler that may neither run for
// a speculative caller nor again just writes.
func (s *kvServer) styleOf(in *invocation, key string) style {
	k := s.w.sc.knobs
	if (k.Stages[s.index]|k.Replayable[s.index])&in.method == 0 && !s.w.sc.chance.percent(30, "stage", in.at) {
		return styleDirect
	}
	if key[1] == classContended { // what is staged would be computed from what others change
		return styleAct + style(s.w.sc.chance.below(2, "style", in.at))
	}
	return style(s.w.sc.chance.below(3, "style", in.at))
}

// write makes a write take effect, now or when the call is confirmed, and
// returns the key's state behind it.
func (s *kvServer) write(in *invocation, k kind, key, value string) (*kvpb.GetResponse, error) {
	in.writes++
	switch s.styleOf(in, key) {
	case styleCommit:
		before, err := s.read(in, key)
		if err != nil {
			return nil, err
		}
		after := next(before, k, value)
		in.staged[key] = after
		tok := s.w.journal.token(in.at + " stages " + key)
		foresay.OnCommit(in.ctx, func() {
			s.w.journal.commit(tok)
			s.apply(in, k, key, value)
		})
		foresay.OnRollback(in.ctx, func() { s.w.journal.rollback(tok) })
		return after, nil
	case styleAct:
		return foresay.Act(in.ctx, fmt.Sprint("write ", in.writes), func(context.Context) (*kvpb.GetResponse, error) {
			return s.apply(in, k, key, value), nil
		})
	case styleBarrier:
		if err := foresay.Barrier(in.ctx); err != nil {
			return nil, err
		}
	}
	return s.apply(in, k, key, value), nil
}

func next(v *kvpb.GetResponse, k kind, value string) *kvpb.GetResponse {
	if k == kindAppend {
		value = v.GetValue() + value
	}
	return &kvpb.GetResponse{Value: value, Version: v.GetVersion() + 1}
}

// apply makes a write take effect, unless the process that wants it is dead.
func (s *kvServer) apply(in *invocation, k kind, key, value string) *kvpb.GetResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.kv[key]
	if old == nil {
		old = &kvpb.GetResponse{}
	}
	v := next(old, k, value)
	if in.life != nil && in.life.dead.Load() {
		return v
	}
	s.kv[key] = v
	s.effects = append(s.effects, effect{key: key, what: k.String() + " " + value, version: v.GetVersion(),
		seq: s.w.journal.nextSeq()})
	return proto.CloneOf(v)
}

// log returns the effects so far.
func (s *kvServer) log() []effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]effect(nil), s.effects...)
}

// authorize is a unary interceptor that denies secrets.
func (s *kvServer) authorize(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if k, ok := req.(interface{ GetKey() string }); ok && k.GetKey()[1] == classSecret {
		return nil, status.Error(codes.PermissionDenied, "it is a secret")
	}
	return handler(ctx, req)
}
