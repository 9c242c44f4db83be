package front

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/gate"
	rc "github.com/foresay/foresay/store/replicatedcommit"
)

// begin begins an attempt of which nothing is known.
func begin(c *Conn) client.Attempt { return c.Begin(client.Beginning{}) }

// TestHoldArrives: a commit that the nearest site may hold back says so to that site's gate, over
// gRPC, and no other does.
func TestHoldArrives(t *testing.T) {
	var site Server
	commits := make(chan gate.Commit, 1)
	site.Epoch = 1
	site.Deliver = func(_ context.Context, msg store.Message) error { // a gate that agrees to everything
		switch m := msg.(type) {
		case gate.Read:
			site.Receive(gate.ReadDone{Ref: m.Ref})
		case gate.Commit:
			commits <- m
			site.Receive(gate.CommitDone{Ref: m.Ref, Vote: store.SiteVote{ID: m.Txn.ID, Yes: true}})
		}
		return nil
	}
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	pb.RegisterStoreServer(server, &site)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := Dial(Config{
		Protocol: rc.Protocol(), Topology: store.Topology{Epoch: 1, Shards: 1,
			Sites: []store.TopologySite{{Name: "oregon", Number: 1,
				Machines: []store.Machine{{Name: "oregon-1", Peers: "p:1", Client: "c:1"}}}}},
		Insecure: true,
		Dial:     func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// so that it knows which site is near
	if _, err := begin(conn).ReadNearest(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	commit := func(hold bool) func() {
		return func() {
			d := begin(conn).Commit(t.Context(), client.Submission{Reads: []store.Read{{Key: "k"}},
				Writes: []store.Write{{Key: "k", Bytes: []byte("v")}}, Hold: hold})
			if d.Outcome.Verdict != store.Committed {
				t.Errorf("the commit is %+v", d.Outcome)
			}
		}
	}
	for _, tc := range []struct {
		name string
		call func()
		want bool
	}{
		{"a commit that may be held back", commit(true), true},
		{"one that may not", commit(false), false},
		{"the question whether reads are stale", func() { begin(conn).Stale(t.Context(), []store.Read{{Key: "k"}}) }, false},
		{"the question what became of it", func() {
			conn.Resolve(t.Context(), store.Txn{ID: store.TxnID{Time: 1, Client: 1}, Writes: []store.Write{{Key: "k"}}})
		}, false},
	} {
		tc.call()
		select {
		case m := <-commits:
			if m.Hold != tc.want || m.Firm {
				t.Errorf("%s: the gate is told to hold: %v, want %v; firm: %v", tc.name, m.Hold, tc.want, m.Firm)
			}
		default:
			t.Errorf("%s does not come to the gate", tc.name)
		}
	}
}

// TestCarriesRequestsOnly: the service has calls for some kinds of messages. A protocol whose
// client sends others is told so, instead of waiting for answers that never come.
func TestCarriesRequestsOnly(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "of replicatedcommit sends a store.StatusQuery") {
			t.Errorf("carry says %q", said)
		}
	}()
	c := &Conn{cfg: Config{Protocol: rc.Protocol()}}
	c.carry(11, store.StatusQuery{Ref: 1})
}
