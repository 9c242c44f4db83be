package rubis_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/workload/rubis"
)

// TestLostWritesAreNoticed loses one write of each kind of key.
func TestLostWritesAreNoticed(t *testing.T) {
	for _, kind := range []string{"last-user", "last-item", "last-bid", "last-purchase", "category", "region", "u",
		"u-rating", "u-bids", "u-bought", "u-sells", "m", "i", "a", "b", "p"} {
		t.Run(kind, func(t *testing.T) {
			m := small(t)
			play(t, m, 2, 4000, func(key string) bool { return strings.HasPrefix(key, kind+"/") })
			if err := m.tables.Check(t.Context(), m.begin()); err == nil {
				t.Error("nobody noticed")
			}
		})
	}
}

// auctionOf finds an open item of so many, and returns its auction.
func auctionOf(t *testing.T, m memory, quantity int) (rubis.ItemID, rubis.Auction) {
	t.Helper()
	for n := m.tables.OldItems + 1; n <= m.tables.OldItems+m.tables.OpenItems; n++ {
		if a := read[rubis.Auction](t, m, fmt.Sprintf("a/0/%d", n)); a.Left == quantity {
			return rubis.ItemID{Shard: 0, N: n}, a
		}
	}
	t.Fatalf("no item is there %d times", quantity)
	return rubis.ItemID{}, rubis.Auction{}
}

// buyers returns purchases of one item that two users are about to make.
func buyers(t *testing.T, m memory, item rubis.ItemID) (both [2]rubis.Txn) {
	t.Helper()
	for i := range both {
		client := rubis.Client{Tables: m.tables, Shard: i}
		r := rand.New(rand.NewPCG(4, uint64(i)))
		for both[i].Run == nil {
			next, tx := state(t, client.Session(), r, rubis.StoreBuyNow, item), m.begin()
			if _, err := next.Run(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			if tx.writes[fmt.Sprintf("a/0/%d", item.N)] != nil { // else the way led to another item
				both[i] = next
			}
		}
	}
	return both
}

// TestNothingIsSoldTwice: who comes second to what is unique is refused, and if he has not seen the
// first purchase it shows.
func TestNothingIsSoldTwice(t *testing.T) {
	m := small(t)
	item, _ := auctionOf(t, m, 1)
	both := buyers(t, m, item)
	first, blind, second := m.begin(), m.begin(), m.begin()
	for _, x := range []struct {
		by      rubis.Txn
		tx      *txn
		refused bool
	}{{both[1], blind, false}, {both[0], first, false}, {both[1], second, true}} {
		page, err := x.by.Run(t.Context(), x.tx)
		if err != nil || page.Refused != x.refused || page.Refused != (len(x.tx.writes) == 0) {
			t.Fatalf("refused: %v, %d keys are written, %v; want %v", page.Refused, len(x.tx.writes), err, x.refused)
		}
		if x.tx == first {
			first.commit()
		}
	}
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Fatal(err)
	}
	if a := read[rubis.Auction](t, m, fmt.Sprintf("a/0/%d", item.N)); a.Left != 0 || !a.Over {
		t.Errorf("after the purchase: %+v", a)
	}
	blind.commit()
	if err := m.tables.Check(t.Context(), m.begin()); err == nil || !strings.Contains(err.Error(), "2 bought, of 1") {
		t.Errorf("the item is sold twice: %v", err)
	}
}

// TestBids: a bid exceeds all before, and one that has not seen another is noticed.
func TestBids(t *testing.T) {
	m := small(t)
	item, before := auctionOf(t, m, 1)
	key := fmt.Sprintf("a/0/%d", item.N)
	r := rand.New(rand.NewPCG(5, 0))
	bid := func(shard int) *txn {
		session := rubis.Client{Tables: m.tables, Shard: shard}.Session()
		for {
			tx := m.begin()
			if _, err := state(t, session, r, rubis.StoreBid, item).Run(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			if tx.writes[key] != nil {
				return tx
			}
		}
	}
	first, blind := bid(0), bid(1)
	first.commit()
	after := read[rubis.Auction](t, m, key)
	if after.Bids != before.Bids+1 || after.MaxBid <= before.MaxBid || len(after.Latest) > 5 {
		t.Errorf("a bid turns %+v into %+v", before, after)
	}
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Error(err)
	}
	blind.commit()
	if err := m.tables.Check(t.Context(), m.begin()); err == nil || !strings.Contains(err.Error(), key+": ") {
		t.Errorf("a bid is lost: %v", err)
	}
}

// TestOldItems: auctions that were over at the beginning take no bids, and sell nothing.
func TestOldItems(t *testing.T) {
	m := small(t)
	old := rubis.ItemID{Shard: 0, N: 3}
	if a := read[rubis.Auction](t, m, "a/0/3"); a.Left == 0 || !a.Over {
		t.Fatalf("%+v", a)
	}
	for _, update := range []rubis.State{rubis.StoreBid, rubis.StoreBuyNow} {
		s, r := rubis.Client{Tables: m.tables}.Session(), rand.New(rand.NewPCG(10, 0))
		for {
			tx := m.begin()
			page, err := state(t, s, r, update, old).Run(t.Context(), tx)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(tx.reads, "a/0/3") {
				continue // the way led to another item
			}
			if !page.Refused || len(tx.writes) > 0 {
				t.Errorf("%v: refused: %v, %d keys are written", update, page.Refused, len(tx.writes))
			}
			break
		}
	}
}

// TestCheck: each condition is looked at.
func TestCheck(t *testing.T) {
	m := small(t)
	play(t, m, 11, 3000, nil)
	sum := read[rubis.Rating](t, m, "u-rating/1/4")
	key, auction := "", rubis.Auction{}
	for n := m.tables.OldItems + 1; auction.Bids < 2; n++ {
		key = fmt.Sprintf("a/1/%d", n)
		auction = read[rubis.Auction](t, m, key)
	}
	user := read[rubis.List[rubis.BidID]](t, m, "u-bids/1/4")
	with := func(how func(a *rubis.Auction)) rubis.Auction {
		a := auction
		a.Latest = slices.Clone(a.Latest)
		how(&a)
		return a
	}
	for _, c := range []struct {
		key  string
		row  any
		want string
	}{
		{key, with(func(a *rubis.Auction) { a.Left++ }), "are left and"},
		{key, with(func(a *rubis.Auction) { a.Left = -1 }), "-1 are left"},
		{key, with(func(a *rubis.Auction) { a.Over = !a.Over }), "over: "},
		{key, with(func(a *rubis.Auction) { a.Bids++ }), "bids, want"},
		{key, with(func(a *rubis.Auction) { a.MaxBid++ }), "the maximum bid is"},
		{key, with(func(a *rubis.Auction) { a.Latest = append(a.Latest, rubis.BidID{}) }), "bids are listed"},
		{key, with(func(a *rubis.Auction) { a.Latest[0] = rubis.BidID{Shard: 1, N: 1} }), "is for another item"},
		{"u-rating/1/4", rubis.Rating{Sum: sum.Sum + 1, Comments: sum.Comments}, "the rating is"},
		{fmt.Sprintf("m/1/4/%d", sum.Comments+1), rubis.Comment{}, "should not be yet"},
		{"u-bids/1/4", rubis.List[rubis.BidID]{Count: user.Count + 1, Latest: user.Latest}, "counts "},
		{"last-user/1", rubis.Last{N: m.tables.Users - 1}, "should not be yet"},
	} {
		was, ok := m.rows[c.key]
		b, err := json.Marshal(c.row)
		if err != nil {
			t.Fatal(err)
		}
		m.rows[c.key] = b
		if err := m.tables.Check(t.Context(), m.begin()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s holds %s: %v, want %q", c.key, b, err, c.want)
		}
		if m.rows[c.key] = was; !ok {
			delete(m.rows, c.key)
		}
	}
	if err := m.tables.Check(t.Context(), m.begin()); err != nil {
		t.Error(err)
	}
}
