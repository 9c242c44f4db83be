package etcd

import (
	"context"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/foresay/foresay"
)

// BenchmarkTask reads keys of which each says where the next one is, and then
// calls a service that takes 30 ms. The member that answers linearizable reads is
// 30 ms away and back, and another one is in the same machine.
func BenchmarkTask(b *testing.B) {
	c := newCluster(b)
	far, near := c.client(0, away), c.client(follower, 0)
	var revision int64
	for i := range 4 {
		revision = put(b, far, fmt.Sprint("k", i), fmt.Sprint("k", i+1))
	}
	catchUp(b, near, "k3", revision)
	ordered := mustKV(b, Config{Far: far, Near: near})
	concurrent := mustKV(b, Config{Far: far, Near: near, Concurrent: true})
	for _, reads := range []int{1, 3} {
		for _, tt := range []struct {
			name string
			kv   clientv3.KV
		}{{"plain", far}, {"foresay", ordered}, {"concurrent", concurrent}} {
			b.Run(fmt.Sprintf("reads=%d/%s", reads, tt.name), func(b *testing.B) {
				for b.Loop() {
					task(b, tt.kv, reads, tt.name != "plain")
				}
			})
		}
	}
	c.isolate(true)
	put(b, far, "k0", "k1")
	b.Run("reads=1/foresay-always-stale", func(b *testing.B) {
		for b.Loop() {
			task(b, ordered, 1, true)
		}
	})
}

func task(b *testing.B, kv clientv3.KV, reads int, speculate bool) {
	work := func(ctx context.Context) (string, error) {
		key := "k0"
		for range reads {
			resp, err := kv.Get(ctx, key)
			if err != nil {
				return "", err
			}
			key = value(resp)
		}
		select {
		case <-time.After(30 * time.Millisecond):
			return key, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	var got string
	var err error
	if speculate {
		got, err = foresay.Do(b.Context(), work)
	} else {
		got, err = work(b.Context())
	}
	if want := fmt.Sprint("k", reads); got != want || err != nil {
		b.Fatalf("got %q, %v; want %q", got, err, want)
	}
}
