//go:build !race

package specgrpc_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// What a task keeps of its calls until it ends: their responses, which a replay would
// ask for, and nothing else of their size; of those before a Barrier not even that.
func TestTaskMemory(t *testing.T) {
	const calls, bytes = 600, 8 << 10
	plain, streams := loopback(t, echo{}), loopback(t, foretold{})
	for _, tt := range []struct {
		name          string
		streamed      bool
		guess         bool
		barrier       bool
		mostPerCallKB float64
	}{
		{"unpredicted", false, false, false, 16},
		{"predicted", false, true, false, 18},
		{"predicted, over speculative streams", true, true, false, 20},
		{"unpredicted, before a barrier", false, false, true, 6},
		{"predicted, before a barrier", false, true, true, 7},
		{"predicted, over speculative streams, before a barrier", true, true, true, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addr := plain
			if tt.streamed {
				addr = streams
			}
			cc, err := specgrpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
				specgrpc.WithMode(control.ModeOn),
				specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: tt.streamed}))
			if err != nil {
				t.Fatal(err)
			}
			defer cc.Close()
			client := kvpb.NewTestKVClient(cc)
			value := func(i int) string { return strings.Repeat("x", bytes) + fmt.Sprint(i) }
			get := func(ctx context.Context, i int, guess bool) {
				if guess {
					ctx = foresay.Predicting(ctx, &kvpb.GetResponse{Value: value(i)})
				}
				if r, err := client.Get(ctx, &kvpb.GetRequest{Key: value(i)}); err == nil && r.GetValue() != value(i) {
					t.Errorf("call %d returned another's response", i)
				}
			}
			var kept float64
			_, err = foresay.Do(t.Context(), func(ctx context.Context) (struct{}, error) {
				get(ctx, -1, false)
				before := heapBytes()
				for i := range calls {
					get(ctx, i, tt.guess)
				}
				if tt.barrier {
					if err := foresay.Barrier(ctx); err != nil {
						return struct{}{}, err
					}
				}
				get(ctx, calls, false) // waits for all of them
				kept = float64(heapBytes()-before) / 1024 / calls
				return struct{}{}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%.1f KB for a call with a request and a response of %d KB", kept, bytes>>10)
			if kept > tt.mostPerCallKB {
				t.Errorf("want at most %v KB", tt.mostPerCallKB)
			}
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
