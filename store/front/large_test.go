package front

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/gate"
	rc "github.com/foresay/foresay/store/replicatedcommit"
)

// TestLargeRequestIsSentOnce: a client that hears nothing asks again, but does not send a large
// request a second time while it is on its way.
func TestLargeRequestIsSentOnce(t *testing.T) {
	for _, tc := range []struct {
		bytes int
		again bool
	}{{largeBytes / 2, true}, {2 * largeBytes, false}} {
		synctest.Test(t, func(t *testing.T) {
			var site Server
			var arrived atomic.Int64
			site.Epoch = 1
			site.Deliver = func(_ context.Context, msg store.Message) error { // a gate that says nothing
				if _, ok := msg.(gate.Commit); ok {
					arrived.Add(1)
				}
				return nil
			}
			listener := bufconn.Listen(1 << 20)
			server := grpc.NewServer()
			pb.RegisterStoreServer(server, &site)
			done := make(chan error, 1)
			go func() { done <- server.Serve(listener) }()
			const roundTrip = 100 * time.Millisecond
			conn, err := Dial(Config{
				Protocol: rc.Protocol(),
				Topology: store.Topology{Epoch: 1, Shards: 1,
					Sites: []store.TopologySite{{Name: "a", Number: 1,
						Machines: []store.Machine{{Name: "a-1", Peers: "p:1", Client: "c:1"}}}}},
				RoundTrip: roundTrip,
				Insecure:  true,
				Dial:      func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 7*roundTrip)
			defer cancel()
			begin(conn).Commit(ctx, client.Submission{Writes: []store.Write{{Key: "k", Bytes: make([]byte, tc.bytes)}}})
			if n := arrived.Load(); n == 0 || (n > 1) != tc.again {
				t.Errorf("a request of %d bytes arrived %d times", tc.bytes, n)
			}
			conn.Close()
			server.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
