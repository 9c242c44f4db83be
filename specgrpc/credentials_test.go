package specgrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
)

// tokenCase is a call's credentials, as an application passes them to one call.
type tokenCase string

func (t tokenCase) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(t)}, nil
}
func (tokenCase) RequireTransportSecurity() bool { return false }

var _ credentials.PerRPCCredentials = tokenCase("")

// One principal's response is not predicted to another, if the credentials come as a
// call option, either.
func TestPerRPCCredentials(t *testing.T) {
	inWorld(t, func(w *world) {
		s := &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			if err := pause(ctx, rtt); err != nil {
				return nil, err
			}
			return &kvpb.GetResponse{Value: "secret of " + md.Get("authorization")[0]}, nil
		}}
		_, _, addr := w.kv("a", s)
		cc := w.dial(addr, specgrpc.WithMode(control.ModeOn), specgrpc.WithCallSites(control.CallSiteConfig{
			Name: getMethod, Predictors: []control.Predictor{predict.LastValue(func(r *kvpb.GetRequest) string {
				return r.GetKey()
			}, 0)},
		}))
		c := kvpb.NewTestKVClient(cc)
		for i, who := range []string{"ann", "bob"} {
			start := time.Now()
			got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				r, err := c.Get(ctx, &kvpb.GetRequest{Key: "me"}, grpc.PerRPCCredentials(tokenCase(who)))
				if err == nil && r.GetValue() != "secret of Bearer "+who {
					t.Errorf("the code of %s sees %q", who, r.GetValue())
				}
				return r.GetValue(), err
			})
			t.Log(i, got, err, time.Since(start))
		}
	})
}
