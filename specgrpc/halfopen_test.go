package specgrpc_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/report"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// fan reads "slow", predicted, and then n more keys at once on that guess.
func fan(ctx context.Context, c kvpb.TestKVClient, n int) error {
	if _, err := guessed(ctx, c, "slow", value("slow")); err != nil {
		return err
	}
	g := foresay.NewGroup(ctx)
	for i := range n {
		g.Go(func(ctx context.Context) error {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: fmt.Sprint(i)})
			return err
		})
	}
	return g.Wait()
}

// fewStreams connects the client to a slow server, of which it learns that it takes so few streams
// at a time, and to a gate: a task that guesses a call there stands on the guess for long.
func (w *world) fewStreams(
	streams uint32, gate kvpb.TestKVServer, opts ...grpc.DialOption,
) (r *specgrpc.ServiceRegistrar, cc, gateConn *specgrpc.ClientConn) {
	w.Helper()
	r, _, addr := w.kv("a", newSlowServer(), grpc.MaxConcurrentStreams(streams))
	_, _, gateAddr := w.kv("b", gate)
	cc, gateConn = w.dial(addr, opts...), w.dial(gateAddr)
	for range 2 {
		_, _ = kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{})
	}
	return r, cc, gateConn
}

// No more than two streams await their caller's word at once. Further calls wait for their turn,
// which comes when others are answered; where none is, they are made plainly in the end.
func TestHalfOpenStreamsAreLimited(t *testing.T) {
	for name, tt := range map[string]struct {
		work    time.Duration
		refused int64
		took    time.Duration
	}{
		"answered":   {0, 0, 100 * time.Millisecond},
		"unanswered": {150 * time.Millisecond, 3, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
					work := tt.work
					if r.GetKey() == "slow" {
						work = 100 * time.Millisecond
					}
					return value(r.GetKey()), pause(ctx, work)
				}}
				r, _, addr := w.kv("a", impl)
				cc := w.dial(addr, specgrpc.WithMaxHalfOpen(2))
				c := kvpb.NewTestKVClient(cc)
				if _, err := c.Get(w.Context(), &kvpb.GetRequest{}); err != nil {
					w.Fatal(err)
				}
				start := time.Now()
				var told *report.Report
				done := make(chan error)
				go func() {
					_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) { return 0, fan(ctx, c, 5) },
						foresay.WithReport(func(r *report.Report) { told = r }))
					done <- err
				}()
				for range 50 {
					time.Sleep(time.Millisecond)
					if n, most := max(cc.HalfOpen(), r.HalfOpen()-3), 2; n > most {
						w.Fatalf("%d half-open streams, want at most %d", n, most)
					}
				}
				if err := <-done; err != nil {
					w.Error(err)
				}
				if took := time.Since(start); took > tt.took+4*rtt {
					w.Errorf("it took %v, want %v", took, tt.took)
				}
				if s := cc.CallSite(getMethod).Stats(); s.Refused > tt.refused || s.Limited != 3 {
					w.Errorf("stats %+v, want at most %d calls turned away, and 3 limited", s, tt.refused)
				}
				if !slices.Equal(told.LimitedBy, []string{string(control.LimitHalfOpen)}) {
					w.Errorf("the task is limited by %q", told.LimitedBy)
				}
				w.quiet(cc, r)
			})
		})
	}
}

func TestNoSpeculativeStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		addr := w.serveScript("a", impl, func(*scripted) error {
			return status.Error(codes.Internal, "nobody should come here")
		})
		cc := w.dial(addr, specgrpc.WithMaxHalfOpen(0))
		if _, _, err := doChain(w, cc, "value of slow"); err != nil {
			w.Error(err)
		}
		wantNotes(w, impl, "get slow", "get next to value of slow")
	})
}

func TestServerLimitsHalfOpenCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		r, _, addr := w.kv("a", impl, specgrpc.WithMaxHalfOpenCalls(4)) // two for one caller
		cc := w.dial(addr)
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
			return 0, fan(ctx, kvpb.NewTestKVClient(cc), 5)
		})
		if err != nil {
			w.Error(err)
		}
		// A call that is made after a refusal has told of the limit is not sent.
		if s := cc.CallSite(getMethod).Stats(); s.Limited != 3 || s.Refused < 1 || s.Refused > 3 {
			w.Errorf("stats %+v, want 3 that met the limit", s)
		}
		w.quiet(cc, r)
	})
}

// With two streams admitted, and two half-open, a plain call has the older one
// aborted: the confirmation of both may depend on it.
func TestHalfOpenStreamsGiveWayToPlainCalls(t *testing.T) {
	for name, answer := range map[string]bool{"answered": true, "unanswered": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				limited := grpc.MaxConcurrentStreams(2)
				release := make(chan struct{})
				blocked := make(chan struct{})
				if answer {
					close(blocked)
				}
				impl := &kvServer{}
				impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
					if r.GetKey() != "plain" {
						select {
						case <-blocked:
						case <-ctx.Done():
							impl.note("gave up %s", r.GetKey())
						}
					}
					return value(r.GetKey()), nil
				}
				var r *specgrpc.ServiceRegistrar
				_, addr := w.serve("a", func(s *grpc.Server) {
					r = specgrpc.Registrar(s)
					kvpb.RegisterTestKVServer(r, impl)
				}, limited)
				gate := &kvServer{get: func(context.Context, *kvpb.GetRequest) (*kvpb.GetResponse, error) {
					<-release
					return value("slow"), nil
				}}
				_, _, gateAddr := w.kv("b", gate)
				cc, gateConn := w.dial(addr), w.dial(gateAddr)
				c := kvpb.NewTestKVClient(cc)
				for range 2 {
					_, _ = c.Get(w.Context(), &kvpb.GetRequest{Key: "plain"})
				}
				done := w.onGuess(gateConn, func(ctx context.Context) error {
					for i := range 2 {
						time.Sleep(time.Millisecond) // so that 0 is the older one
						if _, err := guessed(ctx, c, fmt.Sprint(i), value(fmt.Sprint(i))); err != nil {
							return err
						}
					}
					return nil
				})
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				if n := cc.HalfOpen(); n != 2 {
					w.Fatalf("%d half-open streams, want 2", n)
				}
				start := time.Now()
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				if _, err := c.Get(ctx, &kvpb.GetRequest{Key: "plain"}); err != nil {
					w.Errorf("the plain call: %v after %v", err, time.Since(start))
				}
				if took := time.Since(start); took > 20*time.Millisecond+2*rtt {
					w.Errorf("the plain call took %v", took)
				}
				if !answer {
					close(blocked)
				}
				if notes := impl.notes(); slices.Contains(notes, "gave up 0") == answer || slices.Contains(notes, "gave up 1") {
					w.Errorf("%q: want the older call aborted", notes)
				}
				close(release) // as if it had depended on the plain call
				if err := <-done; err != nil {
					w.Error(err)
				}
				w.quiet(cc, r)
			})
		})
	}
}

// A half-open stream whose result is in goes first, although it is younger:
// nothing is lost by that.
func TestAnsweredStreamsGiveWayFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("waits", 100*time.Millisecond)}
		r, _, addr := w.kv("a", impl, grpc.MaxConcurrentStreams(2))
		_, _, gateAddr := w.kv("b", &kvServer{get: slow("slow", 300*time.Millisecond)})
		cc, gate := w.dial(addr), w.dial(gateAddr)
		c := kvpb.NewTestKVClient(cc)
		for range 2 {
			_, _ = c.Get(w.Context(), &kvpb.GetRequest{})
		}
		done := w.onGuess(gate, func(ctx context.Context) (err error) {
			for _, key := range []string{"waits", "does not"} {
				if err == nil {
					time.Sleep(time.Millisecond)
					_, err = guessed(ctx, c, key, value(key))
				}
			}
			return err
		})
		time.Sleep(80 * time.Millisecond)
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "plain"}); err != nil {
			w.Error(err)
		}
		if err := <-done; err != nil {
			w.Error(err)
		}
		if s := cc.CallSite(getMethod).Stats(); s.Refused != 0 {
			w.Errorf("stats %+v: a call lost its stream before its result", s)
		}
		w.quiet(cc, r)
	})
}

// On a long way only as many streams are aborted as are needed.
func TestOneStreamGivesWayToOneCall(t *testing.T) {
	inWorld(t, func(w *world) {
		r, cc, gate := w.fewStreams(3, &kvServer{get: slow("slow", 2*time.Second)})
		c := kvpb.NewTestKVClient(cc)
		// Not a multiple of the time between two looks: what frees a stream comes between them.
		w.net.SetLink("client", "a", wan.Link{Delay: 101 * time.Millisecond})
		w.net.SetLink("a", "client", wan.Link{Delay: 101 * time.Millisecond})
		done := w.onGuess(gate, func(ctx context.Context) (err error) {
			for i := 0; i < 3 && err == nil; i++ {
				_, err = guessed(ctx, c, fmt.Sprint(i), value(fmt.Sprint(i)))
			}
			return err
		})
		time.Sleep(time.Second)
		if n := cc.HalfOpen(); n != 3 {
			w.Errorf("%d half-open streams, want 3", n)
		}
		start := time.Now()
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "plain"}); err != nil {
			w.Error(err)
		}
		if took, n := time.Since(start), cc.HalfOpen(); n != 2 || took > 500*time.Millisecond {
			w.Errorf("after %v there are %d half-open streams, want 2", took, n)
		}
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.quiet(cc, r)
	})
}

// The same with a stream of the user's.
func TestHalfOpenStreamsGiveWayToStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		r, cc, gate := w.fewStreams(1, newSlowServer())
		c := kvpb.NewTestKVClient(cc)
		done := w.onGuess(gate, func(ctx context.Context) error {
			_, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
			return err
		})
		time.Sleep(50 * time.Millisecond)
		if n := cc.HalfOpen(); n != 1 {
			w.Fatalf("%d half-open streams, want 1", n)
		}
		start := time.Now()
		s, err := cc.NewStream(w.Context(), &grpc.StreamDesc{ServerStreams: true}, "/x.Y/Z")
		if err != nil {
			w.Fatal(err)
		}
		if took := time.Since(start); took > 20*time.Millisecond+2*rtt {
			w.Errorf("the stream opened after %v", took)
		}
		if err := s.SendMsg(&kvpb.GetRequest{}); err != nil {
			w.Error(err)
		}
		wantCode(w, s.RecvMsg(&kvpb.GetResponse{}), codes.Unimplemented)
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.quiet(cc, r)
	})
}

// A speculative call for which the peer has no stream is held: the half-open
// calls that have the streams may have been made on a guess at its result.
func TestSpeculativeCallsGiveWay(t *testing.T) {
	inWorld(t, func(w *world) {
		r, cc, gate := w.fewStreams(1, newSlowServer())
		c := kvpb.NewTestKVClient(cc)
		// While this call has the only stream the others queue up, to get it in
		// whatever order.
		go func() { _, _ = c.Get(w.Context(), &kvpb.GetRequest{Key: "slow"}) }()
		time.Sleep(time.Millisecond)
		start := time.Now()
		err := <-w.onGuess(gate, func(ctx context.Context) error {
			for i := range 8 {
				if _, err := guessed(ctx, c, fmt.Sprint(i), value(fmt.Sprint(i))); err != nil {
					return err
				}
			}
			return nil
		})
		if took := time.Since(start); err != nil || took > 2*time.Second {
			w.Errorf("%v after %v", err, took)
		}
		w.quiet(cc, r)
	})
}

// Tasks and plain calls that fight for two streams all come to their ends.
func TestManyCallsOverFewStreams(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		r, _, addr := w.kv("a", impl, grpc.MaxConcurrentStreams(2))
		cc := w.dial(addr)
		c := kvpb.NewTestKVClient(cc)
		for range 2 {
			_, _ = c.Get(w.Context(), &kvpb.GetRequest{})
		}
		start := time.Now()
		var done sync.WaitGroup
		for i := range 20 {
			prediction := "value of slow"
			if i%3 == 0 {
				prediction = "wrong"
			}
			done.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				if got, _, err := doChain(w, cc, prediction); err != nil || got != "value of next to value of slow" {
					w.Errorf("task %d: got %q, %v", i, got, err)
				}
			})
			done.Go(func() {
				time.Sleep(time.Duration(i) * 11 * time.Millisecond)
				if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "plain"}); err != nil {
					w.Errorf("call %d: %v", i, err)
				}
			})
		}
		done.Wait()
		if took := time.Since(start); took > 10*time.Second {
			w.Errorf("took %v", took)
		}
		w.quiet(cc, r)
	})
}
