package specgrpc_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// large returns a response of more than grpc sends ahead.
func large(i int) *kvpb.GetResponse {
	return &kvpb.GetResponse{Value: strings.Repeat(fmt.Sprint(i%10), 100<<10), Version: uint64(i)}
}

// unreadCall calls a handler that sends more than a client takes that does not
// read, predictions or predictions and a result, and returns when the handler
// can go no further.
func unreadCall(
	w *world, finishes bool, lease time.Duration,
) (*specgrpc.ServiceRegistrar, *grpc.Server, *rawCall, *kvServer) {
	impl := &kvServer{}
	impl.get = func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
		defer func() { impl.note("%v", context.Cause(ctx)) }()
		for i := range 10 {
			if err := foresay.Predict(ctx, large(i)); err != nil {
				return nil, err
			}
		}
		if !finishes {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return large(10), nil
	}
	r, s, addr := w.kv("a", impl, specgrpc.WithMaxLease(lease))
	c := w.openRaw(w.raw(addr), getMethod)
	c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
	time.Sleep(lease / 2)
	synctest.Wait()
	if r.HalfOpen() != 1 {
		w.Fatalf("%d half-open calls, want 1", r.HalfOpen())
	}
	return r, s, c, impl
}

// A client that does not read keeps no call beyond its lease.
func TestLeaseOfACallThatNobodyReads(t *testing.T) {
	for name, finishes := range map[string]bool{"predictions": false, "result": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lease = time.Second
				r, s, c, impl := unreadCall(w, finishes, lease)
				time.Sleep(lease)
				synctest.Wait()
				if n := r.HalfOpen(); n != 0 {
					w.Errorf("%d half-open calls after the lease", n)
				}
				want := foresay.ErrMisspeculated.Error()
				if finishes {
					want = "<nil>" // it returned long before
				}
				wantNotes(w, impl, "get k", want)
				start := time.Now()
				specgrpc.GracefulStop(s, r)
				if took := time.Since(start); took > lease {
					w.Errorf("GracefulStop took %v", took)
				}
				c.cancel()
			})
		})
	}
}

// GracefulStop comes to its end although a client does not read.
func TestGracefulStopWithACallThatNobodyReads(t *testing.T) {
	for name, finishes := range map[string]bool{"predictions": false, "result": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lease = time.Second
				r, s, c, _ := unreadCall(w, finishes, lease)
				start := time.Now()
				specgrpc.GracefulStop(s, r)
				if took := time.Since(start); took > lease {
					w.Errorf("GracefulStop took %v", took)
				}
				if n := r.HalfOpen(); n != 0 {
					w.Errorf("%d half-open calls", n)
				}
				c.cancel()
			})
		})
	}
}

// A client that reads after all gets everything in order, within the lease.
func TestReadingLate(t *testing.T) {
	inWorld(t, func(w *world) {
		r, s, c, _ := unreadCall(w, false, 10*time.Second)
		for i := range 10 {
			var got kvpb.GetResponse
			if err := proto.Unmarshal(c.next().GetPrediction().GetPayload(), &got); err != nil ||
				got.GetVersion() != large(i).GetVersion() {
				w.Fatalf("frame %d predicts version %d, %v; want %d", i, got.GetVersion(), err, large(i).GetVersion())
			}
		}
		c.abort()
		wantCode(w, c.end(), codes.Canceled)
		start := time.Now()
		specgrpc.GracefulStop(s, r)
		if took := time.Since(start); took > time.Second {
			w.Errorf("GracefulStop took %v", took)
		}
	})
}

// What waits to be sent when the result is there is not sent any more, and the
// result does not refer to it.
func TestUnsentPredictionsGiveWayToTheResult(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{}
		impl.get = func(ctx context.Context, _ *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			for i := range 10 {
				if err := foresay.Predict(ctx, large(i)); err != nil {
					return nil, err
				}
			}
			time.Sleep(time.Second)
			return large(9), nil
		}
		r, _, addr := w.kv("a", impl)
		c := w.openRaw(w.raw(addr), getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		time.Sleep(2 * time.Second)
		sent := 0
		f := c.next()
		for ; f.GetPrediction() != nil; f = c.next() {
			sent++
		}
		var got kvpb.GetResponse
		if err := proto.Unmarshal(f.GetFinal().GetPayload(), &got); err != nil || got.GetVersion() != 9 {
			w.Errorf("got %v, %v; want the last response in full", f.GetFinal().GetResult(), err)
		}
		if sent == 0 || sent > 5 {
			w.Errorf("%d predictions were sent", sent)
		}
		c.confirm()
		if err := c.end(); err != nil {
			w.Error(err)
		}
		time.Sleep(time.Second)
		if n := r.HalfOpen(); n != 0 {
			w.Errorf("%d half-open calls", n)
		}
	})
}

// GracefulStop waits for calls that run, whoever does not read.
func TestGracefulStopWaitsForCallsThatRun(t *testing.T) {
	inWorld(t, func(w *world) {
		const lease = time.Second
		impl := &kvServer{}
		impl.get = func(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
			if r.GetKey() == "plain" {
				time.Sleep(5 * lease)
				return value("plain"), nil
			}
			for i := range 10 {
				if err := foresay.Predict(ctx, large(i)); err != nil {
					return nil, err
				}
			}
			return nil, status.Error(codes.NotFound, "none")
		}
		r, s, addr := w.kv("a", impl, specgrpc.WithMaxLease(lease))
		cc := w.raw(addr)
		c := w.openRaw(cc, getMethod)
		c.sendRequest(c.request(&kvpb.GetRequest{Key: "k"}))
		plain := make(chan error, 1)
		go func() {
			_, err := kvpb.NewTestKVClient(w.raw(addr)).Get(w.Context(), &kvpb.GetRequest{Key: "plain"})
			plain <- err
		}()
		time.Sleep(lease / 2)
		specgrpc.GracefulStop(s, r)
		if err := <-plain; err != nil {
			w.Errorf("the plain call: %v", err)
		}
		c.cancel()
	})
}

// TestGracefulStopWithoutARequest: a client that opens a speculative stream and sends nothing has a
// lease until GracefulStop cuts it, but for calls that run.
func TestGracefulStopWithoutARequest(t *testing.T) {
	const lease = time.Second
	for name, tt := range map[string]struct{ takes, want time.Duration }{
		"nothing runs": {0, lease}, "a call runs": {2500 * time.Millisecond, 3 * lease},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				r, s, addr := w.kv("a", &kvServer{get: slow("slow", tt.takes)}, specgrpc.WithMaxLease(lease))
				c := w.openRaw(w.raw(addr), getMethod)
				served := make(chan error, 1)
				go func() {
					if tt.takes == 0 {
						served <- nil
						return
					}
					_, err := kvpb.NewTestKVClient(w.raw(addr)).Get(w.Context(), &kvpb.GetRequest{Key: "slow"})
					served <- err
				}()
				time.Sleep(lease / 2)
				start := time.Now()
				specgrpc.GracefulStop(s, r)
				if took := time.Since(start); took != tt.want { // it looks once in a lease
					w.Errorf("GracefulStop took %v, want %v", took, tt.want)
				}
				if err := <-served; err != nil {
					w.Errorf("the call that ran: %v", err)
				}
				c.cancel()
			})
		})
	}
}
