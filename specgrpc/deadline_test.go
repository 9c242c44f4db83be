package specgrpc_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// sendBudget is an interceptor that sends what the context's deadline leaves.
func sendBudget(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	budget := "none"
	if d, ok := ctx.Deadline(); ok {
		budget = time.Until(d).Round(10 * time.Millisecond).String()
	}
	return invoker(metadata.AppendToOutgoingContext(ctx, "x-budget", budget), method, req, reply, cc, opts...)
}

// TestInterceptorSeesTheDeadline: an interceptor sees the deadline of the code's context, or of the
// task's, on a call that is sent on a guess as on any other, and the call outlives it while its
// caller waits.
func TestInterceptorSeesTheDeadline(t *testing.T) {
	for _, tt := range []struct {
		name        string
		task, limit time.Duration
		want        string
	}{
		{"none", 0, 0, "none"},
		{"the code's", 0, 10 * time.Minute, "10m0s"},
		{"the code's, in a task that has one", time.Hour, 10 * time.Minute, "10m0s"},
		{"the task's", time.Hour, 0, "1h0m0s"},
		{"the task's, which is before the code's", time.Hour, 2 * time.Hour, "1h0m0s"},
		{"the code's, which is over before the guess is known", time.Hour, 30 * time.Millisecond, "30ms"},
	} {
		for _, server := range []string{"speculative", "plain"} {
			t.Run(tt.name+", a "+server+" server", func(t *testing.T) {
				inWorld(t, func(w *world) {
					var reads atomic.Int32
					get := func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
						if r.GetKey() == "slow" {
							return value("slow"), pause(ctx, 100*time.Millisecond)
						}
						reads.Add(1)
						md, _ := metadata.FromIncomingContext(ctx)
						return &kvpb.GetResponse{Value: strings.Join(md.Get("x-budget"), ",")}, nil
					}
					_, _, a := w.kv("a", &kvServer{get: get})
					b := a
					if server == "plain" {
						_, b = w.serve("b", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, &kvServer{get: get}) })
					}
					slow, conn := kvpb.NewTestKVClient(w.dial(a)), w.dial(b, grpc.WithChainUnaryInterceptor(sendBudget))
					cc := kvpb.NewTestKVClient(conn)
					time.Sleep(time.Second)
					ctx := w.Context()
					if tt.task > 0 {
						c, cancel := context.WithTimeout(ctx, tt.task)
						defer cancel()
						ctx = c
					}
					got, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
						if _, err := guessed(ctx, slow, "slow", value("slow")); err != nil {
							return "", err
						}
						if tt.limit > 0 {
							c, cancel := context.WithTimeout(ctx, tt.limit)
							defer cancel()
							ctx = c
						}
						r, err := cc.Get(ctx, &kvpb.GetRequest{Key: "x"})
						return r.GetValue(), err
					})
					if got != tt.want || err != nil || reads.Load() != 1 {
						w.Errorf("it saw %q, %v, in %d calls; want %q in one", got, err, reads.Load(), tt.want)
					}
					w.quiet(conn)
				})
			})
		}
	}
}

// ownContext is a context that an interceptor knows by its type.
type ownContext struct {
	context.Context
	user string
}

// TestInterceptorSeesValuesNotTypes: an interceptor finds the values of the code's context, and not
// its type, in a task and outside of one.
func TestInterceptorSeesValuesNotTypes(t *testing.T) {
	inWorld(t, func(w *world) {
		impl, addr := userServer(w)
		cc := kvpb.NewTestKVClient(w.dial(addr, grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string,
			req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			user, _ := ctx.Value(userKey{}).(string)
			if own, ok := ctx.(ownContext); ok {
				user = "the type's " + own.user
			}
			return invoker(metadata.AppendToOutgoingContext(ctx, "x-user", user), method, req, reply, cc, opts...)
		})))
		ask := func(ctx context.Context) (string, error) {
			r, err := cc.Get(ownContext{context.WithValue(ctx, userKey{}, "alice"), "alice"}, &kvpb.GetRequest{Key: "page"})
			return r.GetValue(), err
		}
		if got, err := ask(w.Context()); got != "page of alice" || err != nil {
			w.Errorf("outside of a task: %q, %v", got, err)
		}
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			if _, err := guessed(ctx, cc, "me", &kvpb.GetResponse{Value: "alice"}); err != nil {
				return "", err
			}
			return ask(ctx)
		})
		if got != "page of alice" || err != nil {
			w.Errorf("in a task: %q, %v", got, err)
		}
		want := []string{"read page as alice", "read me as ", "read page as alice"}
		reads := slices.DeleteFunc(impl.notes(), func(n string) bool { return !strings.HasPrefix(n, "read") })
		if diff := cmp.Diff(want, reads); diff != "" {
			w.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}
