package shape_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// serve starts a gRPC server with the health service and ends it with the test.
func serve(t *testing.T, n *shape.Network, site wan.Site, opts ...grpc.ServerOption) net.Listener {
	t.Helper()
	l, err := n.Listen(site)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	healthpb.RegisterHealthServer(s, health.NewServer())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-served; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err) // not a crash of its site
		}
	})
	return l
}

func connect(
	t *testing.T, n *shape.Network, from wan.Site, l net.Listener, opts ...grpc.DialOption,
) healthpb.HealthClient {
	t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), append(opts,
		grpc.WithContextDialer(n.DialContext(from)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return healthpb.NewHealthClient(cc)
}

// check makes a call and returns how long it took.
func check(ctx context.Context, c healthpb.HealthClient, opts ...grpc.CallOption) (time.Duration, error) {
	start := time.Now()
	_, err := c.Check(ctx, &healthpb.HealthCheckRequest{}, opts...)
	return time.Since(start), err
}

func TestUnaryCallTakesOneRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := shape.NewNetwork(wan.Uniform(10*time.Millisecond, "client", "a", "b"), 1)
		c := connect(t, n, "client", serve(t, n, "a"))
		for i, want := range []time.Duration{30 * time.Millisecond, 10 * time.Millisecond, 10 * time.Millisecond} {
			got, err := check(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("call %d took %v, want %v", i, got, want)
			}
		}
	})
}
