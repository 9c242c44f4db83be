package specgrpc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/internal/seed"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// serviceConfig is one that says something of a method, of its service or of all.
func serviceConfig(name, says string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"methodConfig": [{"name": [%s], %s}]}`, name, says))
}

func configNames() map[string]string {
	return map[string]string{
		"method":  `{"service": "foresay.testkv.v1.TestKV", "method": "Get"}, {"service": "foresay.testkv.v1.TestKV", "method": "Put"}`,
		"service": `{"service": "foresay.testkv.v1.TestKV"}`,
		"all":     `{}`,
	}
}

// configured is a call whose result depends on the service config.
type configured struct {
	name  string
	says  string
	takes time.Duration // at the server
	fails int           // first attempts that fail
	opts  []grpc.CallOption
	write bool
	bytes int // of the response's value
	asks  int // of the request's key
	code  codes.Code
}

func configuredCalls() []configured {
	const retry = `"retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.001s", "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}`
	return []configured{
		{name: "retried", says: retry, fails: 2},
		{name: "a write is retried", says: retry, fails: 2, write: true},
		{name: "retried in vain", says: retry, fails: 9, code: codes.Unavailable},
		{name: "in time", says: `"timeout": "0.150s"`, takes: 100 * time.Millisecond},
		{name: "too late", says: `"timeout": "0.150s"`, takes: 300 * time.Millisecond, code: codes.DeadlineExceeded},
		{name: "a write in time", says: `"timeout": "0.150s"`, takes: 100 * time.Millisecond, write: true},
		{name: "a write too late", says: `"timeout": "0.150s"`, takes: 300 * time.Millisecond, write: true,
			code: codes.DeadlineExceeded},
		{name: "a large response", says: `"maxResponseMessageBytes": 1000`, bytes: 1001, code: codes.ResourceExhausted},
		{name: "a response that just fits", says: `"maxResponseMessageBytes": 1000`, bytes: 995},
		{name: "a larger response than usual", says: `"maxResponseMessageBytes": 9000000`, bytes: 6 << 20},
		{name: "a large request", says: `"maxRequestMessageBytes": 1000`, asks: 1001, code: codes.ResourceExhausted},
		{name: "a request that just fits", says: `"maxRequestMessageBytes": 1000`, asks: 995},
		{name: "waits for a server", says: `"waitForReady": true`},
		{name: "does not wait", says: `"waitForReady": true`, opts: []grpc.CallOption{grpc.WaitForReady(false)}},
	}
}

// server serves the call: what it does shows in what it notes.
func (k configured) server(w *world) (*kvServer, string) {
	s := &kvServer{}
	attempts := make(chan int, 1)
	attempts <- 0
	serve := func(ctx context.Context) error {
		n := <-attempts
		attempts <- n + 1
		if n < k.fails {
			return status.Error(codes.Unavailable, "try again")
		}
		return pause(ctx, k.takes)
	}
	s.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		if r.GetKey() == "first" {
			return value("first"), pause(ctx, 50*time.Millisecond)
		}
		if err := serve(ctx); err != nil {
			return nil, err
		}
		return &kvpb.GetResponse{Value: strings.Repeat("v", k.bytes)}, nil
	}
	s.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		if err := foresay.Barrier(ctx); err != nil {
			return nil, err
		}
		return &kvpb.PutResponse{}, serve(ctx)
	}
	_, _, addr := w.kv("a", s, specgrpc.Stages(putMethod))
	return s, addr
}

// call makes a call and then, perhaps on a guess, the one that the config is about.
func (k configured) call(ctx context.Context, c kvpb.TestKVClient) (string, error) {
	if _, err := c.Get(foresay.Predicting(ctx, value("first")), &kvpb.GetRequest{Key: "first"}); err != nil {
		return "", fmt.Errorf("the first call: %w", err)
	}
	key := "k" + strings.Repeat("k", k.asks)
	if k.write {
		_, err := c.Put(ctx, &kvpb.PutRequest{Key: key}, k.opts...)
		return "", err
	}
	r, err := c.Get(ctx, &kvpb.GetRequest{Key: key}, k.opts...)
	return r.GetValue(), err
}

// TestServiceConfig: a service config means the same for a call that is made on a
// guess, whether it is the method's, its service's or everybody's.
func TestServiceConfig(t *testing.T) {
	for level, name := range configNames() {
		for i, k := range configuredCalls() {
			if i%seed.Every(3) != 0 {
				continue
			}
			t.Run(level+"/"+k.name, func(t *testing.T) {
				inWorld(t, func(w *world) {
					_, addr := k.server(w)
					raw := kvpb.NewTestKVClient(w.raw(addr, serviceConfig(name, k.says)))
					start := time.Now()
					want, wantErr := k.call(w.Context(), raw)
					plainly := time.Since(start)
					if status.Code(wantErr) != k.code {
						w.Fatalf("plainly: %v, want code %v", wantErr, k.code)
					}

					_, addr = k.server(w)
					cc := w.dial(addr, serviceConfig(name, k.says), specgrpc.WithMode(control.ModeOn),
						specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))
					start = time.Now()
					got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
						return k.call(ctx, kvpb.NewTestKVClient(cc))
					})
					took := time.Since(start)
					if got != want || status.Code(err) != k.code {
						w.Errorf("got %d bytes, %v after %v; plainly %d bytes, %v after %v", len(got), err, took, len(want), wantErr,
							plainly)
					}
					if k.code == codes.DeadlineExceeded && took > plainly+25*time.Millisecond {
						w.Errorf("it took %v, plainly %v", took, plainly)
					}
				})
			})
		}
	}
}

// TestServiceConfigKeepsGain: under a service config calls still overlap.
func TestServiceConfigKeepsGain(t *testing.T) {
	inWorld(t, func(w *world) {
		k := configured{takes: 50 * time.Millisecond}
		_, addr := k.server(w)
		cc := w.dial(addr, serviceConfig(`{}`, `"timeout": "1s", "waitForReady": true`), specgrpc.WithMode(control.ModeOn))
		c := kvpb.NewTestKVClient(cc)
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "first"}); err != nil {
			w.Fatal(err)
		}
		start := time.Now()
		if _, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			return k.call(ctx, c)
		}); err != nil {
			w.Error(err)
		}
		if took := time.Since(start); took > 85*time.Millisecond {
			w.Errorf("two calls of 50 ms took %v", took)
		}
	})
}

// TestNoTimeoutOfTheServiceAtTheServer: the time-out of a service does not end a
// speculative stream, whose caller may be found right much later.
func TestNoTimeoutOfTheServiceAtTheServer(t *testing.T) {
	inWorld(t, func(w *world) {
		s := &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "first" {
				return value("first"), pause(ctx, 400*time.Millisecond)
			}
			return value("k"), nil
		}}
		s.put = func(ctx context.Context, _ *kvpb.PutRequest) (*kvpb.PutResponse, error) {
			if _, limited := ctx.Deadline(); limited {
				s.note("limited")
			}
			if err := foresay.Barrier(ctx); err != nil {
				return nil, err
			}
			s.note("confirmed")
			return &kvpb.PutResponse{}, nil
		}
		_, _, addr := w.kv("a", s, specgrpc.Stages(putMethod))
		cc := w.dial(addr, serviceConfig(`{"service": "foresay.testkv.v1.TestKV"}`, `"timeout": "0.5s"`),
			specgrpc.WithMode(control.ModeOn),
			specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))
		if _, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			return configured{write: true}.call(ctx, kvpb.NewTestKVClient(cc))
		}); err != nil {
			w.Error(err)
		}
		if n := notesWith(s, "limited"); len(n) != 0 {
			w.Errorf("the speculative stream has a time-out")
		}
		wantNotes(w, s, "get first", "put k=", "confirmed")
	})
}

// TestWaitForReady: what the method's config or the call says of waiting for a server
// goes, also where the service's says otherwise.
func TestWaitForReady(t *testing.T) {
	const service = `{"methodConfig": [{"name": [{"service": "foresay.testkv.v1.TestKV"}], "waitForReady": %v},
		{"name": [{"service": "foresay.testkv.v1.TestKV", "method": "Get"}], "waitForReady": %v}]}`
	for _, k := range []struct {
		service, method bool
		opts            []grpc.CallOption
		code            codes.Code
	}{
		{true, false, nil, codes.Unavailable},
		{false, true, nil, codes.DeadlineExceeded},
		{true, false, []grpc.CallOption{grpc.WaitForReady(true)}, codes.DeadlineExceeded},
		{false, true, []grpc.CallOption{grpc.WaitForReady(false)}, codes.Unavailable},
	} {
		inWorld(t, func(w *world) {
			_, addr := configured{}.server(w)
			first := kvpb.NewTestKVClient(w.dial(addr, specgrpc.WithMode(control.ModeOn)))
			dead := kvpb.NewTestKVClient(w.dial("nobody:1", specgrpc.WithMode(control.ModeOn),
				grpc.WithDefaultServiceConfig(fmt.Sprintf(service, k.service, k.method))))
			_, _ = dead.Get(w.Context(), &kvpb.GetRequest{}, grpc.WaitForReady(false)) // the connection knows by now
			ctx, cancel := context.WithTimeout(w.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := foresay.Do(ctx, func(ctx context.Context) (string, error) {
				if _, err := first.Get(foresay.Predicting(ctx, value("first")), &kvpb.GetRequest{Key: "first"}); err != nil {
					return "", err
				}
				_, err := dead.Get(ctx, &kvpb.GetRequest{Key: "k"}, k.opts...)
				return "", err
			})
			if status.Code(err) != k.code {
				w.Errorf("service %v, method %v, %d options: got %v, want code %v", k.service, k.method, len(k.opts), err, k.code)
			}
		})
	}
}

// configResolver is a resolver that gives a service config with an address.
type configResolver struct{ addr, config string }

func (configResolver) Scheme() string                        { return "config" }
func (configResolver) ResolveNow(resolver.ResolveNowOptions) {}
func (configResolver) Close()                                {}

func (r configResolver) Build(
	_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions,
) (resolver.Resolver, error) {
	return r, cc.UpdateState(resolver.State{
		Addresses: []resolver.Address{{Addr: r.addr, ServerName: "a"}}, ServiceConfig: cc.ParseServiceConfig(r.config),
	})
}

// TestServiceConfigOfTheResolver: it counts as one by default does, and not at all if
// the connection says so.
func TestServiceConfigOfTheResolver(t *testing.T) {
	const config = `{"methodConfig": [{"name": [{"service": "foresay.testkv.v1.TestKV"}], "timeout": "0.150s"}]}`
	for _, disabled := range []bool{false, true} {
		inWorld(t, func(w *world) {
			k := configured{takes: 300 * time.Millisecond, code: codes.DeadlineExceeded}
			_, gate := configured{}.server(w)
			_, addr := k.server(w)
			opts := append(w.dialOptions("client"), grpc.WithResolvers(configResolver{addr, config}),
				specgrpc.WithMode(control.ModeOn))
			if disabled {
				opts, k.code = append(opts, grpc.WithDisableServiceConfig()), codes.OK
			}
			cc, err := specgrpc.NewClient("config:///", opts...)
			if err != nil {
				w.Fatal(err)
			}
			w.Cleanup(func() { cc.Close() })
			first := kvpb.NewTestKVClient(w.dial(gate))
			_, err = kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{Key: "plainly"})
			wantCode(w, err, k.code)
			_, err = foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				if _, err := guessed(ctx, first, "first", value("first")); err != nil {
					return "", err
				}
				_, err := kvpb.NewTestKVClient(cc).Get(ctx, &kvpb.GetRequest{Key: "k"})
				return "", err
			})
			wantCode(w, err, k.code)
		})
	}
}

// TestAttempts: a status that the policy names has the call made plainly, with all its
// attempts. What the attempt on the guess staged is undone. Where gRPC is told not to
// try again, the call is made plainly once.
func TestAttempts(t *testing.T) {
	for attempts, opts := range map[int][]grpc.DialOption{4: nil, 1: {grpc.WithDisableRetry()}} {
		inWorld(t, func(w *world) {
			k := configuredCalls()[0]
			s := &kvServer{get: slow("first", 50*time.Millisecond)}
			s.put = func(ctx context.Context, _ *kvpb.PutRequest) (*kvpb.PutResponse, error) {
				foresay.OnCommit(ctx, func() { s.note("effect") })
				return nil, status.Error(codes.Unavailable, "try again")
			}
			_, addr := w.server("a", s, specgrpc.Stages(putMethod))
			opts := append([]grpc.DialOption{serviceConfig(`{}`, k.says), specgrpc.WithCallSites(staged)}, opts...)
			c := kvpb.NewTestKVClient(w.dial(addr, opts...))
			_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
				if _, err := guessed(ctx, c, "first", value("first")); err != nil {
					return "", err
				}
				_, err := c.Put(ctx, &kvpb.PutRequest{Key: "k"})
				return "", err
			})
			wantCode(w, err, codes.Unavailable)
			time.Sleep(time.Second)
			if puts, effects := len(notesWith(s, "put")), len(slices.DeleteFunc(s.notes(), func(n string) bool {
				return n != "effect"
			})); puts != attempts+1 || effects != attempts {
				w.Errorf("of %d attempts that gRPC makes the server saw %d, and the effects of %d", attempts, puts, effects)
			}
		})
	}
}
