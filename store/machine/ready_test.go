package machine

import (
	"context"
	"crypto/tls"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
)

// connect connects a client without a deadline of its own to the machine at a site.
func (w *world) connect(i int) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///"+w.clients[i].Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(w.net.DialContext(w.sites[i])))
	if err != nil {
		w.Fatal(err)
	}
	w.stop = append([]func(){func() { conn.Close() }}, w.stop...)
	return conn
}

// TestHealth: a machine whose shards are not admitted, and which answers nobody, does not say that
// it serves. It does when they are.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdleWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
		defer func() { w.close() }()
		want := func(want healthpb.HealthCheckResponse_ServingStatus) {
			t.Helper()
			for i := range w.nodes {
				for _, service := range []string{"", pb.Store_ServiceDesc.ServiceName} {
					r, err := healthpb.NewHealthClient(w.connect(i)).Check(context.Background(),
						&healthpb.HealthCheckRequest{Service: service})
					if err != nil || r.GetStatus() != want {
						t.Errorf("machine %d says %v of %q (%v), want %v", i, r.GetStatus(), service, err, want)
					}
				}
			}
		}
		w.start(0)
		w.start(1)
		time.Sleep(time.Minute)
		want(healthpb.HealthCheckResponse_NOT_SERVING) // c is needed to know that the disks were not there before
		w.start(2)
		time.Sleep(5 * time.Second)
		want(healthpb.HealthCheckResponse_SERVING)
	})
}

// TestCallsEnd: calls that nobody answers end without a deadline of the client's, and a connection
// does not keep others from the gate with them.
func TestCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newIdleWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"))
		defer func() { w.close() }()
		w.start(0) // its shards are not admitted
		ctx, cancel := context.WithCancel(context.Background())
		greedy := pb.NewStoreClient(w.connect(0))
		var calls sync.WaitGroup
		for range 12_000 { // the gate has room for 10000
			calls.Go(func() { greedy.Read(ctx, &pb.ReadRequest{Epoch: 1, Key: []byte("k")}) })
		}
		time.Sleep(time.Second)
		began := time.Now()
		_, err := pb.NewStoreClient(w.connect(0)).Read(context.Background(), &pb.ReadRequest{Epoch: 1, Key: []byte("k")})
		if took := time.Since(began); status.Code(err) != codes.Unavailable ||
			!strings.Contains(err.Error(), "nobody at the site answers") || took > 3*time.Second {
			t.Errorf("the other client's call ended with %v after %v", err, took)
		}
		cancel()
		calls.Wait()
	})
}

// TestInsecureIsBothOrNone: who configured certificates for one port, and Insecure, may think that
// it uses them.
func TestInsecureIsBothOrNone(t *testing.T) {
	w := newIdleWorld(t, wan.Uniform(time.Millisecond, "a", "b", "c"))
	defer w.close()
	some := &tls.Config{MinVersion: tls.VersionTLS13}
	for _, cfg := range []Config{{}, {PeerTLS: some}, {ClientTLS: some}, {Insecure: true, PeerTLS: some},
		{Insecure: true, ClientTLS: some}, {Insecure: true, PeerTLS: some, ClientTLS: some}} {
		cfg.Protocol, cfg.Cluster, cfg.Topology, cfg.Machine = replicatedcommit.Protocol(), "test", w.topology, "a-1"
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(),
			"either PeerTLS and ClientTLS or Insecure must be set") {
			t.Errorf("Insecure %v, PeerTLS %v, ClientTLS %v: got %v", cfg.Insecure, cfg.PeerTLS != nil, cfg.ClientTLS != nil,
				err)
		}
	}
}
