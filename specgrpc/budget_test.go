package specgrpc_test

import (
	"context"
	"net"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/specgrpc"
)

// inProcess serves impl over connections in memory, in real time, and returns a
// function that connects to it.
func inProcess(
	t testing.TB, impl kvpb.TestKVServer, opts ...specgrpc.ServerOption,
) (*specgrpc.ServiceRegistrar, func(...grpc.DialOption) *specgrpc.ClientConn) {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	r := specgrpc.Registrar(s, opts...)
	kvpb.RegisterTestKVServer(r, impl)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return r, func(opts ...grpc.DialOption) *specgrpc.ClientConn {
		cc, err := specgrpc.NewClient("passthrough:///mem", append([]grpc.DialOption{
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }),
			grpc.WithTransportCredentials(insecure.NewCredentials()), specgrpc.WithMode(control.ModeOn),
		}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cc.Close() })
		return cc
	}
}

// footprint returns the bytes of heap and stacks in use, and the goroutines.
func footprint() (bytes uint64, goroutines int) {
	runtime.GC()
	runtime.GC() // the second frees the stacks that the first found unused
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, runtime.NumGoroutine()
}

// eventually waits for a condition that others bring about.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("timed out: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// settled returns what count tells once it has been the same for a second.
func settled(count func() int) int {
	last, since := count(), time.Now()
	for time.Since(since) < time.Second {
		<-time.After(10 * time.Millisecond)
		if n := count(); n != last || n == 0 {
			last, since = n, time.Now()
		}
	}
	return last
}

// A call that awaits its caller's word costs no more than 32 KB on a quiet machine, client and
// server, heap and stacks (some stacks grow when goroutines have to wait for a processor at the
// wrong moment: the test allows for that), and three goroutines: grpc's own on each side and one
// that listens for the word. Until the result is in there is one more on the
// client. The connection itself is not counted.
func TestFootprintOfHalfOpenCalls(t *testing.T) {
	if race.Enabled {
		t.Skip("sizes under the race detector say nothing")
	}
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const n = 4_000
	for name, tt := range map[string]struct {
		answered   bool
		goroutines int
		kilobytes  float64
	}{
		// What stacks take varies by some KB with what else the machine does.
		"answered": {true, 3, 35}, "unanswered": {false, 4, 38},
	} {
		t.Run(name, func(t *testing.T) {
			gate, blocked := make(chan struct{}), make(chan struct{})
			release := sync.OnceFunc(func() {
				close(gate)
				if !tt.answered {
					close(blocked)
				}
			})
			if tt.answered {
				close(blocked)
			}
			impl := &kvServer{}
			impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
				wait := blocked
				switch r.GetKey() {
				case "first":
					return value("first"), nil
				case "slow":
					wait = gate
				}
				<-wait
				return value(r.GetKey()), nil
			}
			defer release()
			r, dial := inProcess(t, impl, specgrpc.WithMaxHalfOpenCalls(2*n), specgrpc.WithMaxDepth(2*n),
				specgrpc.WithMaxLease(time.Hour))
			cc := dial(specgrpc.WithMaxHalfOpen(n), specgrpc.WithLease(time.Hour))
			c := kvpb.NewTestKVClient(cc)
			if _, err := c.Get(t.Context(), &kvpb.GetRequest{Key: "first"}); err != nil {
				t.Fatal(err)
			}
			before, goroutinesBefore := footprint()
			done := make(chan error)
			go func() {
				_, err := foresay.Do(t.Context(), func(ctx context.Context) (int, error) {
					_, err := guessed(ctx, c, "slow", value("slow"))
					lost := 0
					for i := 0; i < n && err == nil; i++ {
						_, err = guessed(ctx, c, strconv.Itoa(i), value(strconv.Itoa(i)))
						// No faster than the streams open, or some give way. Those do not come
						// back.
						for late := 0; r.HalfOpen() < i-lost-50; late++ {
							if late == 100 {
								lost = i - r.HalfOpen()
							}
							<-time.After(time.Millisecond)
						}
					}
					return 0, err
				}, foresay.WithLimits(control.Limits{Depth: 2 * n}))
				done <- err
			}()
			// Some may give way all the same, as to a peer that admits no more streams.
			open := settled(func() int { return min(r.HalfOpen(), cc.HalfOpen()) })
			if open < n*9/10 {
				t.Fatalf("%d half-open calls of %d", open, n)
			}
			after, goroutines := footprint()
			kilobytes := float64(after-before) / float64(open) / 1024
			perCall := float64(goroutines-goroutinesBefore) / float64(open)
			t.Logf("%.1f KB and %.2f goroutines per half-open call", kilobytes, perCall)
			if kilobytes > tt.kilobytes {
				t.Errorf("%.1f KB per half-open call, want at most %.0f", kilobytes, tt.kilobytes)
			}
			if perCall > float64(tt.goroutines)+0.1 {
				t.Errorf("%.2f goroutines per half-open call, want %d", perCall, tt.goroutines)
			}
			release()
			if err := <-done; err != nil {
				t.Error(err)
			}
			eventually(t, "the end of all calls", func() bool { return r.HalfOpen() == 0 && cc.HalfOpen() == 0 })
			eventually(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() < goroutinesBefore+20 })
		})
	}
}
