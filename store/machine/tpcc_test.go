package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/internal/race"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/carousel"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/layered"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/store/str"
	"github.com/foresay/foresay/store/tapir"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/tpcc"
)

// noting notes what a transaction writes.
type noting struct {
	*client.Tx
	wrote *sync.Map // keys: a run that is discarded may write while another one does
}

func (n noting) Put(key string, value []byte) error {
	n.wrote.Store(key, true)
	return n.Tx.Put(key, value)
}

// TestTPCC: terminals at all sites enter TPC-C's transactions, over gRPC, against warehouses of
// which each site's clerks change the others' stock, too. Afterwards what the store holds agrees,
// though nearly all of them meet.
func TestTPCC(t *testing.T) {
	if race.Enabled {
		t.Skip("other tests have transactions meet; this one looks at what comes of them")
	}
	var protocols []store.Protocol
	for _, mode := range []string{"basic", "fast", "direct"} {
		p, err := carousel.Protocol().In(mode)
		if err != nil {
			t.Fatal(err)
		}
		p.Name += "-" + mode
		protocols = append(protocols, p)
	}
	play := func(p store.Protocol, mode client.Mode, options ...func(*client.Config)) {
		for n := range max(seed.Count(t, 5)-1, 1) {
			t.Run(fmt.Sprintf("%s/%v/%d", p.Name, mode, n), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { playTPCC(t, p, mode, seed.First(t, 1)+uint64(n), options...) })
			})
		}
	}
	others := []store.Protocol{layered.Protocol(), replicatedcommit.Protocol(), tapir.Protocol(), str.Protocol()}
	for i, p := range append(protocols, others...) {
		play(p, []client.Mode{client.Spec, client.Predicated, client.GRPC}[i%3])
	}
	early := protocols[1] // in mode fast
	early.Name += "-early"
	play(early, client.Predicated, func(cfg *client.Config) { cfg.PrepareEarly = true })
}

func playTPCC(t *testing.T, p store.Protocol, mode client.Mode, first uint64, options ...func(*client.Config)) {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 2, Customers: 10, Items: 40})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, wan.Uniform(20*time.Millisecond, "a", "b", "c"), func(w *world) { w.protocol = p })
	defer w.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var (
		mu        sync.Mutex
		wrote     = map[string]bool{}
		committed [5]int
		clerks    sync.WaitGroup
	)
	for i := range 6 {
		terminal := tpcc.Terminal{Tables: tables, Warehouse: 1 + i%2, Mix: tpcc.Mix{40, 30, 10, 10, 10},
			RemoteItems: 20, RemoteBuyers: 20}
		if err := terminal.Check(); err != nil {
			t.Fatal(err)
		}
		c, r := w.client([]wan.Site{"a", "b", "c"}[i%3], mode, options...), rand.New(rand.NewPCG(first, uint64(i)))
		clerks.Go(func() {
			for range 6 {
				txn := terminal.Next(r, time.Now())
				var keys sync.Map
				err := c.Txn(ctx, func(ctx context.Context, tx *client.Tx) error {
					return txn.Run(ctx, workload.Unloaded{Tx: noting{tx, &keys}, Tables: tables})
				})
				mu.Lock()
				for key := range keys.Range {
					wrote[key.(string)] = true
				}
				switch {
				case err == nil:
					committed[txn.Kind]++
				case !errors.Is(err, tpcc.ErrNoItem):
					t.Errorf("%v: %v", txn.Kind, err)
				}
				mu.Unlock()
			}
		})
	}
	clerks.Wait()
	all := workload.Snapshot{}
	reader := w.client("b", client.GRPC)
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(wrote)), 50) {
		rows, err := client.Run(ctx, reader, func(ctx context.Context, tx *client.Tx) (workload.Snapshot, error) {
			return workload.Take(ctx, tx, keys)
		}, client.Keys(keys, nil))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, rows)
	}
	if err := tables.Check(ctx, workload.Unloaded{Tx: all, Tables: tables}); err != nil {
		t.Error(err)
	}
	t.Logf("%v committed (new orders, payments, order statuses, deliveries, stock levels), %d keys", committed,
		len(all))
}
