package specgrpc_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// staging is a service whose Put stages its effect: the notes tell what became
// of it.
func staging() *kvServer {
	s := &kvServer{}
	s.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		foresay.OnCommit(ctx, func() { s.note("committed %s", r.GetKey()) })
		foresay.OnRollback(ctx, func() { s.note("rolled back %s", r.GetKey()) })
		return &kvpb.PutResponse{Version: 7}, nil
	}
	return s
}

// halfPut is a staged Put that awaits its caller's word.
type halfPut struct {
	*world
	*rawCall
	conn      *grpc.ClientConn
	impl      *kvServer
	server    *grpc.Server
	registrar *specgrpc.ServiceRegistrar
}

func halfOpenPut(w *world) *halfPut {
	w.Helper()
	h := &halfPut{world: w, impl: staging()}
	var addr string
	h.registrar, h.server, addr = w.kv("a", h.impl, specgrpc.Stages(putMethod))
	h.conn = w.raw(addr)
	h.rawCall = w.openRaw(h.conn, putMethod)
	h.sendRequest(h.request(&kvpb.PutRequest{Key: "k", Value: "v"}))
	if f := h.final(); !f.GetTentative() {
		w.Fatalf("got %v, want a tentative Final: the method stages effects", f)
	}
	return h
}

func TestConfirmCommits(t *testing.T) {
	inWorld(t, func(w *world) {
		h := halfOpenPut(w)
		synctest.Wait()
		wantNotes(w, h.impl, "put k=v")
		if n := h.registrar.HalfOpen(); n != 1 {
			w.Errorf("%d half-open calls, want 1", n)
		}
		h.confirm()
		if err := h.end(); err != nil {
			w.Errorf("the stream ended with %v, want OK", err)
		}
		wantNotes(w, h.impl, "put k=v", "committed k")
	})
}

func confirmOf(id []byte, attempt uint32) *specv1.ClientFrame {
	return &specv1.ClientFrame{Frame: &specv1.ClientFrame_Confirm{Confirm: &specv1.Confirm{CallId: id, Attempt: attempt}}}
}

// Only an explicit Confirm confirms.
func TestAnythingButConfirmAborts(t *testing.T) {
	ends := map[string]func(h *halfPut){
		"abort":                      func(h *halfPut) { h.abort() },
		"half-close":                 func(h *halfPut) { _ = h.stream.CloseSend() },
		"reset":                      func(h *halfPut) { h.cancel() },
		"connection closed":          func(h *halfPut) { h.conn.Close() },
		"peer crashed":               func(h *halfPut) { h.net.Crash("client") },
		"empty frame":                func(h *halfPut) { h.send(&specv1.ClientFrame{}) },
		"second request":             func(h *halfPut) { h.sendRequest(h.request(&kvpb.PutRequest{Key: "k"})) },
		"confirm of another call":    func(h *halfPut) { h.send(confirmOf([]byte("fedcba9876543210"), 1)) },
		"confirm of another attempt": func(h *halfPut) { h.send(confirmOf(h.id, 2)) },
		"confirm without an id":      func(h *halfPut) { h.send(confirmOf(nil, 0)) },
		"silence for the lease":      func(*halfPut) { time.Sleep(15 * time.Second) },
		"graceful stop":              func(h *halfPut) { specgrpc.GracefulStop(h.server, h.registrar) },
		"stop":                       func(h *halfPut) { h.server.Stop() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				h := halfOpenPut(w)
				end(h)
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				wantNotes(w, h.impl, "put k=v", "rolled back k")
				if h.registrar.HalfOpen() != 0 {
					w.Error("the call is still half-open")
				}
				_ = h.stream.SendMsg(confirmOf(h.id, 1)) // too late
				time.Sleep(time.Second)
				wantNotes(w, h.impl, "put k=v", "rolled back k")
			})
		})
	}
}

func TestDeadlineAborts(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		_, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod))
		cc := w.raw(addr)
		ctx, cancel := context.WithTimeout(w.Context(), 200*time.Millisecond)
		defer cancel()
		s, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, putMethod+".spec")
		if err != nil {
			w.Fatal(err)
		}
		c := &rawCall{w: w, stream: s, id: []byte("0123456789abcdef")}
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		c.final()
		wantCode(w, c.end(), codes.DeadlineExceeded)
		time.Sleep(100 * time.Millisecond)
		wantNotes(w, impl, "put k=", "rolled back k")
	})
}

func TestCallersLeaseIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		_, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod))
		c := w.openRaw(w.raw(addr), putMethod)
		req := c.request(&kvpb.PutRequest{Key: "k"})
		req.LeaseMs = 250
		start := time.Now()
		c.sendRequest(req)
		c.final()
		wantCode(w, c.end(), codes.Aborted)
		if took := time.Since(start); took < 250*time.Millisecond || took > 300*time.Millisecond {
			w.Errorf("undone after %v, want about 250ms", took)
		}
	})
}

func TestSecondWordChangesNothing(t *testing.T) {
	for _, first := range []string{"confirm", "abort"} {
		t.Run(first, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := staging()
				put := impl.put
				impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
					res, err := put(ctx, r)
					time.Sleep(time.Second) // so that all words arrive before the end
					return res, err
				}
				var out logs
				_, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod), specgrpc.WithServerLogger(out.logger()))
				c := w.openRaw(w.raw(addr), putMethod)
				c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
				time.Sleep(100 * time.Millisecond) // so that the handler has begun: aborted before, it never does
				words := []func(){c.confirm, c.confirm, c.abort, c.abort}
				want := "committed k"
				if first == "abort" {
					words = []func(){c.abort, c.abort, c.confirm, c.confirm}
					want = "rolled back k"
				}
				for _, say := range words {
					say()
				}
				time.Sleep(2 * time.Second)
				wantNotes(w, impl, "put k=", want)
				if got := strings.Count(out.String(), "contradicts"); got != 2 {
					w.Errorf("%d contradictions logged, want 2:\n%s", got, out.String())
				}
			})
		})
	}
}

func TestConfirmBeforeTheResult(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		put := impl.put
		impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
			if err := foresay.Barrier(ctx); err != nil {
				return nil, err
			}
			impl.note("past the barrier")
			return put(ctx, r)
		}
		_, _, addr := w.kv("a", impl, specgrpc.Stages(putMethod))
		c := w.openRaw(w.raw(addr), putMethod)
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		time.Sleep(time.Second)
		wantNotes(w, impl, "put k=")
		c.confirm()
		if f := c.final(); f.GetTentative() {
			w.Errorf("got %v, want a Final that stands: the call is confirmed", f)
		}
		if err := c.end(); err != nil {
			w.Error(err)
		}
		wantNotes(w, impl, "put k=", "past the barrier", "committed k")
	})
}

// A word may come while the interceptors still run.
func TestWordBeforeTheHandler(t *testing.T) {
	for _, word := range []string{"confirm", "abort"} {
		t.Run(word, func(t *testing.T) {
			inWorld(t, func(w *world) {
				impl := staging()
				put := impl.put
				impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
					if err := foresay.Barrier(ctx); err != nil {
						return nil, err
					}
					return put(ctx, r)
				}
				slowly := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
					time.Sleep(time.Second)
					return handler(ctx, req)
				}
				r, _, addr := w.kv("a", impl, grpc.ChainUnaryInterceptor(slowly), specgrpc.Stages(putMethod))
				c := w.openRaw(w.raw(addr), putMethod)
				c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
				if word == "abort" {
					c.abort()
					wantCode(w, c.end(), codes.Canceled)
					wantNotes(w, impl)
				} else {
					c.confirm()
					c.final()
					if err := c.end(); err != nil {
						w.Error(err)
					}
					wantNotes(w, impl, "put k=", "committed k")
				}
				if r.HalfOpen() != 0 {
					w.Error("a half-open call is left")
				}
			})
		})
	}
}

// A confirmed call ends like a plain one: the lease has no part in it.
func TestNoLeaseAfterConfirm(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", time.Minute)}
		_, _, addr := w.kv("a", impl)
		c := w.openRaw(w.raw(addr), getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "slow"}))
		c.confirm()
		if f := c.final(); f.GetPayload() == nil {
			w.Errorf("got %v, want a response", f)
		}
		if err := c.end(); err != nil {
			w.Error(err)
		}
	})
}

// The status of a call that is undone names the method, the call and its
// caller, and says why; but to the caller that undid it, it only says that.
func TestStatusesOfUndoneCallsNameThem(t *testing.T) {
	ends := map[string]struct {
		end func(h *halfPut)
		why string
	}{
		"silence": {func(*halfPut) { time.Sleep(15 * time.Second) }, "no word from the caller for the length of the lease"},
		"stop":    {func(h *halfPut) { specgrpc.GracefulStop(h.server, h.registrar) }, "the server is stopping"},
		"another": {func(h *halfPut) { h.send(confirmOf(h.id, 2)) }, "frame Confirm names another"},
	}
	for name, tt := range ends {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				h := halfOpenPut(w)
				tt.end(h)
				err := h.rawCall.end()
				prefix, why, found := strings.Cut(status.Convert(err).Message(), ": undone: ")
				if !found || !strings.HasPrefix(why, tt.why) {
					w.Errorf("got status %v; want %q", err, tt.why)
				}
				call, caller, _ := strings.Cut(prefix, " of ")
				if !strings.HasPrefix(call, "specgrpc: "+putMethod+", call ") || !strings.Contains(caller, "client") {
					w.Errorf("%q does not name the method, the call and the client", prefix)
				}
			})
		})
	}
	inWorld(t, func(w *world) {
		h := halfOpenPut(w)
		h.abort()
		if got, want := status.Convert(h.rawCall.end()).Message(), "the caller said Abort"; got != want {
			w.Errorf("the caller that said Abort got %q, want %q", got, want)
		}
	})
}
