package interop

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// A call with side effects, sent over a speculative stream because the server's
// predictions are wanted, is refused at a moment when its run is discarded and
// the next one has not made it again. Nothing ran, so it is simply made again.
func TestRefusalBetweenRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s := newKV()
	arrived, discarded := make(chan struct{}), make(chan struct{})
	addr := serve(t, s, func(server *grpc.Server) { kvpb.RegisterTestKVServer(server, s) },
		grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
			close(arrived)
			<-discarded
			return status.Error(codes.Unimplemented, "unknown method")
		}))
	p := newPeer(t, addr, false)
	cc := p.dial(t, specgrpc.WithCallSites(control.CallSiteConfig{Name: kvpb.TestKV_Append_FullMethodName,
		ServerPredictions: true}))
	defer cc.Close()
	client := kvpb.NewTestKVClient(cc)
	got, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
		var value string
		g := foresay.NewGroup(ctx)
		if foresay.State(ctx).Run == 2 {
			close(discarded)
			soon(func() bool { return cc.CallSite(kvpb.TestKV_Append_FullMethodName).Stats().Refused > 0 })
		}
		g.Go(func(ctx context.Context) error {
			r, err := client.Append(ctx, &kvpb.AppendRequest{Key: "list", Value: "a"})
			value = r.GetValue()
			return err
		})
		g.Go(func(ctx context.Context) error {
			<-arrived
			_, err := client.Get(foresay.Predicting(ctx, &kvpb.GetResponse{Value: "wrong"}), &kvpb.GetRequest{Key: "one"})
			return err
		})
		return value, g.Wait()
	})
	if err != nil || got != "a" {
		t.Errorf("got %q, %v", got, err)
	}
	want := []string{"append list+=a", "get one"}
	if log := p.lines(ctx, t, "!log"); !slices.Equal(sorted(log), want) {
		t.Errorf("these handlers ran: %q, want %q", log, want)
	}
}

// A caller is confirmed at the moment at which the server turns out not to know
// speculative streams: its answer to the first call and its refusals of those that
// depend on it arrive together.
func TestRefusalsMeetConfirm(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const width, rounds = 24, 100
	s := newKV()
	p := newPeer(t, servePlain(t, s), false)
	want := append([]string{"get one"}, slices.Repeat([]string{"get two"}, width)...)
	for range rounds {
		cc := p.dial(t) // a new one does not know yet what the server speaks
		client := kvpb.NewTestKVClient(cc)
		if _, err := client.Get(ctx, &kvpb.GetRequest{Key: "!reset"}); err != nil {
			t.Fatal(err)
		}
		_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
			one, err := client.Get(foresay.Predicting(ctx, &kvpb.GetResponse{Value: "two", Version: 1}),
				&kvpb.GetRequest{Key: "one"})
			if err != nil {
				return "", err
			}
			g := foresay.NewGroup(ctx)
			for range width {
				g.Go(func(ctx context.Context) error {
					_, err := client.Get(ctx, &kvpb.GetRequest{Key: one.GetValue()})
					return err
				})
			}
			return "", g.Wait()
		})
		if err != nil {
			t.Fatal(err)
		}
		if log := p.lines(ctx, t, "!log"); !slices.Equal(log, want) {
			t.Fatalf("these handlers ran: %q, want %q", log, want)
		}
		cc.Close()
	}
}

// The deadline of a call that was made plainly after a refusal is a deadline
// still.
func TestDeadlineAfterRefusal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s := newKV()
	p := newPeer(t, servePlain(t, s), false)
	cc := p.dial(t, specgrpc.WithCallSites(control.CallSiteConfig{Name: kvpb.TestKV_Get_FullMethodName,
		ServerPredictions: true}))
	defer cc.Close()
	client := kvpb.NewTestKVClient(cc)
	_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := client.Get(ctx, &kvpb.GetRequest{Key: "block"})
		return "", err
	})
	if got := status.Code(err); got != codes.DeadlineExceeded {
		t.Errorf("got %v (%v), want DeadlineExceeded", got, err)
	}
	if streams := p.lines(ctx, t, "!streams"); len(streams) != 1 {
		t.Errorf("these speculative streams arrived: %q, want one", streams)
	}
}
