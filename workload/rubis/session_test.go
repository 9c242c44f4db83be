package rubis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/workload/rubis"
)

// TestSessions: a seed repeats a session, users search other shards as often as they should, and
// look at what they were shown.
func TestSessions(t *testing.T) {
	m := small(t)
	client := rubis.Client{Tables: m.tables, Shard: 1, Others: []int{0}, RemotePercent: 25, Prices: true}
	s, again := client.Session(), client.Session()
	r, too := rand.New(rand.NewPCG(6, 0)), rand.New(rand.NewPCG(6, 0))
	var page rubis.Page
	searches, remote, first, registered := 0.0, 0.0, 0, 0
	var shown []rubis.ItemID
	var named []rubis.UserID
	var self rubis.UserID
	last := rubis.State(-1)
	for i := range 20_000 {
		next, twin := s.Next(r, time.Time{}, page), again.Next(too, time.Time{}, page)
		tx, other := m.begin(), m.begin()
		var err, err2 error
		page, err = next.Run(t.Context(), tx)
		_, err2 = twin.Run(t.Context(), other)
		if err != nil || err2 != nil || next.State != twin.State || fmt.Sprint(tx.writes) != fmt.Sprint(other.writes) {
			t.Fatalf("%v, %v and %v, %v: a seed does not repeat what a user does", next.State, err, twin.State, err2)
		}
		tx.commit()
		if i == 0 && !next.First || next.First && next.State != rubis.Home {
			t.Fatalf("page %d, %v, is the first: %v", i, next.State, next.First)
		}
		if next.First {
			first++
			self = rubis.UserID{} // whoever it is
		}
		searched := last == rubis.SearchItemsInCategory || last == rubis.SearchItemsInRegion
		switch next.State {
		case rubis.ViewItem:
			seen := func(i rubis.ItemID) bool { return fmt.Sprintf("i/%d/%d", i.Shard, i.N) == tx.reads[0] }
			if searched && len(shown) > 0 && !slices.ContainsFunc(shown, seen) {
				t.Fatalf("a user is shown %v, and looks at %v", shown, tx.reads[0])
			}
		case rubis.ViewUserInfo:
			seen := func(u rubis.UserID) bool { return fmt.Sprintf("u/%d/%d", u.Shard, u.N) == tx.reads[0] }
			chosen := last == rubis.ViewItem || last == rubis.ViewBidHistory || last == rubis.PutBid
			if chosen && len(named) > 0 && !slices.ContainsFunc(named, seen) {
				t.Fatalf("a page names %v, and its user looks at %v", named, tx.reads[0])
			}
		case rubis.RegisterUser:
			self = page.User
			registered++
		case rubis.AboutMe:
			if want := fmt.Sprintf("u/%d/%d", self.Shard, self.N); self.N != 0 && tx.reads[0] != want {
				t.Fatalf("%v is about %v, want %v", next.State, tx.reads[0], want)
			}
		case rubis.SearchItemsInCategory, rubis.SearchItemsInRegion:
			if shown = page.Items; len(shown) > 5 {
				t.Fatalf("a search shows %v", shown)
			}
			for _, i := range shown {
				if i.Shard != shown[0].Shard {
					t.Fatalf("a search shows %v, of several shards", shown)
				}
			}
			if shard, _ := rubis.Shard(tx.reads[0]); last != rubis.ViewItem { // else he may have gone back
				searches++
				remote += float64(1 - shard)
			}
		}
		last, named = next.State, page.Users
	}
	if got := remote / searches; math.Abs(got-0.25) > 5*math.Sqrt(.25*.75/searches) {
		t.Errorf("%.3f of %.0f searches go to another shard, want 0.25", got, searches)
	}
	if first < 300 || first > 480 || registered < 100 {
		t.Errorf("%d sessions begin and %d users register, want about 390 and 220", first, registered)
	}
}

// TestSearch: with prices, what is sold out is not shown, and all auctions are read; without, the
// list alone is.
func TestSearch(t *testing.T) {
	m := small(t)
	list := read[rubis.List[rubis.ItemID]](t, m, "category/0/2")
	sold := list.Latest[1]
	m.rows[fmt.Sprintf("a/0/%d", sold.N)] = []byte(`{"over":true}`)
	for _, prices := range []bool{false, true} {
		s, r := rubis.Client{Tables: m.tables, Prices: prices}.Session(), rand.New(rand.NewPCG(9, 0))
		for {
			tx := m.begin()
			page, err := state(t, s, r, rubis.SearchItemsInCategory, sold).Run(t.Context(), tx)
			if err != nil {
				t.Fatal(err)
			}
			if tx.reads[0] != "category/0/2" {
				continue
			}
			reads, shown := 1, list.Latest
			if prices {
				reads, shown = 6, slices.Delete(slices.Clone(shown), 1, 2)
			}
			if len(tx.reads) != reads || !slices.Equal(page.Items, shown) {
				t.Errorf("prices %v: reads %v and shows %v, want %v", prices, tx.reads, page.Items, shown)
			}
			break
		}
	}
}
