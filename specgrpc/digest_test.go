package specgrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// Responses to one principal say nothing about those to another.
func TestDigestsKeepPrincipalsApart(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, addr := w.kv("a", &kvServer{get: func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			return &kvpb.GetResponse{Value: md.Get("authorization")[0]}, nil
		}})
		cc := w.dial(addr)
		for _, who := range []string{"ann", "ann", "bob"} {
			ctx := metadata.AppendToOutgoingContext(w.Context(), "authorization", who)
			if _, err := kvpb.NewTestKVClient(cc).Get(ctx, &kvpb.GetRequest{Key: "me"}); err != nil {
				w.Fatal(err)
			}
		}
		if s := cc.CallSite(getMethod).Stats(); s.WouldBeRight != 1 || s.WouldBeWrong != 0 {
			w.Errorf("%+v", s)
		}
	})
}
