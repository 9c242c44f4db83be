package specgrpc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/predict"
	"github.com/foresay/foresay/specgrpc"
)

type userKey struct{}

// contextToken are credentials that depend on the context.
type contextToken struct{}

func (contextToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	user, _ := ctx.Value(userKey{}).(string)
	return map[string]string{"x-user": user}, nil
}
func (contextToken) RequireTransportSecurity() bool { return false }

// userToken is the token of one user.
type userToken string

func (t userToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"x-user": string(t)}, nil
}
func (userToken) RequireTransportSecurity() bool { return false }

// methodToken are credentials for one method alone.
type methodToken struct{}

func (methodToken) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	info, _ := credentials.RequestInfoFromContext(ctx)
	return map[string]string{"x-user": "who may call " + info.Method}, nil
}
func (methodToken) RequireTransportSecurity() bool { return false }

// userOption is a call option that an interceptor looks for.
type userOption struct {
	grpc.EmptyCallOption
	user string
}

// addUser is an interceptor that sends the context's user, or the option's.
func addUser(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	user, _ := ctx.Value(userKey{}).(string)
	if p, ok := ctx.Value(userKey{}).(*string); ok {
		user = *p
	}
	for _, o := range opts {
		if o, ok := o.(userOption); ok {
			user = o.user
		}
	}
	return invoker(metadata.AppendToOutgoingContext(ctx, "x-user", user), method, req, reply, cc, opts...)
}

// As a user, in each way in which a program can say so.
type identity struct {
	name string
	dial grpc.DialOption
	as   func(ctx context.Context, user string) (context.Context, []grpc.CallOption)
}

func identities() []identity {
	inContext := func(ctx context.Context, user string) (context.Context, []grpc.CallOption) {
		return context.WithValue(ctx, userKey{}, user), nil
	}
	none := grpc.EmptyDialOption{}
	return []identity{
		{"metadata", none, func(ctx context.Context, user string) (context.Context, []grpc.CallOption) {
			return metadata.AppendToOutgoingContext(ctx, "x-user", user), nil
		}},
		{"credentials of the call", none, func(ctx context.Context, user string) (context.Context, []grpc.CallOption) {
			return ctx, []grpc.CallOption{grpc.PerRPCCredentials(userToken(user))}
		}},
		{"the authority", none, func(ctx context.Context, user string) (context.Context, []grpc.CallOption) {
			return ctx, []grpc.CallOption{grpc.CallAuthority(user + ".example")}
		}},
		{"credentials of the connection", grpc.WithPerRPCCredentials(contextToken{}), inContext},
		{"an interceptor", grpc.WithChainUnaryInterceptor(addUser), inContext},
		{"an interceptor that looks at an option", grpc.WithChainUnaryInterceptor(addUser),
			func(ctx context.Context, user string) (context.Context, []grpc.CallOption) {
				return ctx, []grpc.CallOption{userOption{user: user}}
			}},
		{"an interceptor that follows a pointer", grpc.WithChainUnaryInterceptor(addUser),
			func(ctx context.Context, user string) (context.Context, []grpc.CallOption) {
				return context.WithValue(ctx, userKey{}, &user), nil
			}},
	}
}

// userServer answers with who asks, and notes it.
func userServer(w *world, effects ...string) (*kvServer, string) {
	s := &kvServer{}
	user := func(ctx context.Context) string {
		md, _ := metadata.FromIncomingContext(ctx)
		if tenant, ok := strings.CutSuffix(md.Get(":authority")[0], ".example"); ok {
			return tenant
		}
		return strings.Join(md.Get("x-user"), ",")
	}
	s.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		s.note("read %s as %s", r.GetKey(), user(ctx))
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		if r.GetKey() == "me" {
			return &kvpb.GetResponse{Value: "alice"}, nil
		}
		return &kvpb.GetResponse{Value: r.GetKey() + " of " + user(ctx)}, nil
	}
	s.put = func(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
		if err := foresay.Barrier(ctx); err != nil {
			return nil, err
		}
		s.note("order %s for %s", r.GetKey(), user(ctx))
		return &kvpb.PutResponse{}, nil
	}
	_, _, addr := w.kv("a", s, specgrpc.Stages(effects...))
	return s, addr
}

// notesWith returns the notes that begin with word.
func notesWith(s *kvServer, word string) []string {
	return slices.DeleteFunc(s.notes(), func(n string) bool { return !strings.HasPrefix(n, word+" ") })
}

// TestIdentity: a replay uses no call that was made as somebody else, however a
// program says who it is, and uses those again that were made as the same.
func TestIdentity(t *testing.T) {
	for _, id := range identities() {
		t.Run(id.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s, addr := userServer(w, putMethod)
				cc := w.dial(addr, id.dial, specgrpc.WithMode(control.ModeOn),
					specgrpc.WithCallSites(control.CallSiteConfig{Name: putMethod, Effect: control.EffectStaged}))
				c := kvpb.NewTestKVClient(cc)
				got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
					first, opts := id.as(ctx, "service")
					me, err := c.Get(foresay.Predicting(first, &kvpb.GetResponse{Value: "bob"}), &kvpb.GetRequest{Key: "me"}, opts...)
					if err != nil {
						return "", err
					}
					as, opts := id.as(ctx, me.GetValue())
					page, err := c.Get(as, &kvpb.GetRequest{Key: "page"}, opts...)
					if err != nil {
						return "", err
					}
					as, opts = id.as(ctx, me.GetValue())
					_, err = c.Put(as, &kvpb.PutRequest{Key: "tea"}, opts...)
					return page.GetValue(), err
				})
				if err != nil || got != "page of alice" {
					w.Errorf("got %q, %v, want the page of alice", got, err)
				}
				if orders := notesWith(s, "order"); !slices.Equal(orders, []string{"order tea for alice"}) {
					w.Errorf("got %v, want an order for alice", orders)
				}
				if n := len(notesWith(s, "read me")); n != 1 {
					w.Errorf("the first call was made %d times", n)
				}
			})
		})
	}
}

// TestSameIdentity: calls that do not depend on the wrong guess are used again,
// whoever they are made as.
func TestSameIdentity(t *testing.T) {
	for _, id := range identities() {
		t.Run(id.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s, addr := userServer(w)
				cc := w.dial(addr, id.dial, specgrpc.WithMode(control.ModeOn))
				c := kvpb.NewTestKVClient(cc)
				_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
					as, opts := id.as(ctx, "service")
					for _, key := range []string{"a", "b"} { // before the guess
						if _, err := c.Get(as, &kvpb.GetRequest{Key: key}, opts...); err != nil {
							return "", err
						}
					}
					if _, err := c.Get(foresay.Predicting(as, &kvpb.GetResponse{Value: "bob"}), &kvpb.GetRequest{Key: "me"},
						opts...); err != nil {
						return "", err
					}
					if id.name != "an interceptor that follows a pointer" { // else it is another pointer now
						as, opts = id.as(ctx, "service")
					}
					_, err := c.Get(as, &kvpb.GetRequest{Key: "c"}, opts...) // after it, but independent
					return "", err
				})
				if err != nil {
					w.Error(err)
				}
				want := 4
				if id.name == "an interceptor that follows a pointer" {
					want++ // what it points to may be anything
				}
				if got := notesWith(s, "read"); len(got) != want {
					w.Errorf("got calls %v, want %d", got, want)
				}
			})
		})
	}
}

// TestTenantsInTurn: goroutines on one context that come to a place in another order in
// each run are never told each other's answers, even if each run makes their tokens anew.
func TestTenantsInTurn(t *testing.T) {
	for _, id := range identities() {
		t.Run(id.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				_, addr := userServer(w)
				c := kvpb.NewTestKVClient(w.dial(addr, id.dial, specgrpc.WithMode(control.ModeOn)))
				var runs atomic.Int32
				got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
					first, opts := id.as(ctx, "service")
					pages := make([]string, 2)
					page := func(i int, user string) {
						as, opts := id.as(ctx, user)
						r, err := c.Get(as, &kvpb.GetRequest{Key: "page"}, opts...)
						pages[i] = fmt.Sprint(r.GetValue(), err)
					}
					run := runs.Add(1)
					var wg sync.WaitGroup
					wg.Go(func() {
						if run > 1 {
							time.Sleep(5 * time.Millisecond)
						}
						me, _ := c.Get(foresay.Predicting(first, &kvpb.GetResponse{Value: "bob"}, &kvpb.GetResponse{Value: "alice"}),
							&kvpb.GetRequest{Key: "me"}, opts...)
						page(0, me.GetValue())
					})
					wg.Go(func() {
						if run == 1 {
							time.Sleep(5 * time.Millisecond)
						}
						page(1, "carol")
					})
					wg.Wait()
					return strings.Join(pages, ", "), nil
				})
				if want := "page of alice<nil>, page of carol<nil>"; err != nil || got != want {
					w.Errorf("got %q, %v, want %q", got, err, want)
				}
			})
		})
	}
}

// TestOptionsInTurn: goroutines on one context that come to a place in another order in each run
// find their calls again where these differ in nothing but an option.
func TestOptionsInTurn(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		_, _, addr := w.kv("a", impl)
		c := kvpb.NewTestKVClient(w.dial(addr, specgrpc.WithMode(control.ModeOn)))
		runs := 0
		_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
			runs++
			var wg sync.WaitGroup
			for i, authority := range []string{"one", "other"} {
				wg.Go(func() {
					time.Sleep(time.Duration((runs+i)%2) * 100 * time.Millisecond) // so they do not overlap
					_, _ = c.Get(ctx, &kvpb.GetRequest{Key: "page"}, grpc.CallAuthority(authority))
				})
			}
			wg.Wait()
			if _, err := c.Put(ctx, &kvpb.PutRequest{Key: "k"}); err != nil {
				return "", err
			}
			if _, err := guessed(ctx, c, "x", value("wrong")); err != nil {
				return "", err
			}
			r, err := c.Get(ctx, &kvpb.GetRequest{Key: "y"})
			return r.GetValue(), err
		})
		if err != nil || runs != 2 {
			w.Errorf("got %v in %d runs, want no error in 2", err, runs)
		}
		if got := impl.notes(); len(got) != 5 {
			w.Errorf("the server did %v, want two pages, a write and two reads", got)
		}
	})
}

// TestPredictorsKeepCallersApart: what one caller was answered is not predicted to
// another, however the connection says who asks; and to the same it is.
func TestPredictorsKeepCallersApart(t *testing.T) {
	for _, id := range identities() {
		for _, public := range []bool{false, true} {
			inWorld(t, func(w *world) {
				_, addr := userServer(w)
				last, err := predict.NewLast(predict.LastConfig[*kvpb.GetRequest]{Key: (*kvpb.GetRequest).GetKey, Public: public})
				if err != nil {
					w.Fatal(err)
				}
				cc := w.dial(addr, id.dial, specgrpc.WithMode(control.ModeOn),
					specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, Predictors: []control.Predictor{last}}))
				c := kvpb.NewTestKVClient(cc)
				told := func(user string) (first string) {
					_, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
						as, opts := id.as(ctx, user)
						r, err := c.Get(as, &kvpb.GetRequest{Key: "page"}, opts...)
						if first == "" {
							first = r.GetValue() //nolint:staticcheck // what the first run saw
						}
						return r.GetValue(), err
					})
					if err != nil {
						w.Error(err)
					}
					return first
				}
				for _, user := range []string{"ann", "ann", "bob"} {
					if got, want := told(user), "page of "+user; got != want && !public {
						w.Errorf("%s: %s is told %q", id.name, user, got)
					}
				}
				stats := cc.CallSite(getMethod).Stats()
				want := map[string]int64{"metadata": 1, "the authority": 1, "credentials of the connection": 1, "an interceptor": 1,
					"an interceptor that looks at an option": 1}[id.name]
				if right := stats.Right; !public && right != want {
					w.Errorf("%s: %d guesses were right, want %d", id.name, right, want)
				}
			})
		}
	}
}
