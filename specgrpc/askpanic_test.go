package specgrpc_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

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
