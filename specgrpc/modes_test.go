package specgrpc_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// What a mode sends over real gRPC, and how long a task takes: reads a and then b,
// the first guessed, the second asked of a server that knows speculative callers,
// then a write.
func TestWhatModesSend(t *testing.T) {
	for name, tt := range map[string]struct {
		mode     control.Mode
		share    float64
		guess    string
		took     time.Duration
		seen     []string
		right    int64
		shadows  int64
		inVain   int64
		compared int64
	}{
		"off":             {control.ModeOff, 0, "a", 3 * rtt, []string{"get a", "get b", "put c="}, 0, 0, 0, 0},
		"observe":         {control.ModeDefault, 0, "a", 3 * rtt, []string{"get a", "get b", "put c="}, 0, 0, 0, 1},
		"shadow":          {control.ModeShadow, 1, "a", 3 * rtt, []string{"get a", "get b", "get b", "put c="}, 0, 1, 1, 1},
		"shadow, wrong":   {control.ModeShadow, 1, "x", 3 * rtt, []string{"get a", "get b", "get b", "put c="}, 0, 1, 1, 1},
		"shadow, no luck": {control.ModeShadow, 0, "a", 3 * rtt, []string{"get a", "get b", "put c="}, 0, 0, 0, 1},
		"canary":          {control.ModeCanary, 1, "a", 2 * rtt, []string{"get a", "get b", "put c="}, 1, 0, 0, 0},
		"canary, off":     {control.ModeCanary, 0, "a", 3 * rtt, []string{"get a", "get b", "put c="}, 0, 0, 0, 1},
		"on":              {control.ModeOn, 0, "a", 2 * rtt, []string{"get a", "get b", "put c="}, 1, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				server := &kvServer{}
				r, _, addr := w.kv("a", server)
				ctl, err := control.New(control.Config{})
				if err != nil {
					w.Fatal(err)
				}
				cc := w.dial(addr, specgrpc.WithMode(control.ModeDefault), specgrpc.WithControl(ctl), specgrpc.WithCallSites(
					control.CallSiteConfig{Name: getMethod, Mode: tt.mode, Share: tt.share}))
				c := kvpb.NewTestKVClient(cc)
				cc.Connect()
				time.Sleep(time.Second)
				start := time.Now()
				_, err = foresay.Do(w.Context(), func(ctx context.Context) (int, error) {
					guess := &kvpb.GetResponse{Value: value(tt.guess).GetValue()}
					if _, err := guessed(ctx, c, "a", guess); err != nil {
						return 0, err
					}
					if _, err := c.Get(ctx, &kvpb.GetRequest{Key: "b"}); err != nil {
						return 0, err
					}
					_, err := c.Put(ctx, &kvpb.PutRequest{Key: "c"})
					return 0, err
				}, foresay.WithLimits(control.Limits{MinSaving: -1}))
				if took := time.Since(start).Round(time.Millisecond); err != nil || took != tt.took {
					w.Errorf("took %v, %v, want %v", took, err, tt.took)
				}
				w.quiet(cc, r)
				seen := server.notes()
				slices.Sort(seen)
				if !slices.Equal(seen, tt.seen) {
					w.Errorf("the server saw %q, want %q", seen, tt.seen)
				}
				s := cc.CallSite(getMethod).Stats()
				if s.Right != tt.right || s.Shadows != tt.shadows || s.Wasted != tt.inVain || s.WouldBeRight+
					s.WouldBeWrong != tt.compared {
					w.Errorf("%+v", s)
				}
				if len(ctl.CallSites()) != 2 {
					w.Errorf("the control has %d sites, want those of Get and Put", len(ctl.CallSites()))
				}
				cc.Close()
				if len(ctl.CallSites()) != 0 {
					w.Errorf("%d sites are left of a closed connection", len(ctl.CallSites()))
				}
			})
		})
	}
}

// An ordinary connection can be observed by an interceptor.
func TestObserveInterceptor(t *testing.T) {
	inWorld(t, func(w *world) {
		ctl, err := control.New(control.Config{})
		if err != nil {
			w.Fatal(err)
		}
		observe, err := specgrpc.ObserveInterceptor(specgrpc.WithControl(ctl))
		if err != nil {
			w.Fatal(err)
		}
		_, _, addr := w.kv("a", &kvServer{})
		c := kvpb.NewTestKVClient(w.raw(addr, grpc.WithChainUnaryInterceptor(observe)))
		for _, key := range []string{"a", "a", "b", "a"} {
			if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: key}); err != nil {
				w.Fatal(err)
			}
		}
		var header metadata.MD // who looks at it gets no prediction, so there is nothing to compare
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "a"}, grpc.Header(&header)); err != nil {
			w.Fatal(err)
		}
		st := ctl.Status().CallSites
		if len(st) != 1 || st[0].Name != getMethod || st[0].Effect != "none" || st[0].Stats.Plain != 5 ||
			st[0].Stats.WouldBeRight != 2 || st[0].Stats.WouldBeWrong != 0 {
			w.Errorf("%+v", st)
		}
		if _, err := specgrpc.ObserveInterceptor(specgrpc.WithLease(0)); err == nil {
			w.Error("an option that makes no sense is accepted")
		}
	})
}

// Responses to one principal say nothing about those to another.
func TestDigestsKeepPrincipalsApart(t *testing.T) {
	inWorld(t, func(w *world) {
		_, _, addr := w.kv("a", &kvServer{get: func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			return &kvpb.GetResponse{Value: md.Get("authorization")[0]}, nil
		}})
		cc := w.dial(addr)
		for _, who := range []string{"ann", "ann", "bob"} {
			ctx := metadata.AppendToOutgoingContext(w.Context(), "authorization", who)
			if _, err := kvpb.NewTestKVClient(cc).Get(ctx, &kvpb.GetRequest{Key: "me"}); err != nil {
				w.Fatal(err)
			}
		}
		if s := cc.CallSite(getMethod).Stats(); s.WouldBeRight != 1 || s.WouldBeWrong != 0 {
			w.Errorf("%+v", s)
		}
	})
}
