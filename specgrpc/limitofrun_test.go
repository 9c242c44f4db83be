package specgrpc_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// TestLimitOfTheRightRun: a call that a replay adopts has the time limit that the replay's
// code sets, not that of the wrong guess under which it was sent.
func TestLimitOfTheRightRun(t *testing.T) {
	for _, tt := range []struct{ guess, actual string }{
		{"50ms", "1s"}, {"50ms", "none"}, {"1s", "50ms"}, {"none", "50ms"}, {"1s", "2s"},
	} {
		for _, how := range []struct {
			name            string
			unaware, staged bool
		}{{"a read", false, false}, {"a read, sent plainly", true, false}, {"a staged write", false, true},
			{"a held write", true, true}} {
			t.Run(tt.guess+", "+tt.actual+", "+how.name, func(t *testing.T) {
				inWorld(t, func(w *world) {
					want, wantPuts := limitedCall(w, control.ModeOff, how.unaware, how.staged, tt.guess, tt.actual)
					got, gotPuts := limitedCall(w, control.ModeOn, how.unaware, how.staged, tt.guess, tt.actual)
					if got != want || gotPuts != wantPuts {
						w.Errorf("got %v and %d writes, plainly %v and %d", got, gotPuts, want, wantPuts)
					}
				})
			})
		}
	}
}

// limitedCall makes a call of 200 ms whose time limit is read, and guessed.
func limitedCall(w *world, mode control.Mode, unaware, staged bool, guess, actual string) (code string, puts int) {
	impl := &kvServer{}
	impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		took := 20 * time.Millisecond
		if r.GetKey() == "slow" {
			took = 200 * time.Millisecond
		}
		return &kvpb.GetResponse{Value: actual}, pause(ctx, took)
	}
	impl.put = func(ctx context.Context, _ *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return nil, err
		}
		foresay.OnCommit(ctx, func() { puts++ })
		return &kvpb.PutResponse{}, nil
	}
	site := map[control.Mode]wan.Site{control.ModeOff: "a", control.ModeOn: "b"}[mode]
	var addr string
	if unaware {
		_, addr = w.serve(site, func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, impl) })
	} else {
		_, _, addr = w.kv(site, impl, specgrpc.Stages(putMethod))
	}
	cc := w.dial(addr, specgrpc.WithMode(mode), specgrpc.WithCallSites(
		control.CallSiteConfig{Name: getMethod, SendPlainly: true},
		control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))
	c := kvpb.NewTestKVClient(cc)
	_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
		r, err := c.Get(foresay.Predicting(ctx, &kvpb.GetResponse{Value: guess}), &kvpb.GetRequest{Key: "limit"})
		if err != nil {
			return "", err
		}
		if d, err := time.ParseDuration(r.GetValue()); err == nil {
			limited, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			ctx = limited
		}
		if staged {
			_, err = c.Put(ctx, &kvpb.PutRequest{Key: "slow"})
		} else {
			_, err = c.Get(ctx, &kvpb.GetRequest{Key: "slow"})
		}
		return "", err
	})
	return status.Code(err).String(), puts
}

// TestLimitOfACallThatIsSentTwice: a call whose time limit ran out has taken that long, though
// it was sent a second time meanwhile: nothing is done with its context any more.
func TestLimitOfACallThatIsSentTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		server := &kvServer{get: slow("slow", 40*time.Millisecond)}
		_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, server) })
		_, other := w.serve("b", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, &kvServer{}) })
		asks := specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Ordered: true, ServerPredictions: true})
		cc, first := w.dial(addr, asks), w.dial(other, asks)
		late, err := foresay.Do(w.Context(), func(ctx context.Context) (error, error) {
			if _, err := guessed(ctx, kvpb.NewTestKVClient(first), "x", value("x")); err != nil {
				return nil, err
			}
			d, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
			defer cancel()
			_, err := kvpb.NewTestKVClient(cc).Get(d, &kvpb.GetRequest{Key: "slow"})
			wantCode(t, err, codes.DeadlineExceeded)
			time.Sleep(time.Millisecond)
			_, err = kvpb.NewTestKVClient(cc).Put(d, &kvpb.PutRequest{Key: "late"})
			return err, nil
		})
		if err != nil {
			w.Fatal(err)
		}
		wantCode(t, late, codes.DeadlineExceeded)
		w.quiet(cc)
		wantNotes(t, server, "get slow")
	})
}
