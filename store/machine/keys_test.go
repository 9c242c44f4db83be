package machine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/tapir"
	"github.com/foresay/foresay/wan"
)

// TestKeys: how long a transaction at site a takes that reads and writes two keys, one after the
// other, whose partitions are led at sites b and c. Sites are 100 ms from each other. Carousel
// prepares declared keys while it reads them; other protocols read them at once. A hint that is
// incomplete saves less, and one that is wrong nothing; the transaction is committed all the same,
// and nothing of it is left.
func TestKeys(t *testing.T) {
	fast, err := carousel.Protocol().In("fast")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		protocol store.Protocol
		mode     client.Mode
		// without keys; with all; with one of them only; with others
		none, right, incomplete, wrong int
	}{
		{carousel.Protocol(), client.GRPC, 400, 200, 400, 400},
		{carousel.Protocol(), client.Spec, 300, 200, 300, 300},
		{carousel.Protocol(), client.Predicated, 200, 200, 200, 200},
		{fast, client.GRPC, 300, 100, 200, 300},
		{fast, client.Spec, 200, 100, 200, 200},
		{layered.Protocol(), client.GRPC, 600, 500, 600, 600},
		{tapir.Protocol(), client.GRPC, 100, 100, 100, 100}, // it reads from the nearest site
		{replicatedcommit.Protocol(), client.GRPC, 300, 200, 300, 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, wan.Uniform(100*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = tc.protocol })
			defer w.close()
			c := w.client("a", tc.mode)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			n := 0
			// fresh returns a key of a partition that nothing has used
			fresh := func(shard int) string {
				for {
					n++
					if k := fmt.Sprint("k", n); store.ShardOf(store.Key(k), 3) == shard {
						return k
					}
				}
			}
			play := func(x, y string, opts ...client.Option) time.Duration {
				time.Sleep(3 * time.Second)
				start := time.Now()
				if err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
					for _, k := range []string{x, y} {
						v, _, err := tx.Get(ctx, k)
						if err != nil {
							return err
						}
						if err := tx.Put(k, append(v, '+')); err != nil {
							return err
						}
					}
					return nil
				}, opts...); err != nil {
					t.Errorf("%s, %v: %v", tc.protocol.Name, tc.mode, err)
				}
				return time.Since(start)
			}
			play(fresh(0), fresh(1)) // connects
			both := func(keys ...string) client.Option { return client.Keys(keys, keys) }
			x := func() (string, string) { return fresh(1), fresh(2) }
			k1, k2 := x()
			is := func(what string, got time.Duration, want int) {
				if least := time.Duration(want) * time.Millisecond; got < least || got > least+2*time.Millisecond {
					t.Errorf("%s, %v, %s: a transaction takes %v, want %v", tc.protocol.Name, tc.mode, what, got, least)
				}
			}
			is("no keys", play(k1, k2), tc.none)
			k1, k2 = x()
			is("its keys", play(k1, k2, both(k2, k1)), tc.right)
			k1, k2 = x()
			is("one of its keys", play(k1, k2, both(k1)), tc.incomplete)
			k1, k2 = x()
			other1, other2 := x()
			is("other keys", play(k1, k2, both(other1, other2)), tc.wrong)
			is("keys that another one had declared", play(other1, other2, both(other1, other2)), tc.right)
		})
	}
}
