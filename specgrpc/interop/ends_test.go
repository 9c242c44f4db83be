package interop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// interrupted runs a task whose first call never ends by itself, and which went
// on with a prediction to a read and a write. Once the read has gone to the
// server, interrupt is called. It returns the task's error.
func (p *peer) interrupted(ctx context.Context, t *testing.T, interrupt func(cancel func())) error {
	t.Helper()
	const key = "block until the end"
	p.ask(ctx, t, "!reset")
	cc := p.dial(t)
	defer cc.Close()
	client := kvpb.NewTestKVClient(cc)
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := foresay.Do(inner, func(ctx context.Context) (string, error) {
			r, err := client.Get(foresay.Predicting(ctx, &kvpb.GetResponse{Value: "one"}), &kvpb.GetRequest{Key: key})
			if err == nil {
				r, err = client.Get(ctx, &kvpb.GetRequest{Key: r.GetValue()})
			}
			if err != nil {
				return "", err
			}
			_, err = client.Append(ctx, &kvpb.AppendRequest{Key: "list", Value: r.GetValue()})
			return "", err
		})
		ended <- err
	}()
	p.ask(ctx, t, "!blocked "+key)
	p.ask(ctx, t, "!streamed")
	interrupt(cancel)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		t.Fatal("the task does not end")
		return nil
	}
}

// cancelled cancels a task: its call ends at the server as well, and what it held
// back never runs.
func (p *peer) cancelled(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	err := p.interrupted(ctx, t, func(cancel func()) { cancel() })
	if !errors.Is(err, context.Canceled) && status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want that it was cancelled", err)
	}
	p.ask(ctx, t, "!freed block until the end")
	log := p.lines(ctx, t, "!log")
	if p.aware {
		log = slices.DeleteFunc(log, func(line string) bool { return line == "get one" })
	}
	if want := []string{"get block until the end"}; !slices.Equal(log, want) {
		t.Errorf("these handlers ran: %q, want %q", log, want)
	}
}

// killed kills the server during a task: the task fails as plain code does.
func (p *peer) killed(t *testing.T, kill func()) {
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	plain := make(chan error, 1)
	err := p.interrupted(ctx, t, func(func()) {
		go func() {
			_, err := p.plain.Get(ctx, &kvpb.GetRequest{Key: "block too"})
			plain <- err
		}()
		p.ask(ctx, t, "!blocked block too")
		kill()
	})
	if got, want := status.Code(err), status.Code(<-plain); got != want {
		t.Errorf("got %v (%v), a plain client gets %v", got, err, want)
	}
	if strings.Contains(status.Convert(err).Message(), "outcome unknown") {
		t.Errorf("got %v: a read has no unknown outcome", err)
	}
}

func TestCancelledTask(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		newPeer(t, servePlain(t, newKV()), false).cancelled(t)
	})
	t.Run("aware", func(t *testing.T) {
		s := newKV()
		newPeer(t, serveAware(t, s, s), true).cancelled(t)
	})
}
