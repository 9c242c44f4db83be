package specgrpc_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
	"github.com/foresay/foresay/wan"
)

// trace notes what passes an interceptor.
type trace struct {
	mu   sync.Mutex
	seen []string
}

func (t *trace) note(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = append(t.seen, fmt.Sprintf(format, args...))
}

func (t *trace) unary(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	err := invoker(ctx, method, req, reply, cc, opts...)
	t.note("%s(%s) = %s, %v", method, req.(*kvpb.GetRequest).GetKey(), reply.(*kvpb.GetResponse).GetValue(),
		status.Code(err))
	return err
}

func (t *trace) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	t.note("stream %s", method)
	return streamer(ctx, desc, cc, method, opts...)
}

// sorted returns what was noted.
func (t *trace) sorted() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.seen))
}

func TestInterceptorsSeeActualResponsesOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, addr := w.kv("a", newSlowServer())
		var tr trace
		cc := w.dial(addr, grpc.WithUnaryInterceptor(tr.unary), grpc.WithStreamInterceptor(tr.stream))
		if _, _, err := doChain(w, cc, "wrong"); err != nil {
			w.Fatal(err)
		}
		w.quiet(cc)
		want := []string{
			getMethod + "(next to value of slow) = value of next to value of slow, OK",
			getMethod + "(next to wrong) = value of next to wrong, OK",
			getMethod + "(slow) = value of slow, OK",
		}
		if got := tr.sorted(); !slices.Equal(got, want) {
			w.Errorf("seen:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// An interceptor that ends its context when the call returns, as those for
// timeouts do, must not undo the call.
func TestInterceptorThatCancelsOnReturn(t *testing.T) {
	inWorld(t, func(w *world) {
		timeout := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		heard := make(chan string, 1)
		addr := w.serveScript("a", newSlowServer(), func(s *scripted) error {
			s.final(value("next to value of slow"), false)
			heard <- s.word()
			return nil
		})
		cc := w.dial(addr, grpc.WithUnaryInterceptor(timeout))
		got, _, err := doChain(w, cc, "value of slow")
		if err != nil || got != "value of next to value of slow" {
			w.Errorf("got %q, %v", got, err)
		}
		if word := <-heard; word != "confirm" {
			w.Errorf("the server heard %s, want confirm", word)
		}
	})
}

// limiting has each call end after 200 ms.
func limiting(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	return invoker(ctx, method, req, reply, cc, opts...)
}

// A call's time limit, whoever set it, begins when its caller is confirmed: run
// without speculation, the call would have been made only then.
func TestTimeLimitsBeginWithConfirm(t *testing.T) {
	const confirmedAfter = 300 * time.Millisecond
	for name, dial := range map[string][]grpc.DialOption{"interceptor": {grpc.WithUnaryInterceptor(limiting)},
		"code": nil} {
		for answersAfter, want := range map[time.Duration]codes.Code{150 * time.Millisecond: codes.OK,
			time.Hour: codes.DeadlineExceeded} {
			inWorld(t, func(w *world) {
				impl := &kvServer{get: slow("slow", confirmedAfter)}
				addr := w.serveScript("a", impl, func(s *scripted) error {
					if word := s.word(); word != "confirm" {
						return status.Errorf(codes.Internal, "%s, want confirm", word)
					}
					if err := pause(s.Context(), answersAfter); err != nil {
						return err
					}
					s.final(&kvpb.PutResponse{Version: 99}, false)
					return nil
				})
				cc := w.dial(addr)
				limited := w.dial(addr, append(dial, specgrpc.WithCallSites(staged))...)
				_, _ = kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{})
				_, _ = kvpb.NewTestKVClient(limited).Get(w.Context(), &kvpb.GetRequest{})
				start := time.Now()
				got, err := foresay.Do(w.Context(), func(ctx context.Context) (uint64, error) {
					first, err := guessed(ctx, kvpb.NewTestKVClient(cc), "slow", value("slow"))
					if err != nil {
						return 0, err
					}
					if dial == nil {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
						defer cancel()
					}
					res, err := kvpb.NewTestKVClient(limited).Put(ctx, &kvpb.PutRequest{Key: first.GetValue()})
					return res.GetVersion(), err
				})
				took := time.Since(start)
				wantCode(w, err, want)
				if want == codes.OK && got != 99 || want != codes.OK && took != confirmedAfter+rtt+200*time.Millisecond {
					w.Errorf("limit by %s: got %v, %v after %v", name, got, err, took)
				}
				w.quiet(limited)
			})
		}
	}
}

// An interceptor that tries again does so plainly, when the caller is confirmed.
func TestInterceptorThatRetries(t *testing.T) {
	inWorld(t, func(w *world) {
		retry := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			err := invoker(ctx, method, req, reply, cc, opts...)
			if status.Code(err) == codes.Unavailable {
				err = invoker(ctx, method, req, reply, cc, opts...)
			}
			return err
		}
		impl := &kvServer{}
		tries := 0
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "slow" {
				time.Sleep(100 * time.Millisecond)
			} else if tries++; tries == 1 {
				return nil, status.Error(codes.Unavailable, "try again")
			}
			return value(r.GetKey()), nil
		}
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr, grpc.WithUnaryInterceptor(retry))
		got, _, err := doChain(w, cc, "value of slow")
		if err != nil || got != "value of next to value of slow" {
			w.Errorf("got %q, %v", got, err)
		}
		wantNotes(w, impl, "get slow", "get next to value of slow", "get next to value of slow")
		w.quiet(cc, r)
	})
}

// RPCs that an interceptor makes of its own are no part of the task.
func TestInterceptorsOwnCallsArePlain(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		_, _, addr := w.kv("a", impl)
		tokens := w.dial(addr)
		fetch := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
			opts ...grpc.CallOption) error {
			token, err := kvpb.NewTestKVClient(tokens).Get(ctx, &kvpb.GetRequest{Key: "token"})
			if err != nil {
				return err
			}
			return invoker(metadata.AppendToOutgoingContext(ctx, "token", token.GetValue()), method, req, reply, cc, opts...)
		}
		cc := w.dial(addr, grpc.WithUnaryInterceptor(fetch))
		got, _, err := doChain(w, cc, "value of slow")
		if err != nil || got != "value of next to value of slow" {
			w.Errorf("got %q, %v", got, err)
		}
		if n := tokens.CallSite(getMethod).Stats().Calls; n != 0 {
			w.Errorf("%d of the interceptor's calls were taken for the task's", n)
		}
		if s := cc.CallSite(getMethod).Stats(); s.Refused != 0 {
			w.Errorf("stats %+v: the interceptor's call was taken for the attempt", s)
		}
		w.quiet(cc)
	})
}

func TestInterceptorsPanicReachesTheCaller(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, addr := w.kv("a", newSlowServer())
		cc := w.dial(addr, grpc.WithUnaryInterceptor(func(context.Context, string, any, any, *grpc.ClientConn,
			grpc.UnaryInvoker, ...grpc.CallOption) error {
			panic("bug in an interceptor")
		}))
		defer func() {
			if p, ok := recover().(*foresay.PanicError); !ok || p.Value != "bug in an interceptor" {
				w.Errorf("got %v, want the interceptor's panic", p)
			}
		}()
		_, _, _ = doChain(w, cc, "wrong")
	})
}

func TestOutsideOfTasksCallsArePlain(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		_, _, addr := w.kv("a", impl)
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true}))
		got, err := guessed(w.Context(), kvpb.NewTestKVClient(cc), "k", &kvpb.GetResponse{Value: "wrong"})
		if err != nil || got.GetValue() != "value of k" {
			w.Errorf("got %v, %v", got, err)
		}
		if n := cc.CallSite(getMethod).Stats().Calls; n != 0 {
			w.Errorf("the engine saw %d calls", n)
		}
	})
}

func TestObservedCallsSeeTheTransport(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			_ = grpc.SetHeader(ctx, metadata.Pairs("h", r.GetKey()))
			_ = grpc.SetTrailer(ctx, metadata.Pairs("t", r.GetKey()))
			switch r.GetKey() {
			case "slow":
				time.Sleep(100 * time.Millisecond)
			case "fails":
				return nil, status.Error(codes.NotFound, "no")
			}
			return value(r.GetKey()), nil
		}
		_, _, addr := w.kv("a", impl)
		cc := w.dial(addr)
		c := kvpb.NewTestKVClient(cc)
		runs := 0
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			runs++
			for _, key := range []string{"seen", "fails"} {
				var header, trailer metadata.MD
				var from peer.Peer
				finished := 0
				_, err := c.Get(foresay.Predicting(ctx, value("wrong")), &kvpb.GetRequest{Key: key},
					grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from), grpc.OnFinish(func(error) { finished++ }))
				if (err != nil) != (key == "fails") || header.Get("h")[0] != key || trailer.Get("t")[0] != key ||
					from.Addr == nil || finished != 1 {
					w.Errorf("run %d: %s: got %v, header %v, trailer %v, peer %v, %d times finished", runs, key, err, header, trailer,
						from.Addr, finished)
				}
			}
			_, err := guessed(ctx, c, "slow", value("wrong"))
			return "", err
		})
		if err != nil {
			w.Error(err)
		}
		if runs != 2 {
			w.Errorf("%d runs, want 2", runs)
		}
		wantNotes(w, impl, "get seen", "get fails", "get slow")
	})
}

// Two connections are two, even to one target: a later run that makes the same
// request on the other one does not get the first one's answer.
func TestConnectionsAreToldApart(t *testing.T) {
	inWorld(t, func(w *world) {
		serve := func(site wan.Site) string {
			_, _, addr := w.kv(site, &kvServer{get: func(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
				if r.GetKey() == "slow" {
					time.Sleep(100 * time.Millisecond)
				}
				return &kvpb.GetResponse{Value: string(site)}, nil
			}})
			return addr
		}
		dial := func(addr string) kvpb.TestKVClient {
			return kvpb.NewTestKVClient(w.dial("anywhere",
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
					return w.net.Dial(ctx, "client", addr)
				})))
		}
		a, b := dial(serve("a")), dial(serve("b"))
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			first, err := guessed(ctx, a, "slow", value("wrong"))
			if err != nil {
				return "", err
			}
			c := a
			if first.GetValue() == "a" {
				c = b
			}
			next, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
			return next.GetValue(), err
		})
		if err != nil || got != "b" {
			w.Errorf("got %q, %v", got, err)
		}
	})
}

func TestMetadataOfACallSite(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", 100*time.Millisecond)}
		_, _, addr := w.kv("a", impl)
		for _, ignored := range []bool{true, false} {
			impl.seen = nil
			site := control.CallSiteConfig{Name: getMethod}
			want := []string{"get slow", "get k"}
			if ignored {
				site.IgnoreMetadata = []string{"Tenant"}
			} else {
				want = append(want, "get k")
			}
			cc := w.dial(addr, specgrpc.WithCallSites(site))
			c := kvpb.NewTestKVClient(cc)
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				got, err := guessed(ctx, c, "slow", value("wrong"))
				if err != nil {
					return "", err
				}
				// The replay makes the same request for another tenant.
				ctx = metadata.AppendToOutgoingContext(ctx, "tenant", got.GetValue())
				_, err = c.Get(ctx, &kvpb.GetRequest{Key: "k"})
				return "", err
			})
			if err != nil {
				w.Error(err)
			}
			wantNotes(w, impl, want...)
		}
	})
}

func TestCallerMayChangeTheRequestAfterAPrediction(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		_, _, addr := w.kv("a", impl)
		c := kvpb.NewTestKVClient(w.dial(addr))
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			req := &kvpb.GetRequest{Key: "slow"}
			got, err := c.Get(foresay.Predicting(ctx, value("slow")), req)
			req.Key = "changed"
			was := got.GetValue()
			got.Value = "changed as well"
			return was, err
		})
		if err != nil || got != "value of slow" {
			w.Errorf("got %q, %v", got, err)
		}
		wantNotes(w, impl, "get slow")
	})
}

func TestStreamsAreBarriers(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		_, addr := w.serve("a", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(s, impl)
		}, grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error { impl.note("stream"); return nil }))
		cc := w.dial(addr)
		for _, prediction := range []string{"value of slow", "wrong"} {
			impl.seen = nil
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				if _, err := guessed(ctx, kvpb.NewTestKVClient(cc), "slow", &kvpb.GetResponse{Value: prediction}); err != nil {
					return "", err
				}
				s, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/x.Y/Z")
				if err != nil {
					return "", err
				}
				if err := s.SendMsg(&kvpb.GetRequest{}); err != nil {
					return "", err
				}
				_ = s.RecvMsg(&kvpb.GetResponse{})
				return "", nil
			})
			if err != nil {
				w.Error(err)
			}
			wantNotes(w, impl, "get slow", "stream")
		}
	})
}

// textCodec carries strings.
type textCodec struct{}

func (textCodec) Marshal(v any) ([]byte, error)      { return []byte(*v.(*string)), nil }
func (textCodec) Unmarshal(data []byte, v any) error { *v.(*string) = string(data); return nil }
func (textCodec) Name() string                       { return "text" }

var _ encoding.Codec = textCodec{}

func TestOtherMessagesGoBehindABarrier(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := newSlowServer()
		_, addr := w.serve("a", func(s *grpc.Server) { kvpb.RegisterTestKVServer(s, impl) },
			grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				var text string
				if err := s.RecvMsg(&text); err != nil {
					return err
				}
				impl.note("text %s", text)
				return s.SendMsg(&text)
			}))
		// The codec is the client's choice; the server learns it from the call.
		encoding.RegisterCodec(textCodec{})
		cc := w.dial(addr)
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			first, err := guessed(ctx, kvpb.NewTestKVClient(cc), "slow", value("wrong"))
			if err != nil {
				return "", err
			}
			in, out := first.GetValue(), ""
			err = cc.Invoke(ctx, "/x.Y/Z", &in, &out, grpc.CallContentSubtype("text"))
			return out, err
		})
		if err != nil || got != "value of slow" {
			w.Errorf("got %q, %v", got, err)
		}
		wantNotes(w, impl, "get slow", "text value of slow")
	})
}

// No speculative stream is opened for what it cannot or should not carry.
func TestCallsThatAreNotForSpeculativeStreams(t *testing.T) {
	for name, opt := range map[string]grpc.DialOption{
		"another codec": grpc.WithDefaultCallOptions(grpc.ForceCodecV2(encoding.GetCodecV2("proto"))),
		"large request": specgrpc.WithMaxSpeculativeRequest(10),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				streams := 0
				addr := w.serveScript("a", newSlowServer(), func(s *scripted) error {
					streams++
					s.final(value("next to value of slow"), false)
					s.word()
					return nil
				})
				cc := w.dial(addr, opt)
				got, took, err := doChain(w, cc, "value of slow")
				if err != nil || got != "value of next to value of slow" || took < 100*time.Millisecond+2*rtt {
					w.Errorf("got %q, %v after %v", got, err, took)
				}
				if streams != 0 {
					w.Errorf("%d speculative streams", streams)
				}
				w.quiet(cc)
			})
		})
	}
}
