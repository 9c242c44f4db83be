package specgrpc_test

import (
	"context"
	"testing"
	"time"

	"github.com/foresay/foresay"
	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// chain reads "slow", which takes 100 ms and is predicted, and then "next".
func chain(ctx context.Context, c kvpb.TestKVClient, prediction string) (string, error) {
	first, err := guessed(ctx, c, "slow", &kvpb.GetResponse{Value: prediction})
	if err != nil {
		return "", err
	}
	next, err := c.Get(ctx, &kvpb.GetRequest{Key: "next to " + first.GetValue()})
	return next.GetValue(), err
}

func doChain(w *world, cc *specgrpc.ClientConn, prediction string) (string, time.Duration, error) {
	start := time.Now()
	got, err := foresay.Do(w.Context(), func(ctx context.Context) (string, error) {
		return chain(ctx, kvpb.NewTestKVClient(cc), prediction)
	})
	return got, time.Since(start), err
}

func TestCallOfASpeculativeCallerOverlaps(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", 100*time.Millisecond)}
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr)
		if _, err := kvpb.NewTestKVClient(cc).Get(w.Context(), &kvpb.GetRequest{Key: "warm up"}); err != nil {
			w.Fatal(err)
		}
		got, took, err := doChain(w, cc, "value of slow")
		if err != nil || got != "value of next to value of slow" {
			w.Fatalf("got %q, %v", got, err)
		}
		if want := 100*time.Millisecond + rtt; took != want {
			w.Errorf("took %v, want %v", took, want)
		}
		wantNotes(w, impl, "get warm up", "get slow", "get next to value of slow")
		w.quiet(cc, r)
	})
}

func TestCallOfAWrongCallerIsAbortedAndReplaced(t *testing.T) {
	inWorld(t, func(w *world) {
		impl := &kvServer{get: slow("slow", 100*time.Millisecond)}
		r, _, addr := w.kv("a", impl)
		cc := w.dial(addr)
		got, _, err := doChain(w, cc, "another value")
		if err != nil || got != "value of next to value of slow" {
			w.Fatalf("got %q, %v", got, err)
		}
		wantNotes(w, impl, "get slow", "get next to another value", "get next to value of slow")
		w.quiet(cc, r)
	})
}
