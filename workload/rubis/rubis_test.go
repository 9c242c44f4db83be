package rubis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/rubis"
)

// memory is a store in which rows of the beginning are made up when they are read.
type memory struct {
	tables *rubis.Tables
	rows   workload.Snapshot
}

func newMemory(t *rubis.Tables) memory { return memory{t, workload.Snapshot{}} }

// txn is a transaction of the store: its writes are there for itself only until it commits.
type txn struct {
	workload.Unloaded
	store  memory
	writes map[string][]byte
	reads  []string
}

func (m memory) begin() *txn {
	return &txn{Unloaded: workload.Unloaded{Tx: m.rows, Tables: m.tables}, store: m, writes: map[string][]byte{}}
}

func (x *txn) Get(ctx context.Context, key string) ([]byte, bool, error) {
	x.reads = append(x.reads, key)
	if v, ok := x.writes[key]; ok {
		return v, true, nil
	}
	return x.Unloaded.Get(ctx, key)
}

func (x *txn) Put(key string, value []byte) error {
	x.writes[key] = value
	return nil
}

func (x *txn) commit() { maps.Copy(x.store.rows, x.writes) }

func tiny() rubis.Scale {
	return rubis.Scale{Shards: 2, Users: 30, OldItems: 25, OpenItems: 60, Regions: 7, Categories: 3, BidsPerItem: 6,
		CommentsPerUser: 4, DescriptionBytes: 20, CommentBytes: 10, ReduceFactor: 1, Listed: 5}
}

func small(t *testing.T) memory {
	t.Helper()
	tables, err := rubis.NewTables(tiny())
	if err != nil {
		t.Fatal(err)
	}
	return newMemory(tables)
}

func TestBeginningIsConsistent(t *testing.T) {
	m := small(t)
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	loaded := workload.Snapshot{}
	for shard := range 2 {
		for key, value := range m.tables.Rows(shard) {
			loaded[key] = value
			if shard == 0 {
				kind, _, _ := strings.Cut(key, "/")
				kinds[kind]++
			}
			if s, ok := rubis.Shard(key); !ok || s != shard {
				t.Fatalf("%s is of shard %d, %v, want %d", key, s, ok, shard)
			}
		}
	}
	// Check reads a loaded store alone, so nothing is missing in Rows.
	if err := m.tables.Check(t.Context(), loaded); err != nil {
		t.Error(err)
	}
	bids, comments := kinds["b"], kinds["m"]
	delete(kinds, "b")
	delete(kinds, "m")
	want := map[string]int{"last-user": 1, "last-item": 1, "last-bid": 1, "last-purchase": 1, "categories": 1,
		"regions": 1, "category": 3, "region": 7, "u": 30, "u-rating": 30, "u-bids": 30, "u-bought": 30, "u-sells": 30,
		"i": 85, "a": 85}
	if !maps.Equal(kinds, want) || bids < 200 || bids > 300 || comments < 30 || comments > 90 {
		t.Errorf("%v, %d bids, %d comments, want %v and about 255 and 60", kinds, bids, comments, want)
	}
	for _, key := range []string{"", "u", "u/0", "u/0/0", "u/0/31", "u/2/1", "u/00/1", "u/0/01", "u/0/x", "i/0/86",
		"a/0/86", fmt.Sprintf("b/0/%d", bids+1),
		"m/0/1/5", "m/0/31/1", "p/0/1", "category/0/4", "region/0/8", "region/0/0", "x/0/1",
		"last-user/2", "last-user/0/1", "x/0", "u/0/1/1/1", "u/-1/1"} {
		if v, ok := m.tables.Initial(key); ok {
			t.Errorf("%q holds %s at the beginning, want nothing", key, v)
		}
	}
	for _, key := range []string{"", "u", "u/", "u/x/1", "u/-1/1"} {
		if s, ok := rubis.Shard(key); ok {
			t.Errorf("%q is of shard %d", key, s)
		}
	}
}

// play has users of both shards go through so many pages, one transaction after the other. In the
// second half it loses the first write that lose tells, and ends.
func play(t *testing.T, m memory, seed uint64, n int, lose func(key string) bool) (count map[rubis.State]int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	count = map[rubis.State]int{}
	var sessions []*rubis.Session
	var pages [6]rubis.Page
	for i := range pages {
		client := rubis.Client{Tables: m.tables, Shard: i % 2, Others: []int{1 - i%2}, RemotePercent: 30, Prices: i < 4}
		if err := client.Check(); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, client.Session())
	}
	for i := range n {
		at := i % len(sessions)
		next, tx := sessions[at].Next(r, time.Time{}, pages[at]), m.begin()
		page, err := next.Run(t.Context(), tx)
		if err != nil {
			t.Fatalf("transaction %d, %v: %v", i, next.State, err)
		}
		if wrote := len(tx.writes) > 0; wrote == (next.ReadOnly || page.Refused) || next.Static != (len(tx.reads) == 0) {
			t.Fatalf("%v writes %d keys and reads %v, refused: %v", next.State, len(tx.writes), tx.reads, page.Refused)
		}
		if !page.Refused {
			count[next.State]++
		}
		pages[at] = page
		for key := range tx.writes {
			if lose != nil && i > n/2 && lose(key) {
				delete(tx.writes, key)
				tx.commit()
				return count
			}
		}
		tx.commit()
	}
	if lose != nil {
		t.Fatal("no write is lost")
	}
	return count
}

func TestTransactionsKeepTheConditions(t *testing.T) {
	m := small(t)
	count := play(t, m, 1, 20_000, nil)
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Error(err)
	}
	for s := range rubis.States {
		if count[s] == 0 && s != rubis.PutCommentAuth {
			t.Errorf("no %v was made: %v", s, count)
		}
	}
	for n := m.tables.OldItems + m.tables.OpenItems; n < read[rubis.Last](t, m, "last-item/0").N; n++ {
		item := read[rubis.Item](t, m, fmt.Sprintf("i/0/%d", n+1))
		seller := read[rubis.User](t, m, fmt.Sprintf("u/%d/%d", item.Seller.Shard, item.Seller.N))
		if item.Region != seller.Region || item.Seller.Shard != 0 {
			t.Errorf("item %d is of region %d, and the seller, %v, of %d", n+1, item.Region, item.Seller, seller.Region)
		}
	}
	t.Log(count)
}

// state has a session go on until it makes a transaction of a state.
func state(t *testing.T, s *rubis.Session, r *rand.Rand, want rubis.State, item rubis.ItemID) rubis.Txn {
	t.Helper()
	for range 100_000 {
		if next := s.Next(r, time.Time{}, rubis.Page{Items: []rubis.ItemID{item}}); next.State == want {
			return next
		}
	}
	t.Fatalf("nobody comes to %v", want)
	return rubis.Txn{}
}

func read[R any](t *testing.T, m memory, key string) (row R) {
	t.Helper()
	v, ok, err := m.begin().Get(t.Context(), key)
	if err != nil || !ok {
		t.Fatalf("%s: %v, %v", key, ok, err)
	}
	if err := json.Unmarshal(v, &row); err != nil {
		t.Fatal(key, err)
	}
	return row
}

// TestScale: what there is without being told, and how it is spread.
func TestScale(t *testing.T) {
	tables, err := rubis.NewTables(rubis.Scale{Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	want := rubis.Scale{Shards: 3, Users: 100_000, OldItems: 100_000, OpenItems: 3300, Regions: 62, Categories: 20,
		BidsPerItem: 20, CommentsPerUser: 20, DescriptionBytes: 819, CommentBytes: 204, ReduceFactor: 1, Listed: 20}
	if tables.Scale != want {
		t.Fatalf("%+v, want %+v", tables.Scale, want)
	}
	m := newMemory(tables)
	const n = 4000
	var reserve, buyNow, unique, quantity float64
	var bids, comments [21]float64
	for i := range n {
		item := read[rubis.Item](t, m, fmt.Sprintf("i/2/%d", 1+i*25))
		if len(item.Description) != 819 {
			t.Fatalf("a description of %d bytes", len(item.Description))
		}
		if item.Reserve > 0 {
			reserve++
		}
		if item.BuyNow > 0 {
			buyNow++
		}
		if item.Quantity == 1 {
			unique++
		}
		quantity += float64(item.Quantity)
		bids[read[rubis.Auction](t, m, fmt.Sprintf("a/2/%d", 1+i*25)).Bids]++
		u := read[rubis.Rating](t, m, fmt.Sprintf("u-rating/2/%d", 1+i*25))
		comments[u.Comments]++
	}
	for _, c := range []struct {
		what                string
		got, want, variance float64
	}{{"items with a reserve price", reserve, .4, .24}, {"with a price to buy at once", buyNow, .1, .09},
		{"unique", unique, .82, .1476}, {"quantity", quantity, 1.9, 6.5}} {
		if math.Abs(c.got-n*c.want) > 4*math.Sqrt(n*c.variance) {
			t.Errorf("%s: %.3f, want %.3f", c.what, c.got/n, c.want)
		}
	}
	// 20 degrees of freedom, one in 10,000.
	for what, count := range map[string][21]float64{"bids": bids, "comments": comments} {
		chi := 0.0
		for _, c := range count {
			chi += (c - n/21.0) * (c - n/21.0) / (n / 21.0)
		}
		if chi > 52.4 {
			t.Errorf("%s: %v, chi-square %.1f", what, count, chi)
		}
	}
	// The last item's bids are the last, and numbers of bids lead back to their items.
	last := read[rubis.Last](t, m, "last-bid/2").N
	if b := read[rubis.Bid](t, m, fmt.Sprintf("b/2/%d", last)); b.Item.N < 103_295 || b.Item.N > 103_300 {
		t.Errorf("the last bid, %d, is for item %d", last, b.Item.N)
	}
	list := read[rubis.List[rubis.ItemID]](t, m, "category/2/7")
	if list.Count != 165 || len(list.Latest) != 20 {
		t.Errorf("category 7 has %d items, and lists %v", list.Count, list.Latest)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		change func(*rubis.Scale)
		want   string
	}{
		{func(s *rubis.Scale) { s.Shards = 0 }, "Scale.Shards is 0 (want 1 to 100000)"},
		{func(s *rubis.Scale) { s.Users = -1 }, "Scale.Users is -1, divided by a ReduceFactor of 1 (want 1"},
		{func(s *rubis.Scale) { s.ReduceFactor = 26 }, "Scale.OldItems is 25, divided by a ReduceFactor of 26 (want 1"},
		{func(s *rubis.Scale) { s.ReduceFactor = -1 }, "Scale.ReduceFactor is -1"},
		{func(s *rubis.Scale) { s.OpenItems = 2_000_000_000 }, "Scale.OpenItems is 2000000000"},
		{func(s *rubis.Scale) { s.Regions = -1 }, "Scale.Regions is -1"},
		{func(s *rubis.Scale) { s.Categories = 100_001 }, "Scale.Categories is 100001"},
		{func(s *rubis.Scale) { s.BidsPerItem = 1001 }, "Scale.BidsPerItem is 1001 (want 1 to 1000)"},
		{func(s *rubis.Scale) { s.CommentsPerUser = -1 }, "Scale.CommentsPerUser is -1"},
		{func(s *rubis.Scale) { s.DescriptionBytes = 1 << 21 }, "Scale.DescriptionBytes is"},
		{func(s *rubis.Scale) { s.CommentBytes = -1 }, "Scale.CommentBytes is"},
		{func(s *rubis.Scale) { s.Listed = 1001 }, "Scale.Listed is 1001"},
	} {
		s := tiny()
		c.change(&s)
		if _, err := rubis.NewTables(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	m := small(t)
	good := rubis.Client{Tables: m.tables, Shard: 1, Others: []int{0}, RemotePercent: 10}
	for _, c := range []struct {
		change func(*rubis.Client)
		want   string
	}{
		{func(c *rubis.Client) { c.Tables = nil }, "Client.Tables is missing"},
		{func(c *rubis.Client) { c.Shard = 2 }, "Client.Shard is 2 (want 0 to 1)"},
		{func(c *rubis.Client) { c.RemotePercent = 101 }, "Client.RemotePercent is 101"},
		{func(c *rubis.Client) { c.Others = nil }, "Client.Others is empty"},
		{func(c *rubis.Client) { c.Others = []int{1} }, "Client.Others has 1 (want 0 to 1, and not Shard, 1)"},
	} {
		x := good
		c.change(&x)
		if err := x.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// What a store holds can be anything, and reads can fail.
	for shard := range 2 {
		for key := range m.tables.Rows(shard) {
			m.rows[key] = []byte("{")
		}
	}
	s, r := good.Session(), rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		next := s.Next(r, time.Time{}, rubis.Page{})
		_, err := next.Run(t.Context(), m.begin())
		if (err == nil) != next.Static {
			t.Errorf("%v has read damaged rows: %v", next.State, err)
		}
		_, err = next.Run(t.Context(), broken{})
		if (err == nil) != next.Static || err != nil && !errors.Is(err, errBroken) {
			t.Errorf("%v has read from a broken store: %v", next.State, err)
		}
	}
	if err := m.tables.Check(t.Context(), m.begin()); err == nil || !strings.Contains(err.Error(), "the value is no") {
		t.Errorf("damaged rows: %v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Get(context.Context, string) ([]byte, bool, error) { return nil, false, errBroken }
func (broken) Put(string, []byte) error                          { return errBroken }

func BenchmarkNext(b *testing.B) {
	tables, err := rubis.NewTables(rubis.Scale{Shards: 27})
	if err != nil {
		b.Fatal(err)
	}
	s, r := rubis.Client{Tables: tables}.Session(), rand.New(rand.NewPCG(1, 0))
	for b.Loop() {
		s.Next(r, time.Time{}, rubis.Page{})
	}
}

func BenchmarkInitial(b *testing.B) {
	tables, err := rubis.NewTables(rubis.Scale{Shards: 27})
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range []string{"a/26/103300", "i/26/103300", "category/3/7", "region/3/7"} {
		b.Run(key[:3], func(b *testing.B) {
			for b.Loop() {
				tables.Initial(key)
			}
		})
	}
}
