package front

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/gate"
	rc "github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/str"
)

var errRefused = errors.New("connection refused")

// threeSites is a store with a machine at each of three sites. The ports of those that dial has no
// answer for refuse.
func threeSites(t *testing.T, dial func(ctx context.Context, address string) (net.Conn, error)) *Conn {
	t.Helper()
	return threeSitesOf(t, rc.Protocol(), dial)
}

func threeSitesOf(
	t *testing.T, protocol store.Protocol, dial func(ctx context.Context, address string) (net.Conn, error),
) *Conn {
	t.Helper()
	topology := store.Topology{Epoch: 1, Shards: 1}
	for i, name := range []string{"a", "b", "c"} {
		topology.Sites = append(topology.Sites, store.TopologySite{Name: name, Number: i + 1,
			Machines: []store.Machine{{Name: name + "-1", Peers: name + ":1", Client: name + ":2"}}})
	}
	conn, err := Dial(Config{Protocol: protocol, Topology: topology, Insecure: true, Dial: dial,
		RoundTrip: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

var write = client.Submission{Writes: []store.Write{{Key: "k", Bytes: []byte("v")}}}

// TestEveryPortRefuses: what was never sent is said to be so, at once, and a read says where it
// failed. It fails once a majority cannot answer, with or without the third site's refusal.
func TestEveryPortRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := threeSites(t, func(context.Context, string) (net.Conn, error) { return nil, errRefused })
		defer conn.Close()
		start := time.Now()
		o := begin(conn).Commit(t.Context(), write).Outcome
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("the commit fails after %v", took)
		}
		if o.Verdict != store.Rejected || !strings.HasPrefix(o.Detail, "nothing was sent: a-1: ") ||
			!strings.Contains(o.Detail, errRefused.Error()) ||
			!slices.Equal(o.Sites, []string{"a", "b", "c"}) {
			t.Errorf("the outcome is %+v", o)
		}
		start = time.Now()
		_, err := begin(conn).Read(t.Context(), "k", nil)
		u, ok := errors.AsType[*client.UnavailableError](err)
		if took := time.Since(start); !ok || took > 100*time.Millisecond || u.Key != "k" || len(u.Sites) < 2 ||
			!strings.Contains(u.Detail, errRefused.Error()) {
			t.Errorf("after %v the read fails with %+v", took, err)
		}
	})
}

// TestNobodyAnswers: machines that were reached once may be back soon, so that a client is patient.
// If its time is up before anything was sent, that is known too.
func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := threeSites(t, func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if o := begin(conn).Commit(ctx, write).Outcome; o.Verdict != store.Rejected ||
			o.Detail != "nothing was sent: a-1: no answer; b-1: no answer; c-1: no answer" {
			t.Errorf("the outcome is %+v", o)
		}
		_, err := begin(conn).Read(ctx, "k", nil)
		if u, ok := errors.AsType[*client.UnavailableError](err); !ok || !errors.Is(err, context.DeadlineExceeded) ||
			len(u.Sites) != 3 {
			t.Errorf("the read fails with %v", err)
		}
	})
}

// TestOneMachineMayHaveIt: a commit that has left for a machine which does not answer is unknown,
// though all others refuse connections.
func TestOneMachineMayHaveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got atomic.Int64
		site := Server{Epoch: 1, Deliver: func(context.Context, store.Message) error { got.Add(1); return nil }}
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		pb.RegisterStoreServer(server, &site)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		conn := threeSites(t, func(ctx context.Context, address string) (net.Conn, error) {
			if address == "b:2" {
				return listener.DialContext(ctx)
			}
			return nil, errRefused
		})
		o := begin(conn).Commit(t.Context(), write).Outcome
		if o.Verdict != store.Unknown || !slices.Equal(o.Sites, []string{"a", "b", "c"}) ||
			!strings.Contains(o.Detail, "b-1: no answer") {
			t.Errorf("the outcome is %+v", o)
		}
		if got.Load() == 0 {
			t.Error("nothing came to b")
		}
		conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestEveryMachineRefuses: machines of another epoch do nothing with a commit, so that nothing came
// of it.
func TestEveryMachineRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := Server{Epoch: 7}
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		pb.RegisterStoreServer(server, &site)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		conn := threeSites(t, func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
		start := time.Now()
		o := begin(conn).Commit(t.Context(), write).Outcome
		if took := time.Since(start); took > 100*time.Millisecond || o.Verdict != store.Rejected ||
			!strings.Contains(o.Detail, "this machine is of epoch 7") {
			t.Errorf("after %v the outcome is %+v", took, o)
		}
		conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestNoMachineTakesIt: machines that have no room, or whose nodes have not begun, have done
// nothing with a commit: the client knows so, and may try again.
func TestNoMachineTakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &Server{Epoch: 1}
		waits := func(context.Context, store.Message) error {
			return status.Error(codes.Unavailable, "the machine waits")
		}
		full := func(_ context.Context, msg store.Message) error {
			if m, ok := msg.(gate.Commit); ok {
				go site.Receive(gate.Refused{Ref: m.Ref, Full: true, Detail: "no room"})
			}
			return nil
		}
		var deliver atomic.Value
		site.Deliver = func(ctx context.Context, msg store.Message) error {
			return deliver.Load().(func(context.Context, store.Message) error)(ctx, msg)
		}
		listener := bufconn.Listen(1 << 16)
		server := grpc.NewServer()
		pb.RegisterStoreServer(server, site)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		conn := threeSites(t, func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })
		for _, size := range []int{1, 2 * largeBytes} {
			txn := client.Submission{Writes: []store.Write{{Key: "k", Bytes: make([]byte, size)}}}
			deliver.Store(full)
			start := time.Now()
			o := begin(conn).Commit(t.Context(), txn).Outcome
			if took := time.Since(start); took > 100*time.Millisecond || o.Verdict != store.Aborted ||
				o.Reason != store.Overloaded || !strings.Contains(o.Detail, "no machine has taken it: a-1: no room") {
				t.Errorf("without room: after %v the outcome is %+v", took, o)
			}
			deliver.Store(waits)
			o = begin(conn).Commit(t.Context(), txn).Outcome
			if o.Verdict != store.Rejected || !strings.Contains(o.Detail,
				"no machine has taken it: a-1: the site's gate does not take calls: the machine waits; ") {
				t.Errorf("where machines wait: the outcome is %+v", o)
			}
		}
		conn.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestWriteCannotBegin: a write of a protocol whose transactions begin by reading says why it could
// not, and is not tried again until its time is over.
func TestWriteCannotBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := threeSitesOf(t, str.Protocol(), func(context.Context, string) (net.Conn, error) { return nil, errRefused })
		defer conn.Close()
		c, err := client.New(client.Config{Backend: conn})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = client.Run(t.Context(), c, func(_ context.Context, tx *client.Tx) (struct{}, error) {
			return struct{}{}, tx.Put("k", []byte("v"))
		})
		u, ok := errors.AsType[*client.UnavailableError](err)
		if took := time.Since(start); !ok || took > 100*time.Millisecond || len(u.Sites) < 2 ||
			!strings.Contains(u.Detail, errRefused.Error()) {
			t.Errorf("after %v it fails with %v", took, err)
		}
	})
}

// TestNoTimeToBegin: likewise when its time is over before.
func TestNoTimeToBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := threeSitesOf(t, str.Protocol(), func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		defer conn.Close()
		c, err := client.New(client.Config{Backend: conn})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = client.Run(ctx, c, func(_ context.Context, tx *client.Tx) (struct{}, error) {
			return struct{}{}, tx.Put("k", []byte("v"))
		})
		u, ok := errors.AsType[*client.UnavailableError](err)
		if !ok || len(u.Sites) == 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it fails with %v", err)
		}
	})
}
