package specgrpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
)

// slowSender takes its time over the first message sent on a speculative stream,
// and notes messages that are sent beside another one of their stream.
type slowSender struct {
	takes   time.Duration
	sent    atomic.Int32
	overlap atomic.Int32
}

type sendingKey struct{}

func (s *slowSender) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	if info.FullMethodName != getMethod+".spec" {
		return ctx
	}
	return context.WithValue(ctx, sendingKey{}, new(atomic.Int32))
}

func (s *slowSender) HandleRPC(ctx context.Context, event stats.RPCStats) {
	sending, ok := ctx.Value(sendingKey{}).(*atomic.Int32)
	if _, out := event.(*stats.OutPayload); !ok || !out {
		return
	}
	if sending.Add(1) > 1 {
		s.overlap.Add(1)
	}
	defer sending.Add(-1)
	if s.sent.Add(1) == 1 {
		time.Sleep(s.takes)
	}
}

func (s *slowSender) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (s *slowSender) HandleConn(context.Context, stats.ConnStats)                       {}

// A stream that must give way while its request is being sent is reset: no word
// is sent beside the request, which gRPC does not allow.
func TestNoWordBesideTheRequest(t *testing.T) {
	inWorld(t, func(w *world) {
		sender := &slowSender{takes: 500 * time.Millisecond}
		r, cc, gate := w.fewStreams(1, newSlowServer(), grpc.WithStatsHandler(sender))
		c := kvpb.NewTestKVClient(cc)
		done := w.onGuess(gate, func(ctx context.Context) error {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
			return err
		})
		time.Sleep(50 * time.Millisecond)
		if n, sent := cc.HalfOpen(), sender.sent.Load(); n != 1 || sent != 1 {
			w.Fatalf("%d half-open streams, %d messages sent; want a request being sent", n, sent)
		}
		start := time.Now()
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "plain"}); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took > 20*time.Millisecond+2*rtt {
			w.Errorf("the plain call took %v", took)
		}
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.quiet(cc, r)
		if sent, overlap := sender.sent.Load(), sender.overlap.Load(); sent != 1 || overlap != 0 {
			w.Errorf("%d messages on the speculative stream, %d beside another; want the request alone", sent, overlap)
		}
	})
}
