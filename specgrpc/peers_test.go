package specgrpc_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// A peer that does not offer the speculative stream is asked again only after a
// while, and its calls are plain.
func TestUnawarePeers(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		asked := 0
		_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, impl) },
			grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				asked++
				return status.Error(codes.Unimplemented, "unknown")
			}))
		cc := w.dial(addr)
		for range 3 {
			got, took, err := doChain(w, cc, "value of slow")
			if err != nil || got != "value of next to value of slow" || took < 100*time.Millisecond+2*rtt {
				w.Errorf("got %q, %v after %v", got, err, took)
			}
		}
		if asked != 1 {
			w.Errorf("asked %d times, want once", asked)
		}
		time.Sleep(5 * time.Second)
		if _, _, err := doChain(w, cc, "value of slow"); err != nil {
			w.Error(err)
		}
		if asked != 2 {
			w.Errorf("asked %d times, want once more after a while", asked)
		}
		w.quiet(cc)
	})
}

// Confirmation may be under way when the peer turns out to know nothing of the
// stream: nothing ran, so the call is made plainly.
func TestUnawarePeerAfterConfirm(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", rtt/2)}
		addr := w.serveScript("a", impl, func(s *scripted) error {
			s.word()
			return status.Error(codes.Unimplemented, "unknown")
		})
		cc := w.dial(addr, specgrpc.WithCallSites(staged))
		got, err := getThenPut(w, cc)
		if err != nil || got.GetVersion() != 1 {
			w.Errorf("got %v, %v", got, err)
		}
		wantNotes(w, impl, "get slow", putNote)
	})
}

func TestRefusedAfterConfirm(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		cc := w.dial(w.serveScript("a", impl, func(s *scripted) error {
			s.word()
			s.refuse(1)
			return nil
		}), specgrpc.WithCallSites(staged))
		got, err := getThenPut(w, cc)
		if err != nil || got.GetVersion() != 1 {
			w.Errorf("got %v, %v", got, err)
		}
		wantNotes(w, impl, "get slow", putNote)
	})
}

// A method that the client takes for staged, and the server does not know as
// such, runs once its caller is confirmed.
func TestServerRefusesWhatItDoesNotStage(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr, specgrpc.WithCallSites(staged))
		got, err := getThenPut(w, cc)
		if err != nil || got.GetVersion() != 1 {
			w.Errorf("got %v, %v", got, err)
		}
		wantNotes(w, impl, "get slow", putNote)
		if s := cc.CallSite(putMethod).Stats(); s.Refused != 1 {
			w.Errorf("stats %+v, want one refusal", s)
		}
		w.quiet(cc, r)
	})
}

// The service config's retries do not resend what was sent for a speculative
// caller.
func TestNoRetriesOnSpeculativeStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		const config = `{"methodConfig": [{"name": [{"service": "foresay.testkv.v1.TestKV"}],
			"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`
		streams := 0
		impl := newSlowServer()
		addr := w.serveScript("a", impl, func(*scripted) error {
			streams++
			return status.Error(codes.Unavailable, "overloaded")
		})
		cc := w.dial(addr, grpc.WithDefaultServiceConfig(config), specgrpc.WithCallSites(staged))
		if _, err := getThenPut(w, cc); err != nil {
			w.Error(err)
		}
		if streams != 1 {
			w.Errorf("%d attempts, want 1", streams)
		}
		wantNotes(w, impl, "get slow", putNote)
	})
}

func TestServerPredictionsAreTaken(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "slow" {
				if err := foresay.Predict(ctx, value("slow")); err != nil {
					return nil, err
				}
				time.Sleep(100 * time.Millisecond)
			}
			return value(r.GetKey()), nil
		}
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true}))
		c := kvpb.NewTestKVClient(cc)
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{}); err != nil {
			w.Fatal(err)
		}
		start := time.Now()
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			first, err := c.Get(ctx, &kvpb.GetRequest{Key: "slow"})
			if err != nil {
				return "", err
			}
			next, err := c.Get(ctx, &kvpb.GetRequest{Key: first.GetValue()})
			return next.GetValue(), err
		})
		if took := time.Since(start); err != nil || got != "value of value of slow" || took != 100*time.Millisecond+rtt {
			w.Errorf("got %q, %v after %v; want the second call to overlap the first", got, err, took)
		}
		w.quiet(cc, r)
	})
}

// TestSilentServersAreSeldomAsked: a call does not pay for a stream where the server has
// had nothing to offer for long, and does again soon after it has.
func TestSilentServersAreSeldomAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		predicts, asked := false, 0
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if predicts {
				_ = foresay.Predict(ctx, value(r.GetKey()))
			}
			return value(r.GetKey()), nil
		}
		r, _, addr := w.kv("a", impl, grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo,
			handler grpc.StreamHandler) error {
			asked++
			return handler(srv, ss)
		}))
		all, err := control.New(control.Config{Budget: -1}) // although nothing follows the calls
		if err != nil {
			w.Fatal(err)
		}
		cc := w.dial(addr, specgrpc.WithControl(all),
			specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true}))
		c := kvpb.NewTestKVClient(cc)
		calls := func(n int) (of int) {
			before := asked
			for range n {
				if _, err := foresay.Do(w.Context(), func(ctx context.Context) (*kvpb.GetResponse, error) {
					return c.Get(ctx, &kvpb.GetRequest{Key: "k"})
				}); err != nil {
					w.Fatal(err)
				}
			}
			return asked - before
		}
		if n := calls(64); n != 64 {
			w.Errorf("%d of the first 64 calls asked", n)
		}
		if n := calls(640); n != 10 {
			w.Errorf("%d of 640 calls asked a server that is silent, want one in 64", n)
		}
		predicts = true
		calls(64)
		if n := calls(100); n != 100 {
			w.Errorf("%d of 100 calls asked a server that predicts", n)
		}
		w.quiet(cc, r)
	})
}

func TestServerPredictionsFromUnawarePeers(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, impl) })
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, ServerPredictions: true}))
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (*kvpb.PutResponse, error) {
			return kvpb.NewTestKVClient(cc).Put(ctx, &kvpb.PutRequest{Key: "k"})
		})
		if err != nil || got.GetVersion() != 1 {
			w.Errorf("got %v, %v", got, err)
		}
		wantNotes(w, impl, "put k=")
	})
}

// A confirmed caller's side effect whose stream is lost is not repeated.
func TestLostConfirmedCallIsNotRepeated(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		addr := w.serveScript("a", impl, func(*scripted) error { return status.Error(codes.Unavailable, "gone") })
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, ServerPredictions: true}))
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (*kvpb.PutResponse, error) {
			return kvpb.NewTestKVClient(cc).Put(ctx, &kvpb.PutRequest{Key: "k"})
		})
		wantCode(w, err, codes.Unavailable)
		for _, want := range []string{putMethod, "passthrough:///" + addr, "outcome unknown", "/1"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				w.Errorf("the error %v does not say %q", err, want)
			}
		}
		wantNotes(w, impl)
	})
}

func TestClosedPort(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		_, _, addr := w.kv("a", impl)
		cc := w.dial(addr)
		nobody := w.dial("b:9")
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			if _, err := guessed(ctx, kvpb.NewTestKVClient(cc), "slow", value("slow")); err != nil {
				return "", err
			}
			_, err := kvpb.NewTestKVClient(nobody).Get(ctx, &kvpb.GetRequest{Key: "k"})
			return "", err
		})
		wantCode(w, err, codes.Unavailable)
		if got := nobody.GetState(); got != connectivity.TransientFailure && got != connectivity.Connecting &&
			got != connectivity.Idle {
			w.Errorf("state %v", got)
		}
	})
}

// The call of a confirmed caller that wants predictions ends with its context,
// as a plain one: at once, and at the server as well.
func TestContextOfAConfirmedCall(t *testing.T) {
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(300*time.Millisecond, cancel)
			return ctx, cancel
		},
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 300*time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				ended := make(chan time.Time, 1)
				limited := false
				impl := &kvServer{put: func(ctx context.Context, _ *kvpb.PutRequest) (*kvpb.PutResponse, error) {
					_, limited = ctx.Deadline()
					<-ctx.Done()
					ended <- time.Now()
					return nil, ctx.Err()
				}}
				r, _, addr := w.kv("a", impl)
				cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, ServerPredictions: true}))
				start := time.Now()
				_, err := foresay.Do(w.Context(), func(ctx context.Context) (*kvpb.PutResponse, error) {
					ctx, cancel := limit(ctx)
					defer cancel()
					return kvpb.NewTestKVClient(cc).Put(ctx, &kvpb.PutRequest{Key: "k"})
				})
				want := codes.Canceled
				if name == "deadline" {
					want = codes.DeadlineExceeded
				}
				wantCode(w, err, want)
				if took := time.Since(start); took != 300*time.Millisecond {
					w.Errorf("took %v", took)
				}
				if took := (<-ended).Sub(start); took > 300*time.Millisecond+rtt {
					w.Errorf("the handler ended after %v", took)
				}
				if limited != (name == "deadline") {
					w.Errorf("the handler sees a deadline: %v", limited)
				}
				w.quiet(cc, r)
			})
		})
	}
}
