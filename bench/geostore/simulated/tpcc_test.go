package simulated

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/tpcc"
)

// insists makes a transaction as often as it takes to commit.
func (c *caller) insists(p program, then func(result)) {
	c.runs(p, func(r result) {
		if r.verdict != store.Aborted {
			then(r)
			return
		}
		p.priority = r.priority
		c.all.After(time.Duration(c.random.Int64N(int64(longestPause))), func() { c.insists(p, then) })
	})
}

// longestPause is how long a client waits before it tries again, at most.
const longestPause = 20 * time.Millisecond

// TestTPCC: the programs that run on store/client run in the simulator, whatever they read next: a
// payment by last name, which nobody can declare, and all others. Clerks at all sites enter
// transactions of which nearly all meet; what the store holds in the end agrees.
func TestTPCC(t *testing.T) {
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			playTPCC(t, s, 1)
		})
	}
}

func playTPCC(t *testing.T, s plan.System, seed uint64) {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 2, Customers: 10, Items: 40})
	if err != nil {
		t.Fatal(err)
	}
	all := populated(t, s, wan.Uniform(20*time.Millisecond, "a", "b", "c"), 2, seed)
	defer all.close()
	var committed [5]int
	named, tries, wrote := 0, 0, map[string]bool{}
	all.ended = func(*caller, result) { tries++ }
	open := len(all.clients)
	for i, c := range all.clients {
		terminal := tpcc.Terminal{Tables: tables, Warehouse: 1 + i%2, Mix: tpcc.Mix{40, 30, 10, 10, 10},
			RemoteItems: 20, RemoteBuyers: 20}
		if err := terminal.Check(); err != nil {
			t.Fatal(err)
		}
		left := 10
		var enter func()
		enter = func() {
			if left--; left < 0 {
				open--
				return
			}
			txn := terminal.Next(c.random, time.Unix(0, 0).Add(all.Now()))
			c.insists(program{code: func(ctx context.Context, tx workload.Tx) error {
				return txn.Run(ctx, workload.Unloaded{Tx: tx, Tables: tables})
			}}, func(r result) {
				switch {
				case r.verdict != store.Committed || r.err != nil && !errors.Is(r.err, tpcc.ErrNoItem):
					t.Errorf("%v is %v: %v", txn.Kind, r.verdict, r.err)
				case r.err == nil:
					committed[txn.Kind]++
					for _, w := range r.writes {
						wrote[string(w.Key)] = true
					}
					if txn.Kind == tpcc.KindPayment && looksUp(r) {
						named++
					}
				}
				all.After(0, enter)
			})
		}
		enter()
	}
	await(t, all, func() bool { return open == 0 })
	held := workload.Snapshot{}
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(wrote)), 50) {
		done := false
		all.clients[1].insists(program{reads: keys, code: func(ctx context.Context, tx workload.Tx) error {
			rows, err := workload.Take(ctx, tx, keys)
			maps.Copy(held, rows)
			return err
		}}, func(r result) { done = r.verdict == store.Committed })
		await(t, all, func() bool { return done })
	}
	if err := tables.Check(t.Context(), workload.Unloaded{Tx: held, Tables: tables}); err != nil {
		t.Error(err)
	}
	if slices.Contains(committed[:], 0) || named == 0 || len(held) < 100 {
		t.Errorf("%v committed, %d payments by last name, %d keys", committed, named, len(held))
	}
	t.Logf("%v committed (new orders, payments, order statuses, deliveries, stock levels) in %d attempts, %d keys",
		committed, tries, len(held))
}

// looksUp reports whether a transaction has looked a last name up.
func looksUp(r result) bool {
	for key := range r.read {
		if strings.HasPrefix(string(key), "c-named/") {
			return true
		}
	}
	return false
}

// populated returns a store, with so many clients at each site.
func populated(t *testing.T, s plan.System, sites wan.Matrix, clients int, seed uint64) *population {
	t.Helper()
	placement, err := placementOf(sites)
	if err != nil {
		t.Fatal(err)
	}
	all, err := populate(setting{system: s, wan: sites, placement: placement, clients: atEach(sites, clients),
		roundTrip: sites.MaxRTT(sites.Sites()), seed: seed, disk: sim.Disk{Latency: bench.SyncTime}})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// await lets time pass until a condition holds.
func await(t *testing.T, all *population, cond func() bool) {
	t.Helper()
	for until := all.Now() + 10*time.Minute; !cond(); {
		if err := all.Pass(100 * time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if all.Now() > until {
			t.Fatal("clients wait for ever")
		}
	}
}
