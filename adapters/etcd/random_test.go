package etcd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/foresay/foresay"
)

// TestRandom has tasks read two keys while both are written, b before a, and the
// follower comes and goes. A read is not older than what was written before its
// task began, and the second is not older than the first.
func TestRandom(t *testing.T) {
	c := newCluster(t)
	far, near := c.client(0, time.Millisecond, grpc.WithUnaryInterceptor(straggle)), c.client(follower, 0)
	kv := mustKV(t, Config{Far: far, Near: near})
	put(t, far, "b", "0")
	catchUp(t, near, "a", put(t, far, "a", "0"))

	ctx, stop := context.WithCancel(t.Context())
	var written atomic.Int64
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for i := int64(1); ctx.Err() == nil; i++ {
			for _, key := range []string{"b", "a"} {
				if _, err := far.Put(ctx, key, fmt.Sprint(i)); err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
			}
			written.Store(i)
			pause(ctx, 3*time.Millisecond)
		}
	})
	for reader := range 4 {
		readers.Go(func() {
			rnd := rand.New(rand.NewPCG(7, uint64(reader)))
			for range 25 {
				if reader == 0 {
					c.isolate(rnd.IntN(3) == 0)
				}
				before := written.Load()
				got, err := foresay.Do(ctx, func(ctx context.Context) ([2]int64, error) { return readBoth(ctx, kv) })
				if err != nil || got[0] < before || got[1] < got[0] {
					t.Errorf("read %d and %d, %v, after %d was written", got[0], got[1], err, before)
					return
				}
				pause(ctx, time.Duration(rnd.IntN(8))*time.Millisecond)
			}
		})
	}
	readers.Wait()
	c.isolate(false)
	stop()
	writer.Wait()
	get, _ := kv.CallSites()
	t.Logf("%+v", get.Stats())
	if s := get.Stats(); s.Right == 0 || s.Wrong == 0 {
		t.Errorf("the test must see both right and wrong predictions: %+v", s)
	}
}

func readBoth(ctx context.Context, kv clientv3.KV) (both [2]int64, err error) {
	for i, key := range []string{"a", "b"} {
		resp, err := kv.Get(ctx, key)
		if err != nil {
			return both, err
		}
		if both[i], err = strconv.ParseInt(value(resp), 10, 64); err != nil {
			return both, err
		}
	}
	return both, nil
}

// straggle has calls overtake each other.
func straggle(
	ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	pause(ctx, time.Duration(rand.N(10))*time.Millisecond)
	return invoke(ctx, method, req, reply, cc, opts...)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
