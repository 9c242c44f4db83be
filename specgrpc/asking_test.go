package specgrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// rpcEnds notes how RPCs end.
type rpcEnds struct{ errs []error }

func (*rpcEnds) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*rpcEnds) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*rpcEnds) HandleConn(context.Context, stats.ConnStats)                       {}
func (e *rpcEnds) HandleRPC(_ context.Context, s stats.RPCStats) {
	if end, ok := s.(*stats.End); ok {
		e.errs = append(e.errs, end.Error)
	}
}

// TestAskingCallsEnd: the stream of a caller that was right from the start is read to
// its end before the call has its result, so that it does not count as cancelled.
func TestAskingCallsEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			_ = foresay.Predict(ctx, value(r.GetKey()))
			return value(r.GetKey()), nil
		}
		r, _, addr := w.kv("a", impl, grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo,
			handler grpc.StreamHandler) error {
			defer time.Sleep(time.Millisecond) // the end comes later than the result
			return handler(srv, ss)
		}))
		ends := new(rpcEnds)
		cc := w.dial(addr, grpc.WithStatsHandler(ends),
			specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true}))
		const calls = 20
		for range calls {
			if _, err := foresay.Do(w.Context(), func(ctx context.Context) (*kvpb.GetResponse, error) {
				return kvpb.NewTestKVClient(cc).Get(ctx, &kvpb.GetRequest{Key: "k"})
			}); err != nil {
				w.Fatal(err)
			}
		}
		for _, err := range ends.errs {
			if err != nil {
				w.Errorf("a call ended with %v", err)
			}
		}
		if len(ends.errs) != calls {
			w.Errorf("%d calls ended by the time that they had their results, want %d", len(ends.errs), calls)
		}
		w.quiet(cc, r)
	})
}
