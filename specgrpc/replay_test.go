package specgrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// guessing is a service whose Get asks another one, guessing the answer, and
// tells in header and trailer which run it is.
func guessing(to *specgrpc.ClientConn, prediction string) *kvServer {
	s := &kvServer{}
	s.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		r.Key += "!" // each run has its own request
		c := kvpb.NewTestKVClient(to)
		got, err := guessed(ctx, c, "slow", &kvpb.GetResponse{Value: prediction})
		if err != nil {
			return nil, err
		}
		_ = grpc.SetHeader(ctx, metadata.Pairs("run", got.GetValue()))
		_ = grpc.SetTrailer(ctx, metadata.Pairs("run", got.GetValue()))
		next, err := c.Get(ctx, &kvpb.GetRequest{Key: got.GetValue()})
		if err != nil {
			return nil, err
		}
		if r.GetKey() == "fails!" {
			return nil, status.Error(codes.NotFound, next.GetValue())
		}
		return &kvpb.GetResponse{Value: r.GetKey() + next.GetValue()}, nil
	}
	return s
}

func TestReplayableHandlers(t *testing.T) {
	for _, replayable := range []bool{true, false} {
		for _, prediction := range []string{"value of slow", "wrong"} {
			inWorld(t, func(w *world) {
				_, _, backAddr := w.kv("b", newSlowServer())
				back := w.dialFrom("a", backAddr)
				opts := []grpc.ServerOption{specgrpc.WithTaskLimits(control.Limits{Width: 2})}
				if replayable {
					opts = append(opts, specgrpc.Replayable(getMethod))
				}
				_, _, addr := w.kv("a", guessing(back, prediction), opts...)
				c := kvpb.NewTestKVClient(w.raw(addr))
				_, _ = c.Get(w.Context(), &kvpb.GetRequest{Key: "connect"})
				for _, key := range []string{"k", "fails"} {
					var header, trailer metadata.MD
					start := time.Now()
					got, err := c.Get(w.Context(), &kvpb.GetRequest{Key: key}, grpc.Header(&header), grpc.Trailer(&trailer))
					took := time.Since(start)
					switch {
					case key == "fails" && (status.Code(err) != codes.NotFound ||
						status.Convert(err).Message() != "value of value of slow"):
						w.Errorf("got %v, want NotFound", err)
					case key == "k" && (err != nil || got.GetValue() != "k!value of value of slow"):
						w.Errorf("got %v, %v", got, err)
					}
					for _, md := range []metadata.MD{header, trailer} {
						if run := md.Get("run"); len(run) > 1 || len(run) == 1 && run[0] != "value of slow" {
							w.Errorf("replayable %v, prediction %q: metadata %v of a run that does not stand", replayable, prediction, run)
						}
					}
					if len(trailer.Get("run")) != 1 {
						w.Errorf("trailer %v", trailer)
					}
					want := 100*time.Millisecond + 2*rtt
					if !replayable || prediction == "wrong" {
						want += rtt
					}
					if took != want {
						w.Errorf("replayable %v, prediction %q: took %v, want %v", replayable, prediction, took, want)
					}
				}
			})
		}
	}
}

// A replayable handler's guess reaches the caller as a prediction.
func TestPredictionsFlowBack(t *testing.T) {
	for prediction, want := range map[string]time.Duration{
		"value of slow": 100*time.Millisecond + 2*rtt,
		"wrong":         100*time.Millisecond + 4*rtt,
	} {
		inWorld(t, func(w *world) {
			_, _, backAddr := w.kv("b", newSlowServer())
			back := w.dialFrom("a", backAddr)
			r, _, addr := w.kv("a", guessing(back, prediction), specgrpc.AllReplayable())
			cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true}))
			_, _, otherAddr := w.kv("c", &kvServer{})
			other := kvpb.NewTestKVClient(w.dial(otherAddr))
			c := kvpb.NewTestKVClient(cc)
			_, _ = c.Get(w.Context(), &kvpb.GetRequest{Key: "connect"})
			_, _ = other.Get(w.Context(), &kvpb.GetRequest{Key: "connect"})
			start := time.Now()
			got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				first, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
				if err != nil {
					return "", err
				}
				next, err := other.Get(ctx, &kvpb.GetRequest{Key: first.GetValue()})
				return next.GetValue(), err
			})
			if took := time.Since(start); err != nil || got != "value of k!value of value of slow" || took != want {
				w.Errorf("prediction %q: got %q, %v after %v, want %v", prediction, got, err, took, want)
			}
			w.quiet(cc, r)
		})
	}
}

// The caller's budget bounds the runs of the callee.
func TestBudget(t *testing.T) {
	for budget, want := range map[uint32]int{0: 1, 1: 2, 5: 2} {
		inWorld(t, func(w *world) {
			_, _, backAddr := w.kv("b", newSlowServer())
			impl := guessing(w.dialFrom("a", backAddr), "wrong")
			_, _, addr := w.kv("a", impl, specgrpc.AllReplayable())
			c := w.openRaw(w.raw(addr), getMethod)
			r := c.request(&kvpb.GetRequest{Key: "k"})
			r.Budget = budget
			c.sendRequest(r)
			time.Sleep(time.Second)
			if got := len(impl.notes()); got != want {
				w.Errorf("budget %d: %d runs, want %d", budget, got, want)
			}
		})
	}
}
