package specgrpc_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A handler that does not return for a speculative caller gives no result: the
// caller may be wrong, and never make this call.
func TestAbnormalEndForASpeculativeCallerIsNoResult(t *testing.T) {
	for name, end := range map[string]func(){
		"panic":  func() { panic("bug") },
		"Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := staging()
				put := impl.put
				impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
					_, _ = put(ctx, r)
					end()
					return nil, nil
				}
				r, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod))
				c := w.openRaw(w.raw(addr), putMethod)
				c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
				time.Sleep(time.Second)
				if name == "panic" {
					wantCode(w, c.end(), codes.Internal)
				} else {
					c.cancel() // grpc sends nothing when a handler's goroutine ends
				}
				w.quiet(w.dial(addr), r)
				wantNotes(w, impl, "put k=", "rolled back k")
			})
		})
	}
}

// recovery is what servers use that must survive their handlers.
func recovery(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = status.Errorf(codes.Internal, "recovered")
		}
	}()
	return handler(ctx, req)
}

// An interceptor that recovers sees what the handler panicked with, whichever way
// the call came.
func TestPanicSeenByARecoveringInterceptor(t *testing.T) {
	type bug struct{ error }
	inWorld(t, func(w *world) {
		impl := &kvServer{get: func(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error) { panic(bug{}) }}
		recovering := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any,
			err error) {
			defer func() {
				impl.note("recovered %T", recover())
				err = status.Error(codes.Internal, "recovered")
			}()
			return handler(ctx, req)
		}
		for site, opts := range map[wan.Site][]grpc.ServerOption{"a": nil, "b": {specgrpc.AllReplayable()}} {
			impl.seen = nil
			_, _, addr := w.kv(site, impl, append(opts, grpc.ChainUnaryInterceptor(recovering))...)
			cc := w.raw(addr)
			_, err := kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{})
			wantCode(w, err, codes.Internal)
			for _, caller := range []specv1.CallerState{specv1.CallerState_CALLER_STATE_SPECULATIVE,
				specv1.CallerState_CALLER_STATE_CONFIRMED} {
				c := w.openRaw(cc, getMethod)
				r := c.request(&kvpb.GetRequest{})
				if r.Caller = caller; caller == specv1.CallerState_CALLER_STATE_CONFIRMED {
					r.Depth = 0
				}
				c.sendRequest(r)
				if c.final().GetStatus() == nil {
					w.Error("want the interceptor's status as result")
				}
			}
			const seen = "recovered specgrpc_test.bug"
			wantNotes(w, impl, "get ", "get ", "get ", seen, seen, seen)
		}
	})
}

// A panic after Confirm is that of a plain call: the hooks registered before it
// run, whichever way the call came.
func TestPanicOfAConfirmedCall(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		put := impl.put
		impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
			_, _ = put(ctx, r)
			_ = foresay.Barrier(ctx)
			panic("bug")
		}
		_, _, addr := w.kv("a", impl, grpc.ChainUnaryInterceptor(recovery), specgrpc.Stages(putMethod),
			specgrpc.AllReplayable())
		_, plain := w.serve("b", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(specgrpc.Registrar(s, specgrpc.AllReplayable()), impl)
		}, grpc.UnaryInterceptor(recovery))
		_, err := kvpb.NewTestKVClient(w.raw(plain)).Put(w.Context(), &kvpb.PutRequest{Key: "k"})
		wantCode(w, err, codes.Internal)
		wantNotes(w, impl, "put k=", "committed k")
		for _, depth := range []uint32{0, 1} {
			impl.seen = nil
			c := w.openRaw(w.raw(addr), putMethod)
			r := c.request(&kvpb.PutRequest{Key: "k"})
			if r.Depth = depth; depth == 0 {
				r.Caller = specv1.CallerState_CALLER_STATE_CONFIRMED
			}
			c.sendRequest(r)
			if depth == 1 {
				c.confirm()
			}
			if c.final().GetStatus() == nil {
				w.Error("want the interceptor's status as result")
			}
			if err := c.end(); err != nil {
				w.Error(err)
			}
			wantNotes(w, impl, "put k=", "committed k")
		}
	})
}

// panicking is a predictor that panics whatever it is asked.
type panicking struct{}

func (panicking) Predict(context.Context, any) []any { panic("predict") }
func (panicking) Learn(context.Context, any, any)    { panic("learn") }

// A panic of what is set for a site does not reach the code: a key's fails the
// call, what only guesses or compares counts for nothing.
func TestPanicsOfACallSite(t *testing.T) {
	for name, tt := range map[string]struct {
		site control.CallSiteConfig
		want []string // in the error, if there is one
	}{
		"Key": {control.CallSiteConfig{Key: func(any) []byte {
			panic("no key")
		}}, []string{getMethod, "CallSiteConfig.Key", "no key"}},
		"Equal":       {control.CallSiteConfig{Equal: func(any, any) bool { panic("no equality") }}, nil},
		"ConflictKey": {control.CallSiteConfig{ConflictKey: func(any) string { panic("no conflict") }}, nil},
		"Predictor":   {control.CallSiteConfig{Predictors: []control.Predictor{panicking{}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r, _, addr := w.kv("a", &kvServer{})
				tt.site.Name = getMethod
				cc := w.dial(addr, specgrpc.WithCallSites(tt.site))
				var log logs
				got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
					got, err := guessed(ctx, kvpb.NewTestKVClient(cc), "k", value("k"))
					return got.GetValue(), err
				}, foresay.WithLogger(log.logger()))
				if tt.want == nil && (err != nil || got != "value of k") {
					w.Errorf("got %q, %v", got, err)
				}
				if tt.want != nil {
					wantCode(w, err, codes.Internal)
				}
				for _, part := range tt.want {
					if !strings.Contains(status.Convert(err).Message(), part) {
						w.Errorf("got %v, want it to say %q", err, part)
					}
				}
				w.quiet(cc, r)
			})
		})
	}
}

// brokenCreds panics when a speculative stream is to be opened.
type brokenCreds struct{}

func (brokenCreds) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	if foresay.State(ctx).InTask {
		return nil, errors.New("credentials should be asked for outside of the task")
	}
	if ctx.Value(brokenKey{}) != nil {
		panic("broken credentials")
	}
	return nil, nil
}

func (brokenCreds) RequireTransportSecurity() bool { return false }

type brokenKey struct{}

// A panic below the call, where a stream is opened, reaches the code that made
// the call, as an interceptor's does.
func TestPanicWhereAStreamIsOpened(t *testing.T) {
	inWorld(t, func(w *world) {
		r, _, addr := w.kv("a", newSlowServer())
		cc := w.dial(addr, grpc.WithPerRPCCredentials(brokenCreds{}))
		c := kvpb.NewTestKVClient(cc)
		var got any
		func() {
			defer func() { got = recover() }()
			_, _ = foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
				if _, err := guessed(ctx, c, "slow", value("slow")); err != nil {
					return 0, err
				}
				_, err := c.Get(context.WithValue(ctx, brokenKey{}, true), &kvpb.GetRequest{Key: "k"})
				return 0, err
			})
		}()
		p, _ := got.(*foresay.PanicError)
		if p == nil || p.Value != "broken credentials" {
			w.Errorf("got panic %v", got)
		}
		w.quiet(cc, r)
	})
}
