package specgrpc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/foresay/foresay"
	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// relay forwards the streams that it is served to a backend. As some proxies
// do, it passes the end of a client, whatever end that is, on as an END_STREAM.
func relay(backend *grpc.ClientConn) grpc.StreamHandler {
	return func(_ any, in grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(in)
		ctx, cancel := context.WithCancel(context.WithoutCancel(in.Context()))
		defer cancel()
		out, err := backend.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err != nil {
			return err
		}
		// Unknown fields make an empty message carry any other.
		go func() {
			for {
				m := new(emptypb.Empty)
				if in.RecvMsg(m) != nil || out.SendMsg(m) != nil {
					_ = out.CloseSend()
					return
				}
			}
		}()
		for {
			m := new(emptypb.Empty)
			if err := out.RecvMsg(m); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := in.SendMsg(m); err != nil {
				_, _ = io.Copy(io.Discard, drained{out}) // stay until the backend is done
				return err
			}
		}
	}
}

// drained reads a stream's messages as nothing.
type drained struct{ grpc.ClientStream }

func (d drained) Read([]byte) (int, error) { return 0, d.RecvMsg(new(emptypb.Empty)) }

func TestProxyThatTurnsResetsIntoEndOfStream(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		r, _, addr := w.kv("b", impl, specgrpc.Stages(putMethod))
		backend := w.raw(addr)
		_, proxy := w.serve("a", func(*grpc.Server) {}, grpc.UnknownServiceHandler(relay(backend)))
		cc := w.raw(proxy)
		for name, end := range map[string]func(c *rawCall){
			"reset": func(c *rawCall) { c.cancel() },
			"crash": func(*rawCall) { w.net.Crash("client") },
		} {
			impl.seen = nil
			c := w.openRaw(cc, putMethod)
			c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
			c.final()
			end(c)
			time.Sleep(time.Second)
			if got := strings.Join(impl.notes(), ", "); got != "put k=, rolled back k" {
				w.Errorf("%s: %s", name, got)
			}
		}
		if r.HalfOpen() != 0 {
			w.Error("half-open calls left")
		}
		// And a client of ours, through the proxy, right and wrong.
		client := w.dial(proxy, specgrpc.WithCallSites(staged))
		_, _, slowAddr := w.kv("c", newSlowServer())
		fromC := w.dial(slowAddr)
		for prediction, want := range map[string]string{
			"value of slow": "committed value of slow",
			"wrong":         "rolled back wrong",
		} {
			impl.seen = nil
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (uint64, error) {
				got, err := guessed(ctx, kvpb.NewTestKVClient(fromC), "slow", &kvpb.GetResponse{Value: prediction})
				if err != nil {
					return 0, err
				}
				res, err := kvpb.NewTestKVClient(client).Put(ctx, &kvpb.PutRequest{Key: got.GetValue()})
				return res.GetVersion(), err
			})
			if err != nil {
				w.Error(err)
			}
			w.quiet(client, r)
			if got := strings.Join(impl.notes(), ", "); !strings.Contains(got, want) ||
				strings.Contains(got, "committed wrong") {
				w.Errorf("prediction %q: %s", prediction, got)
			}
		}
	})
}

// certificate is valid in a bubble, whose time begins with the year 2000.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
		DNSNames: []string{"server"}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// token is a per-RPC credential that refuses to travel in the clear.
type token string

func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"principal": string(t)}, nil
}
func (token) RequireTransportSecurity() bool { return true }

func TestTLSAndCredentials(t *testing.T) {
	inWorld(t, func(w *world) {
		cert, pool := certificate(w)
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "slow" {
				time.Sleep(100 * time.Millisecond)
			}
			return &kvpb.GetResponse{Value: ctx.Value(principalKey{}).(string)}, nil
		}
		var r *specgrpc.ServiceRegistrar
		_, addr := w.serve("a", func(s *grpc.Server) {
			r = specgrpc.Registrar(s)
			kvpb.RegisterTestKVServer(r, impl)
		}, grpc.Creds(credentials.NewServerTLSFromCert(&cert)), grpc.ChainUnaryInterceptor(authorize))
		cc := w.dial(addr, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, "server")),
			grpc.WithPerRPCCredentials(token("ada")))
		c := kvpb.NewTestKVClient(cc)
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{}); err != nil {
			w.Fatal(err)
		}
		start := time.Now()
		got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			if _, err := guessed(ctx, c, "slow", &kvpb.GetResponse{Value: "ada"}); err != nil {
				return "", err
			}
			next, err := c.Get(ctx, &kvpb.GetRequest{Key: "k"})
			return next.GetValue(), err
		})
		if took := time.Since(start); err != nil || got != "ada" || took > 120*time.Millisecond {
			w.Errorf("got %q, %v after %v", got, err, took)
		}
		// Credentials of one call travel on its speculative stream as well.
		mallory := w.dial(addr, grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, "server")))
		_, err = foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			if _, err := guessed(ctx, c, "slow", &kvpb.GetResponse{Value: "ada"}); err != nil {
				return "", err
			}
			m := kvpb.NewTestKVClient(mallory)
			got, err := m.Get(ctx, &kvpb.GetRequest{Key: "k"}, grpc.PerRPCCredentials(token("bob")))
			if err != nil || got.GetValue() != "bob" {
				w.Errorf("got %v, %v", got, err)
			}
			_, err = m.Get(ctx, &kvpb.GetRequest{Key: "k"})
			return "", err
		})
		wantCode(w, err, codes.Unauthenticated)
		w.quiet(cc, r)
	})
}

func TestSizesAndCharacters(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(_ context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "slow" {
				time.Sleep(100 * time.Millisecond)
			}
			return &kvpb.GetResponse{Value: r.GetKey()}, nil
		}
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr)
		c := kvpb.NewTestKVClient(cc)
		for _, text := range []string{
			"", "Gödel, Ἀριστοτέλης, 孔夫子, \U0001F52E, \x00", strings.Repeat("x", 70_000), strings.Repeat("ü", 1<<20),
			strings.Repeat("y", 3<<20+1), // more than is sent for a speculative caller
		} {
			for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
				got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
					if _, err := guessed(ctx, c, "slow", &kvpb.GetResponse{Value: "slow"}); err != nil {
						return "", err
					}
					got, err := c.Get(ctx, &kvpb.GetRequest{Key: text}, opts...)
					return got.GetValue(), err
				})
				if err != nil || got != text {
					w.Errorf("%d bytes: got %d, %v", len(text), len(got), err)
				}
			}
		}
		w.quiet(cc, r)
	})
}

// What fits into a plain call's limits does so, and what does not fails alike.
func TestMessageSizeLimits(t *testing.T) {
	const limit = 1000
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "slow" {
				time.Sleep(100 * time.Millisecond)
				return value("slow"), nil
			}
			n := limit - 3 // with tag and length the response has exactly the limit
			if r.GetKey() == "over" {
				n++
			}
			return &kvpb.GetResponse{Value: strings.Repeat("x", n)}, nil
		}
		r, _, addr := w.kv("a", impl)
		_, tight := w.serve("b", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(specgrpc.Registrar(s), &kvServer{})
		}, grpc.MaxRecvMsgSize(limit))
		cc := w.dial(addr, grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(limit)))
		toTight := w.dial(tight)
		after := func(call func(ctx context.Context) error) error {
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				if _, err := guessed(ctx, kvpb.NewTestKVClient(cc), "slow", value("slow")); err != nil {
					return "", err
				}
				return "", call(ctx)
			})
			return err
		}
		get := func(c *specgrpc.ClientConn, key string) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				_, err := kvpb.NewTestKVClient(c).Get(ctx, &kvpb.GetRequest{Key: key})
				return err
			}
		}
		if err := after(get(cc, "fits")); err != nil {
			w.Errorf("a response as large as the limit: %v", err)
		}
		if n := cc.CallSite(getMethod).Stats().Refused; n != 0 {
			w.Errorf("a response as large as the limit: held %d times", n)
		}
		wantCode(w, after(get(cc, "over")), codes.ResourceExhausted)
		if err := after(get(toTight, strings.Repeat("x", limit-3))); err != nil {
			w.Errorf("a request as large as the server's limit: %v", err)
		}
		wantCode(w, after(get(toTight, strings.Repeat("x", limit-2))), codes.ResourceExhausted)
		w.quiet(cc, r)
		w.quiet(toTight)
	})
}

// TestForetoldResponseIsTooLarge: what a handler answers early counts as its response where it
// turns out right, and fails the call if it is larger than the caller accepts. The call has
// happened.
func TestForetoldResponseIsTooLarge(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
			out := &kvpb.PutResponse{Version: 7}
			if err := foresay.Predict(ctx, out); err != nil {
				return nil, err
			}
			time.Sleep(100 * time.Millisecond)
			return out, nil
		}
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{
			Name: kvpb.TestKV_Put_FullMethodName, Effect: control.EffectImmediate, ServerPredictions: true,
		}))
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			_, err := kvpb.NewTestKVClient(cc).Put(ctx, &kvpb.PutRequest{Key: "k"}, grpc.MaxCallRecvMsgSize(1))
			return "", err
		})
		wantCode(w, err, codes.ResourceExhausted)
		if got := impl.notes(); len(got) != 1 {
			w.Errorf("the server did %v, want one write", got)
		}
		w.quiet(cc, r)
	})
}

// Metadata of the call reach the server, and nothing about speculation does.
func TestMetadataAreTheCallers(t *testing.T) {
	inWorld(t, func(w *world) {
		var mu sync.Mutex
		var seen []metadata.MD
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "slow" {
				time.Sleep(100 * time.Millisecond)
			}
			md, _ := metadata.FromIncomingContext(ctx)
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, md)
			return value(r.GetKey()), nil
		}
		_, _, addr := w.kv("a", impl)
		cc := w.dial(addr)
		_, err := foresay.Do(metadata.AppendToOutgoingContext(w.Context(), "tenant", "t1"),
			func(ctx context.Context) (string, error) {
				return chain(ctx, kvpb.NewTestKVClient(cc), "value of slow")
			})
		if err != nil {
			w.Fatal(err)
		}
		for _, md := range seen {
			for name := range md {
				switch name {
				case ":authority", "content-type", "user-agent", "tenant", "grpc-accept-encoding":
				default:
					w.Errorf("metadata %s: %v", name, md[name])
				}
			}
			if got := md.Get("tenant"); len(got) != 1 || got[0] != "t1" {
				w.Errorf("tenant %v", got)
			}
		}
		if len(seen) != 2 {
			w.Errorf("%d calls, want 2", len(seen))
		}
	})
}

func TestGracefulStopDuringSpeculation(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		r, s, addr := w.kv("a", impl, specgrpc.Stages(putMethod))
		_, _, slowAddr := w.kv("b", &kvServer{get: slow("slow", time.Second)})
		cc, fromB := w.dial(addr, specgrpc.WithCallSites(staged)), w.dial(slowAddr)
		done := make(chan error)
		go func() {
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (uint64, error) {
				if _, err := guessed(ctx, kvpb.NewTestKVClient(fromB), "slow", value("slow")); err != nil {
					return 0, err
				}
				res, err := kvpb.NewTestKVClient(cc).Put(ctx, &kvpb.PutRequest{Key: "k"})
				return res.GetVersion(), err
			})
			done <- err
		}()
		time.Sleep(500 * time.Millisecond)
		start := time.Now()
		specgrpc.GracefulStop(s, r)
		if took := time.Since(start); took > 3*rtt {
			w.Errorf("stopping took %v", took)
		}
		wantCode(w, <-done, codes.Unavailable) // nobody is there for the plain call
		wantNotes(w, impl, "put k=", "rolled back k")
		w.quiet(cc, r)
	})
}

func TestStoppingRegistrarRefuses(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", time.Second)}
		r, s, addr := w.kv("a", impl)
		cc := w.raw(addr)
		go func() { _, _ = kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{Key: "slow"}) }()
		c := w.openRaw(cc, getMethod)
		time.Sleep(100 * time.Millisecond)
		go specgrpc.GracefulStop(s, r)
		time.Sleep(time.Millisecond)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		if f := c.next().GetRefused(); f == nil {
			w.Error("want Refused")
		}
		wantCode(w, c.end(), status.Code(nil))
		time.Sleep(time.Second)
	})
}

// TestGracefulStopBeforeTheHandler: a server stops when it has admitted a call whose handler has
// not begun. The call is undone, and nobody waits for it.
func TestGracefulStopBeforeTheHandler(t *testing.T) {
	inWorld(t, func(w *world) {
		const decoding = 300 * time.Millisecond
		impl := staging()
		desc := kvpb.TestKV_ServiceDesc
		desc.Methods = slices.Clone(desc.Methods)
		for i, m := range desc.Methods {
			desc.Methods[i].Handler = func(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (
				any, error) {
				return m.Handler(srv, ctx, func(v any) error { time.Sleep(decoding); return dec(v) }, in)
			}
		}
		var r *specgrpc.ServiceRegistrar
		s, addr := w.serve("a", func(s *grpc.Server) {
			r = specgrpc.Registrar(s, specgrpc.Stages(putMethod))
			r.RegisterService(&desc, impl)
		})
		cc := w.raw(addr)
		if _, err := kvpb.NewTestKVClient(cc).Put(w.Context(), &kvpb.PutRequest{Key: "k"}); err != nil {
			w.Fatal(err) // a plain call first: it shows that the handler calls its interceptor
		}
		impl.seen = nil
		c := w.openRaw(cc, putMethod)
		c.sendRequest(c.request(&kvpb.PutRequest{Key: "k"}))
		time.Sleep(rtt/2 + decoding/2)
		start := time.Now()
		specgrpc.GracefulStop(s, r)
		if took := time.Since(start); took > decoding+3*rtt {
			w.Errorf("stopping took %v", took)
		}
		if n := r.Stats().Admitted; n != 1 {
			w.Errorf("%d calls were admitted", n)
		}
		wantNotes(w, impl)
	})
}

// Calls that begin while the server stops are refused, undone or served, and
// none of them stays.
func TestGracefulStopInTheMiddleOfManyCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := staging()
		r, s, addr := w.kv("a", impl, specgrpc.Stages(putMethod))
		cc := w.raw(addr)
		_, _ = kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{})
		impl.seen = nil
		var done sync.WaitGroup
		for i := range 100 {
			done.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				stream, err := cc.NewStream(w.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, putMethod+
					".spec")
				if err != nil {
					return // the server is gone
				}
				c := &rawCall{w: w, stream: stream, id: []byte("0123456789abcdef")}
				_ = stream.SendMsg(&specv1.ClientFrame{
					Frame: &specv1.ClientFrame_Request{Request: c.request(&kvpb.PutRequest{Key: "k"})}})
				for stream.RecvMsg(new(specv1.ServerFrame)) == nil {
				}
			})
		}
		time.Sleep(5*time.Millisecond + rtt/2)
		specgrpc.GracefulStop(s, r)
		done.Wait()
		if r.HalfOpen() != 0 {
			w.Error("half-open calls left")
		}
		puts, undone := 0, 0
		for _, note := range impl.notes() {
			switch note {
			case "put k=":
				puts++
			case "rolled back k":
				undone++
			default:
				w.Errorf("unexpected: %s", note)
			}
		}
		if puts == 0 || puts != undone {
			w.Errorf("%d calls ran, %d were undone", puts, undone)
		}
	})
}
