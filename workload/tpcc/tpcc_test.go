package tpcc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/tpcc"
)

// memory is a store in which rows of the beginning are made up when they are read.
type memory struct {
	tables *tpcc.Tables
	rows   workload.Snapshot
}

// txn is a transaction of the store: its writes are there for itself only.
type txn struct {
	workload.Unloaded
	writes map[string][]byte
}

func (x *txn) Get(ctx context.Context, key string) ([]byte, bool, error) {
	if v, ok := x.writes[key]; ok {
		return v, true, nil
	}
	return x.Unloaded.Get(ctx, key)
}

func (x *txn) Put(key string, value []byte) error {
	x.writes[key] = value
	return nil
}

func (m memory) begin() *txn {
	return &txn{workload.Unloaded{Tx: m.rows, Tables: m.tables}, map[string][]byte{}}
}

func small(t *testing.T) memory {
	t.Helper()
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 2, Customers: 30, Items: 60})
	if err != nil {
		t.Fatal(err)
	}
	return memory{tables, workload.Snapshot{}}
}

func TestBeginningIsConsistent(t *testing.T) {
	m := small(t)
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for key := range m.tables.Rows(2) {
		kind, _, _ := strings.Cut(key, "/")
		kinds[kind]++
		if w, ok := tpcc.Home(key); !ok || w != 2 {
			t.Fatalf("%s is at home in %d, %v, want 2", key, w, ok)
		}
	}
	lines := kinds["l"]
	delete(kinds, "l")
	want := map[string]int{"w": 1, "w-taken": 1, "d": 10, "d-taken": 10, "d-next": 10, "i": 60, "s": 60, "c": 300,
		"c-account": 300, "c-latest": 300, "c-named": 300, "h": 300, "o": 300}
	if !maps.Equal(kinds, want) || lines < 5*300 || lines > 15*300 {
		t.Errorf("%v rows and %d lines, want %v and 5 to 15 lines for each order", kinds, lines, want)
	}
	for _, key := range []string{"", "w", "w/0", "w/3", "w/01", "w/+1", "w//1", "w/1x", "d/1/11", "c/1/1/31", "c/1/1/1/1",
		"l/1/1/1/16", "h/1/1/1/2", "i/1/61", "c-named/1/1/NOBODY", "c-named/1/11/BARBARBAR", "x/1", "o/1/1/31",
		"i/1/1/1/1/1"} {
		if v, ok := m.tables.Initial(key); ok {
			t.Errorf("%q holds %s at the beginning, want nothing", key, v)
		}
	}
	for _, key := range []string{"", "w", "w/", "w/x", "w/-1", "w/1x"} {
		if w, ok := tpcc.Home(key); ok {
			t.Errorf("%q is at home in %d", key, w)
		}
	}
}

// play runs so many transactions of the standard mix one after the other, and loses the writes of
// the one that lose tells.
func play(t *testing.T, m memory, seed uint64, n int, lose func(kind tpcc.Kind, key string) bool) {
	t.Helper()
	standard := tpcc.Terminal{Tables: m.tables, Mix: tpcc.Standard(), RemoteItems: 10, RemoteBuyers: 15}
	playAt(t, m, standard, seed, n, lose)
}

// playAt plays at terminals of both warehouses, which are else like the given one.
func playAt(t *testing.T, m memory, terminal tpcc.Terminal, seed uint64, n int,
	lose func(kind tpcc.Kind, key string) bool) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	lost := lose == nil
	for i := range n {
		terminal.Warehouse = 1 + i%2
		if err := terminal.Check(); err != nil {
			t.Fatal(err)
		}
		next, tx := terminal.Next(r, now), m.begin()
		err := next.Run(t.Context(), tx)
		if errors.Is(err, tpcc.ErrNoItem) {
			continue
		}
		if err != nil {
			t.Fatalf("transaction %d, %v: %v", i, next.Kind, err)
		}
		if next.ReadOnly != (len(tx.writes) == 0) && next.Kind != tpcc.KindDelivery {
			t.Errorf("%v writes %d keys, read-only: %v", next.Kind, len(tx.writes), next.ReadOnly)
		}
		for key, v := range tx.writes {
			if !lost && i > n/2 && lose(next.Kind, key) {
				lost = true
				continue
			}
			m.rows[key] = v
		}
	}
	if !lost {
		t.Fatal("no write is lost")
	}
}

func TestTransactionsKeepTheConditions(t *testing.T) {
	m := small(t)
	play(t, m, 1, 2000, nil)
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Error(err)
	}
	if err := m.rows.Put("d/1/1", nil); err == nil {
		t.Error("a snapshot has changed")
	}
	if len(m.rows) < 1000 {
		t.Errorf("%d rows are changed", len(m.rows))
	}
}

// TestLostWritesAreNoticed loses one write of each kind of key.
func TestLostWritesAreNoticed(t *testing.T) {
	for _, kind := range []string{"w-taken", "d", "d-taken", "d-next", "c-account", "c-latest", "h", "o", "l", "s"} {
		t.Run(kind, func(t *testing.T) {
			m := small(t)
			play(t, m, 2, 400, func(_ tpcc.Kind, key string) bool { return strings.HasPrefix(key, kind+"/") })
			if err := m.tables.Check(t.Context(), m.begin()); err == nil {
				t.Error("nobody noticed")
			}
		})
	}
}

// TestPayByName: the customer in the middle by first name pays, and only after the name was looked
// up is it known which keys that changes.
func TestPayByName(t *testing.T) {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := memory{tables, workload.Snapshot{}}
	v, _ := tables.Initial("c-named/1/3/BARBARBAR")
	var named struct{ Customers []int }
	if err := json.Unmarshal(v, &named); err != nil || len(named.Customers) < 2 {
		t.Fatalf("%s, %v", v, err)
	}
	var firsts []string
	for _, c := range named.Customers {
		v, _ := tables.Initial(fmt.Sprintf("c/1/3/%d", c))
		var row tpcc.Customer
		if err := json.Unmarshal(v, &row); err != nil || row.Last != "BARBARBAR" {
			t.Fatalf("%s, %v", v, err)
		}
		firsts = append(firsts, row.First)
	}
	for i := range firsts[1:] {
		if firsts[i] > firsts[i+1] {
			t.Errorf("first names are in the order %v", firsts)
		}
	}
	tx := m.begin()
	d := tpcc.DistrictID{Warehouse: 1, District: 3}
	buyer := tpcc.Buyer{CustomerID: tpcc.CustomerID{DistrictID: d}, Last: "BARBARBAR"}
	c, err := tpcc.Pay{District: d, Amount: 500, Buyer: buyer}.Run(t.Context(), tx)
	if want := named.Customers[(len(named.Customers)+1)/2-1]; err != nil || c.Customer != want {
		t.Fatalf("%v has paid (%v), want %d of %v", c, err, want, named.Customers)
	}
	var account tpcc.Account
	if err := json.Unmarshal(tx.writes[fmt.Sprintf("c-account/1/3/%d", c.Customer)], &account); err != nil ||
		account.Balance != -1500 || account.Paid != 1500 || account.Payments != 2 {
		t.Errorf("the account is %+v, %v", account, err)
	}
}

// TestInput: what clerks enter is spread as the specification says, and a seed repeats it.
func TestInput(t *testing.T) {
	tables, err := tpcc.NewTables(tpcc.Scale{Warehouses: 5})
	if err != nil {
		t.Fatal(err)
	}
	terminal := tpcc.Terminal{Tables: tables, Warehouse: 3, Mix: tpcc.Standard(), RemoteItems: 1, RemoteBuyers: 15}
	r, again := rand.New(rand.NewPCG(1, 0)), rand.New(rand.NewPCG(1, 0))
	const n = 20_000
	lines, remote, noItem, named, away := 0, 0, 0, 0, 0
	for range n {
		o := terminal.NewOrder(r, time.Time{})
		if fmt.Sprint(o) != fmt.Sprint(terminal.NewOrder(again, time.Time{})) {
			t.Fatal("a seed does not repeat what is entered")
		}
		seen := map[int]bool{}
		for _, l := range o.Lines {
			if seen[l.Item] {
				t.Fatalf("item %d comes twice", l.Item)
			}
			seen[l.Item] = true
			lines++
			if l.Supplier != 3 {
				remote++
			}
			if l.Item > tables.Items {
				noItem++
			}
		}
		p := terminal.Payment(r)
		_ = terminal.Payment(again)
		if p.Buyer.Last != "" {
			named++
		}
		if p.Buyer.Warehouse != 3 {
			away++
		}
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"lines of an order", float64(lines) / n, 10}, {"remote lines", float64(remote) / float64(lines), 0.01},
		{"orders without an item", float64(noItem) / n, 0.01}, {"buyers by name", float64(named) / n, 0.6},
		{"buyers of other warehouses", float64(away) / n, 0.15},
	} {
		if c.got < 0.85*c.want || c.got > 1.15*c.want {
			t.Errorf("%s: %.3f, want about %.3f", c.what, c.got, c.want)
		}
	}
}

// TestMixes: shares and times are as they should be.
func TestMixes(t *testing.T) {
	m := small(t)
	for _, name := range []string{"standard", "A", "B", "C"} {
		mix, err := tpcc.MixOf(name)
		if err != nil {
			t.Fatal(err)
		}
		terminal := tpcc.Terminal{Tables: m.tables, Warehouse: 1, Mix: mix}
		if err := terminal.Check(); err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 0))
		var count [5]int
		thinks := time.Duration(0)
		const n = 10_000
		for range n {
			txn := terminal.Next(r, time.Time{})
			count[txn.Kind]++
			if txn.Kind == tpcc.KindPayment {
				if txn.Keying != 3*time.Second {
					t.Fatalf("a payment is entered in %v", txn.Keying)
				}
				thinks += txn.Thinking
			}
		}
		for k, share := range mix {
			if got := float64(count[k]) * 100 / n; got < float64(share)-2 || got > float64(share)+2 {
				t.Errorf("mix %s: %.1f %% of %v, want %d", name, got, tpcc.Kind(k), share)
			}
		}
		if mean := thinks / time.Duration(count[tpcc.KindPayment]); mean < 11*time.Second || mean > 13*time.Second {
			t.Errorf("mix %s: clerks think for %v after a payment, want 12 s", name, mean)
		}
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		scale tpcc.Scale
		want  string
	}{
		{tpcc.Scale{}, "Scale.Warehouses is 0"}, {tpcc.Scale{Warehouses: 1, Customers: 9}, "Scale.Customers is 9"},
		{tpcc.Scale{Warehouses: 1, Items: 29}, "Scale.Items is 29"},
	} {
		if _, err := tpcc.NewTables(c.scale); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.scale, err, c.want)
		}
	}
	if _, err := tpcc.MixOf("D"); err == nil || !strings.Contains(err.Error(), `no mix "D"`) {
		t.Errorf("mix D: %v", err)
	}
	m := small(t)
	good := tpcc.Terminal{Tables: m.tables, Warehouse: 1, Mix: tpcc.Standard()}
	for _, c := range []struct {
		change func(*tpcc.Terminal)
		want   string
	}{
		{func(x *tpcc.Terminal) { x.Tables = nil }, "Terminal.Tables is missing"},
		{func(x *tpcc.Terminal) { x.Warehouse = 3 }, "Terminal.Warehouse is 3 (want 1 to 2)"},
		{func(x *tpcc.Terminal) { x.Mix[0]++ }, "sum up to 101"},
		{func(x *tpcc.Terminal) { x.Mix = tpcc.Mix{-1, 101} }, "-1 % of new-order"},
		{func(x *tpcc.Terminal) { x.RemoteItems = 101 }, "Terminal.RemoteItems is 101"},
		{func(x *tpcc.Terminal) { x.RemoteBuyers = -1 }, "Terminal.RemoteBuyers is -1"},
		{func(x *tpcc.Terminal) { x.Others = []int{2, 1} }, "Terminal.Others has 1 (want 1 to 2, and not Warehouse, 1)"},
		{func(x *tpcc.Terminal) { x.Others = []int{3} }, "Terminal.Others has 3"},
	} {
		x := good
		c.change(&x)
		if err := x.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// What a store holds can be anything.
	for key := range m.tables.Rows(1) {
		m.rows[key] = []byte("{")
	}
	r := rand.New(rand.NewPCG(1, 0))
	for range 200 {
		if err := good.Next(r, time.Time{}).Run(t.Context(), m.begin()); err == nil {
			t.Error("a transaction has read damaged rows")
		}
	}
	if err := m.tables.Check(t.Context(), m.begin()); err == nil || !strings.Contains(err.Error(), "the value is no") {
		t.Errorf("damaged rows: %v", err)
	}
}
