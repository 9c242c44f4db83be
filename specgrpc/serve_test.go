package specgrpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

func TestRequestsAreValidated(t *testing.T) {
	valid := func(c *rawCall) *specv1.Request { return c.request(&kvpb.GetRequest{Key: "k"}) }
	request := func(change func(*specv1.Request)) func(c *rawCall) {
		return func(c *rawCall) {
			r := valid(c)
			change(r)
			c.sendRequest(r)
		}
	}
	tests := map[string]struct {
		send func(c *rawCall)
		want string
	}{
		"nothing":       {func(c *rawCall) { _ = c.stream.CloseSend() }, "before Request"},
		"empty frame":   {func(c *rawCall) { c.send(&specv1.ClientFrame{}) }, "first frame"},
		"confirm first": {func(c *rawCall) { c.confirm() }, "first frame is Confirm"},
		"abort first":   {func(c *rawCall) { c.abort() }, "first frame is Abort"},
		"no id":         {request(func(r *specv1.Request) { r.CallId = nil }), "call_id has 0 bytes"},
		"long id":       {request(func(r *specv1.Request) { r.CallId = make([]byte, 17) }), "call_id has 17 bytes"},
		"no attempt":    {request(func(r *specv1.Request) { r.Attempt = 0 }), "attempt is 0"},
		"no caller state": {request(func(r *specv1.Request) { r.Caller = 0 }),
			"caller is CALLER_STATE_UNSPECIFIED"},
		"unknown caller state":     {request(func(r *specv1.Request) { r.Caller = 9 }), "caller is 9"},
		"speculative, but depth 0": {request(func(r *specv1.Request) { r.Depth = 0 }), "depth is 0"},
		"confirmed, but depth 1": {request(func(r *specv1.Request) { r.Caller = specv1.CallerState_CALLER_STATE_CONFIRMED }),
			"depth is 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := &kvServer{}
				_, _, addr := w.kv("a", impl)
				c := w.openRaw(w.raw(addr), getMethod)
				tt.send(c)
				err := c.end()
				wantCode(w, err, codes.InvalidArgument)
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), getMethod) {
					w.Errorf("got %v, want it to name the method and say %q", err, tt.want)
				}
				wantNotes(w, impl)
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct {
		method string
		opts   []grpc.ServerOption
		change func(r *specv1.Request)
		want   specv1.Refused_Reason
		stats  specgrpc.ServerStats
	}{
		"side effects": {method: putMethod, want: specv1.Refused_REASON_EFFECTS,
			stats: specgrpc.ServerStats{RefusedEffects: 1}},
		"depth": {method: getMethod, change: func(r *specv1.Request) { r.Depth = 33 },
			want: specv1.Refused_REASON_LIMIT, stats: specgrpc.ServerStats{RefusedLimit: 1}},
		"configured depth": {method: getMethod, opts: []grpc.ServerOption{specgrpc.WithMaxDepth(2)},
			change: func(r *specv1.Request) {
				r.Depth = 3
			}, want: specv1.Refused_REASON_LIMIT, stats: specgrpc.ServerStats{RefusedLimit: 1}},
		"size": {method: getMethod, opts: []grpc.ServerOption{specgrpc.WithMaxPayload(8)},
			change: func(r *specv1.Request) {
				r.Payload = make([]byte, 9)
			}, want: specv1.Refused_REASON_LIMIT, stats: specgrpc.ServerStats{RefusedLimit: 1}},
		"half-open calls": {method: getMethod, opts: []grpc.ServerOption{specgrpc.WithMaxHalfOpenCalls(0)},
			want: specv1.Refused_REASON_FULL, stats: specgrpc.ServerStats{RefusedFull: 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := &kvServer{}
				reg, _, addr := w.kv("a", impl, tt.opts...)
				c := w.openRaw(w.raw(addr), tt.method)
				r := c.request(&kvpb.GetRequest{Key: "k"})
				if tt.change != nil {
					tt.change(r)
				}
				c.sendRequest(r)
				if got := c.next().GetRefused(); got == nil || got.GetReason() != tt.want {
					w.Errorf("got %v, want Refused for %v", got, tt.want)
				}
				if err := c.end(); err != nil {
					w.Error(err)
				}
				wantNotes(w, impl)
				if got := reg.Stats(); got != tt.stats {
					w.Errorf("stats %+v, want %+v", got, tt.stats)
				}
			})
		})
	}
}

func TestSideEffectFreeByConfiguration(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, addr := w.kv("a", &kvServer{}, specgrpc.SideEffectFree(putMethod))
		c := w.openRaw(w.raw(addr), putMethod)
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		if f := c.final(); f.GetTentative() {
			w.Errorf("got %v, want a Final that stands", f)
		}
	})
}

type principalKey struct{}

// authorize admits callers by metadata, for the method that it sees.
func authorize(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if m, _ := grpc.Method(ctx); m != info.FullMethod || strings.HasSuffix(m, ".spec") {
		return nil, status.Errorf(codes.Internal, "method %s, info says %s", m, info.FullMethod)
	}
	who := md.Get("principal")
	if len(who) != 1 {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return handler(context.WithValue(ctx, principalKey{}, who[0]), req)
}

func TestInterceptorsGuardSpeculativeCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return &kvpb.GetResponse{Value: ctx.Value(principalKey{}).(string)}, nil
		}}
		_, _, addr := w.kv("a", impl, grpc.ChainUnaryInterceptor(authorize))
		cc := w.raw(addr)
		c := w.openRaw(cc, getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		f := c.final()
		st := new(spb.Status)
		if err := proto.Unmarshal(f.GetStatus(), st); err != nil || codes.Code(st.GetCode()) != codes.Unauthenticated {
			w.Errorf("got %v (%v), want the interceptor's refusal as result", f, err)
		}
		wantNotes(w, impl)

		cc = w.raw(addr, grpc.WithStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn,
			method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return streamer(metadata.AppendToOutgoingContext(ctx, "principal", "ada"), desc, cc, method, opts...)
		}))
		c = w.openRaw(cc, getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		res := new(kvpb.GetResponse)
		if err := proto.Unmarshal(c.final().GetPayload(), res); err != nil || res.GetValue() != "ada" {
			w.Errorf("got %v, %v", res, err)
		}
	})
}

func TestRegistrarRejectsUnknownMethods(t *testing.T) {
	for name, method := range map[string]string{"typo": "/foresay.testkv.v1.TestKV/Gut", "form": "Get",
		"service": "/foresay.testkv.v1.TestVK/Get", "stream": getMethod + ".spec"} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(p.(string), method) {
					t.Errorf("got %v, want a panic that names %s", p, method)
				}
			}()
			kvpb.RegisterTestKVServer(specgrpc.Registrar(grpc.NewServer(), specgrpc.Stages(method)), &kvServer{})
		})
	}
}

func TestReauthorization(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		var revoked bool
		reauthorize := func(ctx context.Context, method string, req any) error {
			impl.note("asked again for %v, %s, %s", ctx.Value(principalKey{}), method, req.(*kvpb.PutRequest).GetKey())
			if revoked {
				return status.Error(codes.PermissionDenied, "not any more")
			}
			return nil
		}
		const question = "asked again for ada, " + putMethod + ", k"
		auth := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(context.WithValue(ctx, principalKey{}, "ada"), req)
		}
		_, _, addr := w.kv("a", impl, grpc.ChainUnaryInterceptor(auth), specgrpc.Stages(putMethod),
			specgrpc.WithReauthorize(reauthorize))
		cc := w.raw(addr)

		c := w.openRaw(cc, putMethod)
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		c.final()
		c.confirm()
		if err := c.end(); err != nil {
			w.Error(err)
		}
		wantNotes(w, impl, "put k=", question, "committed k")

		revoked = true
		c = w.openRaw(cc, putMethod)
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		c.final()
		c.confirm()
		wantCode(w, c.end(), codes.PermissionDenied)
		time.Sleep(time.Second)
		wantNotes(w, impl, "put k=", "put k=", question, question, "committed k", "rolled back k")

		c = w.openRaw(cc, getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		if f := c.final(); !f.GetTentative() {
			w.Errorf("got %v: a call that is authorised again has a tentative result", f)
		}
	})
}

func TestReauthorizationThatPanicsDenies(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		_, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod),
			specgrpc.WithReauthorize(func(context.Context, string, any) error { panic("bug") }))
		c := w.openRaw(w.raw(addr), putMethod)
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		c.final()
		c.confirm()
		wantCode(w, c.end(), codes.Internal)
		wantNotes(w, impl, "put k=", "rolled back k")
	})
}

func TestServerPredictions(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			for _, v := range []string{"one", "two", "one", "two"} {
				if err := foresay.Predict(ctx, &kvpb.GetResponse{Value: v}); err != nil {
					return nil, err
				}
			}
			_ = foresay.Predict(ctx, "no message")
			_ = foresay.Predict(ctx, &kvpb.PutResponse{Version: 1}) // of another method
			_ = foresay.Predict(ctx, &kvpb.GetResponse{Value: strings.Repeat("large", 1<<20)})
			go func() {
				time.Sleep(time.Second)
				_ = foresay.Predict(ctx, &kvpb.GetResponse{Value: "late"})
			}()
			return &kvpb.GetResponse{Value: "two"}, nil
		}
		_, _, addr := w.kv("a", impl)
		for _, state := range []specv1.CallerState{specv1.CallerState_CALLER_STATE_CONFIRMED,
			specv1.CallerState_CALLER_STATE_SPECULATIVE} {
			c := w.openRaw(w.raw(addr, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30))), getMethod)
			r := c.request(&kvpb.GetRequest{Key: "k"})
			r.Caller = state
			if state == specv1.CallerState_CALLER_STATE_CONFIRMED {
				r.Depth = 0
			}
			c.sendRequest(r)
			for _, want := range []string{"one", "two"} {
				got := new(kvpb.GetResponse)
				if err := proto.Unmarshal(c.next().GetPrediction().GetPayload(), got); err != nil || got.GetValue() != want {
					w.Fatalf("got prediction %v (%v), want %s", got, err, want)
				}
			}
			f := c.final()
			if _, ok := f.GetResult().(*specv1.Final_Prediction); !ok || f.GetPrediction() != 1 {
				w.Errorf("got %v, want a reference to prediction 1", f)
			}
			time.Sleep(2 * time.Second)
			if state == specv1.CallerState_CALLER_STATE_SPECULATIVE {
				c.confirm()
			}
			if err := c.end(); err != nil { // fails on a late prediction
				w.Error(err)
			}
		}
	})
}

func TestPlainCallersGetNoPredictions(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return &kvpb.GetResponse{Value: "actual"}, foresay.Predict(ctx, &kvpb.GetResponse{Value: "early"})
		}
		_, _, addr := w.kv("a", impl, specgrpc.AllReplayable())
		got, err := kvpb.NewTestKVClient(w.raw(addr)).Get(w.Context(), &kvpb.GetRequest{})
		if err != nil || got.GetValue() != "actual" {
			w.Errorf("got %v, %v", got, err)
		}
	})
}

// okError is an error that claims to be none.
type okError struct{}

func (okError) Error() string              { return "not OK" }
func (okError) GRPCStatus() *status.Status { return status.New(codes.OK, "") }

func TestErrorIsAResult(t *testing.T) {
	inWorld(t, func(w *world) {
		st, err := status.New(codes.NotFound, "nö such key").WithDetails(wrapperspb.String("detail"))
		if err != nil {
			w.Fatal(err)
		}
		impl := &kvServer{get: func(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "plain" {
				return nil, errors.New("no status")
			}
			if r.GetKey() == "ok" {
				return nil, okError{}
			}
			return nil, st.Err()
		}}
		_, _, addr := w.kv("a", impl)
		for key, want := range map[string]*spb.Status{
			"status": st.Proto(), "plain": {Code: int32(codes.Unknown), Message: "no status"},
			"ok": {Code: int32(codes.Unknown), Message: "not OK"},
		} {
			c := w.openRaw(w.raw(addr), getMethod)
			c.sendRequest(c.request(&kvpb.GetRequest{Key: key}))
			got := new(spb.Status)
			if err := proto.Unmarshal(c.final().GetStatus(), got); err != nil || !proto.Equal(got, want) {
				w.Errorf("got %v (%v), want %v", got, err, want)
			}
			c.confirm()
			if err := c.end(); err != nil {
				w.Error(err)
			}
		}
	})
}

func TestPayloadThatIsNoRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		_, _, addr := w.kv("a", impl)
		c := w.openRaw(w.raw(addr), getMethod)
		r := c.request(&kvpb.GetRequest{})
		r.Payload = []byte("\xff\xff")
		c.sendRequest(r)
		got := new(spb.Status)
		if err := proto.Unmarshal(c.final().GetStatus(), got); err != nil || codes.Code(got.GetCode()) != codes.Internal {
			w.Errorf("got %v (%v), want Internal, as of a plain call", got, err)
		}
		wantNotes(w, impl)
	})
}

func TestHandlersMetadataTravelInTheTrailer(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if err := grpc.SetHeader(ctx, metadata.Pairs("h", "1")); err != nil {
				return nil, err
			}
			if err := grpc.SendHeader(ctx, metadata.Pairs("h", "2")); err != nil {
				return nil, err
			}
			return &kvpb.GetResponse{}, grpc.SetTrailer(ctx, metadata.Pairs("t", "3"))
		}}
		_, _, addr := w.kv("a", impl)
		c := w.openRaw(w.raw(addr), getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{}))
		c.final()
		if md, err := c.stream.Header(); err != nil || len(md.Get("h")) != 0 {
			w.Errorf("header %v (%v): nothing may leave before the word", md, err)
		}
		c.confirm()
		if err := c.end(); err != nil {
			w.Error(err)
		}
		md := c.stream.Trailer()
		if got := strings.Join(append(md.Get("h"), md.Get("t")...), ""); got != "123" {
			w.Errorf("trailer %v", md)
		}
	})
}
