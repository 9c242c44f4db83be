package tpcc_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/workload/tpcc"
)

// TestMixesOfSTRKeepTheConditions: its three transactions alone, with warehouses that meet often.
func TestMixesOfSTRKeepTheConditions(t *testing.T) {
	for _, name := range []string{"A", "B", "C"} {
		for _, remote := range []string{"authors", "specification"} {
			t.Run(name+"/"+remote, func(t *testing.T) {
				m := small(t)
				mix, err := tpcc.MixOf(name)
				if err != nil {
					t.Fatal(err)
				}
				terminal := tpcc.Terminal{Tables: m.tables, Mix: mix}
				if err := terminal.SetRemote(remote); err != nil {
					t.Fatal(err)
				}
				playAt(t, m, terminal, 4, 1000, nil)
				if err := m.tables.Check(t.Context(), m.begin()); err != nil {
					t.Error(err)
				}
				// The sums have keys of their own: payments leave warehouses and districts as they were.
				for key := range m.rows {
					if strings.HasPrefix(key, "w/") {
						t.Errorf("%s is changed", key)
					}
				}
				if len(m.rows["w-taken/1"]) == 0 || len(m.rows["w-taken/2"]) == 0 {
					t.Error("a warehouse has taken nothing")
				}
			})
		}
	}
}

// TestTimes: keying is constant, and thinking exponential: by chi-square over its ten deciles, one
// in a thousand.
func TestTimes(t *testing.T) {
	m := small(t)
	for k, want := range map[tpcc.Kind]struct{ keying, thinking time.Duration }{
		tpcc.KindNewOrder:    {18 * time.Second, 12 * time.Second},
		tpcc.KindPayment:     {3 * time.Second, 12 * time.Second},
		tpcc.KindOrderStatus: {2 * time.Second, 10 * time.Second},
	} {
		mix := tpcc.Mix{}
		mix[k] = 100
		terminal := tpcc.Terminal{Tables: m.tables, Warehouse: 1, Mix: mix}
		r := rand.New(rand.NewPCG(5, 0))
		const n = 20_000
		var deciles [10]float64
		for range n {
			txn := terminal.Next(r, time.Time{})
			if txn.Kind != k || txn.Keying != want.keying {
				t.Fatalf("%v is typed in %v, want %v in %v", txn.Kind, txn.Keying, k, want.keying)
			}
			below := 1 - math.Exp(-txn.Thinking.Seconds()/want.thinking.Seconds())
			deciles[min(int(below*10), 9)]++
		}
		chi := 0.0
		for _, d := range deciles {
			chi += (d - n/10) * (d - n/10) / (n / 10)
		}
		if chi > 27.88 {
			t.Errorf("%v: deciles of the times of thinking %v, chi-square %.1f", k, deciles, chi)
		}
	}
}

// TestRemote: how often another warehouse is concerned, and which.
func TestRemote(t *testing.T) {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 10})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]float64{"authors": {0.2, 0.2}, "specification": {0.01, 0.15}} {
		terminal := tpcc.Terminal{Tables: tables, Warehouse: 3, Mix: tpcc.Standard(), Others: []int{1, 8}}
		if err := terminal.SetRemote(name); err != nil || terminal.Check() != nil {
			t.Fatal(err, terminal.Check())
		}
		r := rand.New(rand.NewPCG(6, 0))
		var suppliers, buyers [11]float64
		lines, payments := 0.0, 20_000.0
		for range int(payments) {
			for _, l := range terminal.NewOrder(r, time.Time{}).Lines {
				suppliers[l.Supplier]++
				lines++
			}
			buyers[terminal.Payment(r).Buyer.Warehouse]++
		}
		for i, c := range []struct {
			count [11]float64
			of    float64
		}{{suppliers, lines}, {buyers, payments}} {
			away := c.count[1] + c.count[8]
			bound := 4 * math.Sqrt(c.of*want[i]*(1-want[i]))
			if math.Abs(away-c.of*want[i]) > bound || math.Abs(c.count[1]-c.count[8]) > 4*math.Sqrt(away) {
				t.Errorf("%s: %.0f and %.0f of %.0f, want %.2f of them", name, c.count[1], c.count[8], c.of, want[i])
			}
			if c.count[3]+away != c.of {
				t.Errorf("%s: warehouses beside 1, 3 and 8: %v", name, c.count)
			}
		}
	}
	terminal := tpcc.Terminal{}
	if err := terminal.SetRemote("20"); err == nil || !strings.Contains(err.Error(), `remote is "20"`) {
		t.Errorf("remote 20: %v", err)
	}
}

// TestLayout: each warehouse has its server, and what it holds is there.
func TestLayout(t *testing.T) {
	l, err := tpcc.NewLayout(tpcc.Layout{Servers: 3})
	if err != nil {
		t.Fatal(err)
	}
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: l.Warehouses(), Customers: 10, Items: 30})
	if err != nil {
		t.Fatal(err)
	}
	count := map[int]int{}
	for w := range tables.Warehouses {
		for key := range tables.Rows(w + 1) {
			home, ok := tpcc.Home(key)
			server, also := l.Server(home)
			if first := l.First(server); !ok || !also || home < first || home >= first+5 {
				t.Fatalf("%s is at server %d, whose warehouses begin with %d", key, server, first)
			}
			if strings.HasPrefix(key, "w/") {
				count[server]++
			}
		}
	}
	if count[0] != 5 || count[1] != 5 || count[2] != 5 || len(count) != 3 {
		t.Errorf("warehouses of servers: %v", count)
	}
	for _, w := range []int{0, 16} {
		if s, ok := l.Server(w); ok {
			t.Errorf("warehouse %d is at server %d", w, s)
		}
	}
	for _, bad := range []tpcc.Layout{{}, {Servers: -1}, {Servers: 1, PerServer: -1}, {Servers: 1, PerServer: 1 << 21}} {
		if _, err := tpcc.NewLayout(bad); err == nil || !strings.Contains(err.Error(), "Layout.") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func BenchmarkInitial(b *testing.B) {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 135})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		tables.Initial("c/135/7/2999")
	}
}
