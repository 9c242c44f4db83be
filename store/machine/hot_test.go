package machine

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// TestHotKey: clients of all sites that add to one key take turns. How many attempts a transaction
// makes does not depend on how many clients there are.
func TestHotKey(t *testing.T) {
	for _, mode := range []client.Mode{client.Spec, client.Predicated} {
		for _, clients := range []int{6, 24} {
			attempts, committed, took := addToOneKey(t, mode, clients, 4)
			each := float64(attempts) / float64(committed)
			t.Logf("%v, %d clients: %d transactions, %.1f attempts each, %.0f a second", mode, clients, committed, each,
				float64(committed)/took.Seconds())
			if each > 4 {
				t.Errorf("%v, %d clients: %.1f attempts to a transaction, want 4 at most", mode, clients, each)
			}
			if rate := float64(committed) / took.Seconds(); rate < 100 {
				t.Errorf("%v, %d clients: %.0f commits a second, want 100 at least", mode, clients, rate)
			}
		}
	}
}

// addToOneKey has clients make some transactions each, one after the other.
func addToOneKey(t *testing.T, mode client.Mode, clients, each int) (attempts, committed int, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, wan.Uniform(time.Millisecond, "a", "b", "c"))
		defer w.close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		var n atomic.Int64
		var all []*client.Client
		for i := range clients {
			all = append(all, w.client([]wan.Site{"a", "b", "c"}[i%3], mode, func(cfg *client.Config) {
				cfg.Attempted = func(client.Attempted) { n.Add(1) }
			}))
		}
		add := func(ctx context.Context, tx *client.Tx) error {
			v, _, err := tx.Get(ctx, "hot")
			if err != nil {
				return err
			}
			return tx.Put("hot", append(v, '+'))
		}
		time.Sleep(5 * time.Second) // disks are known
		start := time.Now()
		var wg sync.WaitGroup
		for i, c := range all {
			wg.Go(func() {
				for range each {
					if err := c.Txn(ctx, add); err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				}
			})
		}
		wg.Wait()
		attempts, took = int(n.Load()), time.Since(start)
		got, err := client.Run(ctx, all[0], func(ctx context.Context, tx *client.Tx) (int, error) {
			v, _, err := tx.Get(ctx, "hot")
			return len(v), err
		})
		if committed = clients * each; err != nil || got != committed {
			t.Errorf("the key counts %d (%v), want %d", got, err, committed)
		}
	})
	return attempts, committed, took
}
