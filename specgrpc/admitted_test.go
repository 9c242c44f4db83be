package specgrpc_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// waiting opens n speculative calls from a site with a token, which stay half-open,
// and returns how many of them the server runs.
func (w *world) waiting(from wan.Site, addr, token string, n int) (admitted int) {
	w.Helper()
	cc, err := grpc.NewClient("passthrough:///"+addr, append(w.dialOptions(from), grpc.WithStreamInterceptor(
		func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
			opts ...grpc.CallOption) (
			grpc.ClientStream, error,
		) {
			if token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
			}
			return streamer(ctx, desc, cc, method, opts...)
		}))...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { cc.Close() })
	for range n {
		c := w.openRaw(cc, getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		if c.next().GetFinal() != nil {
			admitted++
		}
	}
	return admitted
}

// One caller does not take all places: nobody, by host or by principal, holds more
// than are free, so that whoever comes next finds one.
func TestPlacesAreShared(t *testing.T) {
	const all = 16
	type greedy struct {
		from  wan.Site
		token string
		want  int
	}
	for name, tt := range map[string]struct {
		opts    []grpc.ServerOption
		callers []greedy
	}{
		"one host":               {nil, []greedy{{"client", "", 8}, {"b", "", 4}, {"c", "", 2}}},
		"a host with many names": {nil, []greedy{{"client", "ada", 8}, {"client", "bob", 0}, {"b", "", 4}}},
		"a name on many hosts":   {nil, []greedy{{"client", "ada", 8}, {"b", "ada", 0}, {"c", "bob", 4}}},
		"a lower bound": {[]grpc.ServerOption{specgrpc.WithMaxHalfOpenCallsPerCaller(3)},
			[]greedy{{"client", "", 3}, {"b", "", 3}, {"c", "", 3}}},
		"a principal of one's own": {[]grpc.ServerOption{specgrpc.WithPrincipal(func(ctx context.Context) string {
			return fmt.Sprint(len(metadata.ValueFromIncomingContext(ctx, "authorization")))
		})}, []greedy{{"client", "ada", 8}, {"b", "bob", 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s, addr := w.server("a", &kvServer{}, append(tt.opts, specgrpc.WithMaxHalfOpenCalls(all))...)
				refused, open := 0, 0
				for i, c := range tt.callers {
					got := w.waiting(c.from, addr, c.token, all)
					if got != c.want {
						w.Errorf("caller %d got %d places, want %d", i, got, c.want)
					}
					refused, open = refused+all-got, open+got
				}
				want := specgrpc.ServerStats{HalfOpen: open, Admitted: int64(open), RefusedCaller: int64(refused)}
				if got := s.Stats(); got != want {
					w.Errorf("stats %+v, want %+v", got, want)
				}
				time.Sleep(time.Minute) // the leases are over
				for i, c := range tt.callers[:1] {
					if got := w.waiting(c.from, addr, c.token, all); got != c.want {
						w.Errorf("caller %d got %d places later, want %d", i, got, c.want)
					}
				}
			})
		})
	}
}
