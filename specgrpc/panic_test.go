package specgrpc_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
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

func TestPanicSeenByARecoveringInterceptor(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: func(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error) { panic("bug") }}
		_, _, addr := w.kv("a", impl, specgrpc.UnaryInterceptors(recovery))
		c := w.openRaw(w.raw(addr), getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{}))
		if c.final().GetStatus() == nil {
			w.Error("want the interceptor's status as result")
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
		_, _, addr := w.kv("a", impl, specgrpc.UnaryInterceptors(recovery), specgrpc.Stages(putMethod), specgrpc.AllReplayable())
		_, plain := w.serve("b", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(specgrpc.Registrar(s, specgrpc.UnaryInterceptors(recovery), specgrpc.AllReplayable()), impl)
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
