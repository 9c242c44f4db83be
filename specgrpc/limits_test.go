package specgrpc_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

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
	kvpb.RegisterTestKVServer(specgrpc.Registrar(s),
		&kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return value(r.GetKey()), pause(ctx, 2*time.Millisecond)
		}})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	cc, err := specgrpc.NewClient(l.Addr().String(), specgrpc.WithMode(control.ModeOn),
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
	if s := cc.CallSite(getMethod).Stats(); s.Limited != 0 || s.Predicted == 0 {
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
		if s := cc.CallSite(getMethod).Stats(); s.Limited == 0 || s.LimitedBy != control.LimitStreams {
			w.Fatalf("stats %+v, want calls limited by the streams that the peer admits", s)
		}
		replaced.Store(true)
		few.Stop()
		time.Sleep(time.Second)
		for range 12 {
			_ = chains(w.Context(), c, 30, 1)
			time.Sleep(time.Second)
		}
		was, start := cc.CallSite(getMethod).Stats().Limited, time.Now()
		if err := chains(w.Context(), c, 30, 1); err != nil {
			w.Error(err)
		}
		if s, took := cc.CallSite(getMethod).Stats(), time.Since(start); s.Limited != was || took != 50*time.Millisecond+rtt {
			w.Errorf("%d calls limited by the %s, and a chain took %v", s.Limited-was, s.LimitedBy, took)
		}
		w.quiet(cc)
	})
}

// TestRefusedCallersAskLess: a client whose calls the server refuses, since it has as many
// half-open ones as it runs for one caller, has fewer at a time from then on. That costs no time.
func TestRefusedCallersAskLess(t *testing.T) {
	inWorld(t, func(w *world) {
		r, _, addr := w.kv("a", &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			return value(r.GetKey()), pause(ctx, 50*time.Millisecond)
		}}, specgrpc.WithMaxHalfOpenCalls(32)) // 16 for one caller
		cc := w.dial(addr)
		c := kvpb.NewTestKVClient(cc)
		if _, err := c.Get(w.Context(), &kvpb.GetRequest{}); err != nil {
			w.Fatal(err)
		}
		const callers, times = 60, 10
		var was specgrpc.ServerStats
		for round := range 2 {
			start := time.Now()
			if err := chains(w.Context(), c, callers, times); err != nil {
				w.Error(err)
			}
			if took, plain := time.Since(start), times*4*(50*time.Millisecond+rtt); took > plain*105/100 {
				w.Errorf("round %d took %v, plainly %v", round, took, plain)
			}
			s := r.Stats()
			admitted, refused := s.Admitted-was.Admitted, s.RefusedCaller-was.RefusedCaller
			if round == 1 && (refused > 20 || admitted < 10*16) {
				w.Errorf("%d calls admitted and %d refused", admitted, refused)
			}
			was = s
		}
		if s := cc.CallSite(getMethod).Stats(); s.LimitedBy != control.LimitServer {
			w.Errorf("calls are limited by the %s", s.LimitedBy)
		}
		w.quiet(cc, r)
	})
}

// TestSendPlainlyAtALimit: reads that are sent plainly ahead to a server without a registrar take
// the streams that others leave.
func TestSendPlainlyAtALimit(t *testing.T) {
	for i := range 8 { // goroutines begin in another order each time
		t.Run(strconv.Itoa(i), sendPlainlyAtALimit)
	}
}

func sendPlainlyAtALimit(t *testing.T) {
	inWorld(t, func(w *world) {
		const streams = 8
		_, addr := w.serve("a", func(s *grpc.Server) {
			kvpb.RegisterTestKVServer(s, &kvServer{get: func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse,
				error) {
				return value(r.GetKey()), pause(ctx, 50*time.Millisecond)
			}})
		}, grpc.MaxConcurrentStreams(streams))
		cc := w.dial(addr, specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, SendPlainly: true}))
		c := kvpb.NewTestKVClient(cc)
		if err := chains(w.Context(), c, streams, 3); err != nil { // the limit is learnt
			w.Error(err)
		}
		time.Sleep(time.Second)
		was := cc.CallSite(getMethod).Stats().Limited
		const calls = 40
		var slowest atomic.Int64
		var done sync.WaitGroup
		for range streams / 2 { // they leave four streams
			done.Go(func() {
				start := time.Now()
				for range calls {
					if _, err := c.Get(w.Context(), &kvpb.GetRequest{Key: "plain"}); err != nil {
						w.Error(err)
					}
				}
				slowest.Store(max(slowest.Load(), int64(time.Since(start))))
			})
		}
		start := time.Now()
		if err := chains(w.Context(), c, 4, 8); err != nil {
			w.Error(err)
		}
		took := time.Since(start)
		done.Wait()
		// now and then a call waits behind one that tries the limit
		if plain := 4 * 8 * (50*time.Millisecond + rtt); took > plain*110/100 {
			w.Errorf("the tasks took %v, plainly %v", took, plain)
		}
		if d, plain := time.Duration(slowest.Load()), calls*(50*time.Millisecond+rtt); d > plain*105/100 {
			w.Errorf("%d plain calls took %v, without tasks %v", calls, d, plain)
		}
		if s := cc.CallSite(getMethod).Stats(); s.LimitedBy != control.LimitStreams || s.Limited == was {
			w.Errorf("%d calls are limited by %q", s.Limited-was, s.LimitedBy)
		}
		w.quiet(cc)
	})
}
