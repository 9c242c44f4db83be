package specgrpc_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// chains has as many callers each run a chain of four reads, all guessed rightly, over and over.
func chains(ctx context.Context, c kvpb.TestKVClient, callers, times int) error {
	var mu sync.Mutex
	var failed error
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			for range times {
				_, err := foresay.Do(ctx, func(ctx context.Context) (int, error) {
					for k := range 4 {
						key := fmt.Sprint(i, k)
						if _, err := guessed(ctx, c, key, value(key)); err != nil {
							return 0, err
						}
					}
					return 0, nil
				})
				if err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
	return failed
}

// TestBusyMachineIsNoLimit: on a machine without a free processor calls wait, and no peer is
// blamed for it that admits any number of streams.
func TestBusyMachineIsNoLimit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	kvpb.RegisterTestKVServer(specgrpc.Registrar(s), &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		return value(r.GetKey()), pause(ctx, 2*time.Millisecond)
	}})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	cc, err := specgrpc.NewClient(l.Addr().String(), specgrpc.WithMode(foresay.ModeOn),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c := kvpb.NewTestKVClient(cc)
	if _, err := c.Get(t.Context(), &kvpb.GetRequest{}); err != nil {
		t.Fatal(err)
	}
	var rest atomic.Bool
	var spinners sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		spinners.Go(func() {
			for !rest.Load() { //nolint:revive // it is busy
			}
		})
	}
	if err := chains(t.Context(), c, 100, 3); err != nil {
		t.Error(err)
	}
	rest.Store(true)
	spinners.Wait()
	if s := cc.Site(getMethod).Stats(); s.Limited != 0 || s.Predicted == 0 {
		t.Errorf("%d of %d calls were limited by the %s", s.Limited, s.Calls, s.LimitedBy)
	}
	cc.Close()
	s.Stop()
	<-served
}

// TestALimitIsForgotten: a peer that admits few streams is replaced by one that admits any number.
// Some seconds later nothing is limited any more.
func TestALimitIsForgotten(t *testing.T) {
	inWorld(t, func(w *world) {
		works := &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return value(r.GetKey()), pause(ctx, 50*time.Millisecond)
		}}
		_, few, addr := w.kv("a", works, grpc.MaxConcurrentStreams(8))
		_, _, next := w.kv("b", works)
		dial := w.net.DialContext("client")
		var replaced atomic.Bool
		cc := w.dial(addr, grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			if replaced.Load() {
				to = next
			}
			return dial(ctx, to)
		}))
		c := kvpb.NewTestKVClient(cc)
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{}); err != nil {
			w.Fatal(err)
		}
		if err := chains(w.Context(), c, 30, 3); err != nil {
			w.Error(err)
		}
		if s := cc.Site(getMethod).Stats(); s.Limited == 0 || s.LimitedBy != foresay.LimitStreams {
			w.Fatalf("stats %+v, want calls limited by the streams that the peer admits", s)
		}
		replaced.Store(true)
		few.Stop()
		time.Sleep(time.Second)
		for range 12 {
			_ = chains(w.Context(), c, 30, 1)
			time.Sleep(time.Second)
		}
		was, start := cc.Site(getMethod).Stats().Limited, time.Now()
		if err := chains(w.Context(), c, 30, 1); err != nil {
			w.Error(err)
		}
		if s, took := cc.Site(getMethod).Stats(), time.Since(start); s.Limited != was || took != 50*time.Millisecond+rtt {
			w.Errorf("%d calls limited by the %s, and a chain took %v", s.Limited-was, s.LimitedBy, took)
		}
		w.quiet(cc)
	})
}
