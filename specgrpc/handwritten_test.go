package specgrpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// handwritten is the service with a handler of Put that was written by hand, and that calls
// its interceptor or does not.
func handwritten(obeys bool) *grpc.ServiceDesc {
	desc := kvpb.TestKV_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	i := slices.IndexFunc(desc.Methods, func(md grpc.MethodDesc) bool { return md.MethodName == "Put" })
	desc.Methods[i].Handler = func(srv any, ctx context.Context, dec func(any) error,
		interceptor grpc.UnaryServerInterceptor) (any, error) {
		in := new(kvpb.PutRequest)
		if err := dec(in); err != nil {
			return nil, err
		}
		handler := func(ctx context.Context, req any) (any, error) {
			return srv.(kvpb.TestKVServer).Put(ctx, req.(*kvpb.PutRequest))
		}
		if !obeys || interceptor == nil {
			return handler(ctx, in)
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: putMethod}, handler)
	}
	return &desc
}

// TestHandlersWrittenByHand: a staged method whose handler does not call its interceptor has no
// effect for a caller that is wrong; one that does runs half-open once a plain call has shown it.
func TestHandlersWrittenByHand(t *testing.T) {
	for _, obeys := range []bool{false, true} {
		inWorld(t, func(w *world) {
			var puts []string
			impl := &kvServer{get: slow("slow", 40*time.Millisecond)}
			impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
				foresay.OnCommit(ctx, func() { puts = append(puts, r.GetKey()) })
				return &kvpb.PutResponse{}, nil
			}
			var reg *specgrpc.ServiceRegistrar
			_, addr := w.serve("a", func(s *grpc.Server) {
				reg = specgrpc.Registrar(s, specgrpc.Stages(putMethod))
				reg.RegisterService(handwritten(obeys), impl)
			})
			cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))
			c := kvpb.NewTestKVClient(cc)
			for i, guess := range []string{"wrong", "value of slow", "wrong", "value of slow"} {
				puts = nil
				_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
					r, err := guessed(ctx, c, "slow", &kvpb.GetResponse{Value: guess})
					if err != nil {
						return 0, err
					}
					_, err = c.Put(ctx, &kvpb.PutRequest{Key: r.GetValue()})
					return 0, err
				})
				w.quiet(cc, reg)
				if err != nil || !slices.Equal(puts, []string{"value of slow"}) {
					w.Errorf("obeys %v, task %d: %v, wrote %q", obeys, i, err, puts)
				}
			}
			if s := cc.CallSite(putMethod).Stats(); s.Limited != 0 {
				w.Errorf("obeys %v: %d calls are said to be limited by %s", obeys, s.Limited, s.LimitedBy)
			}
			if s := reg.Stats(); (s.Admitted > 0) != obeys || s.RefusedUnknown == 0 {
				w.Errorf("obeys %v: %+v", obeys, s)
			}
		})
	}
}
