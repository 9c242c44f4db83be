package rubis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/internal/rows"
)

// Client is where users are, whose sessions follow each other.
type Client struct {
	Tables *Tables
	Shard  int // of the users, of what they sell, and of the numbers of what they add
	// Others are the shards that users browse, too: so many of a hundred searches, and the views of
	// users and items that follow from them, go to one of these. The paper does not say how many do.
	Others        []int
	RemotePercent int
	// Prices has searches read the auctions of all that they show, as in RUBiS, and show what is not
	// over. Else they read the list alone, as in the experiments with STR.
	Prices bool
}

// Check returns an error that names the field that is wrong.
func (c Client) Check() error {
	switch {
	case c.Tables == nil:
		return fmt.Errorf("rubis: Client.Tables is missing")
	case c.Shard < 0 || c.Shard >= c.Tables.Shards:
		return fmt.Errorf("rubis: Client.Shard is %d (want 0 to %d)", c.Shard, c.Tables.Shards-1)
	case c.RemotePercent < 0 || c.RemotePercent > 100:
		return fmt.Errorf("rubis: Client.RemotePercent is %d (want 0 to 100)", c.RemotePercent)
	case c.RemotePercent > 0 && len(c.Others) == 0:
		return fmt.Errorf("rubis: Client.Others is empty, and Client.RemotePercent is %d (want 0)", c.RemotePercent)
	}
	for _, s := range c.Others {
		if s < 0 || s >= c.Tables.Shards || s == c.Shard {
			return fmt.Errorf("rubis: Client.Others has %d (want 0 to %d, and not Shard, %d)", s, c.Tables.Shards-1, c.Shard)
		}
	}
	return nil
}

// A Txn is what a user does on a page.
type Txn struct {
	State    State
	First    bool // a session begins with it
	ReadOnly bool
	// Static says that the page needs no transaction: Run does nothing.
	Static bool
	// Wait is how long the user looks at the page before the next one.
	Wait time.Duration
	// Run makes the transaction. It may be called again if it did not commit.
	Run func(ctx context.Context, tx workload.Tx) (Page, error)
}

// Page is what a transaction has found, for what the user does next.
type Page struct {
	Items []ItemID // to choose from
	Users []UserID // who is named
	User  UserID   // who the user is from now on; without N: as before
	// Refused says that an update was not made, since the auction is over. Such a transaction writes
	// nothing, and may commit.
	Refused bool
}

// Session is a user's way through the site. It is not safe for concurrent use.
type Session struct {
	client Client
	walk   walk
	began  bool
	user   UserID
	shard  int      // that is browsed
	items  []ItemID // that the last list has shown
	item   ItemID   // that is looked at
	other  UserID   // who is looked at
	// What the last search was for.
	category, region int
}

// Session returns the first of a client's sessions, which go over into each other. Check has to
// return nil.
func (c Client) Session() *Session { return &Session{client: c} }

// Next returns what the user does next, having seen what the last transaction that committed has
// found: nothing if there was none, or if it is not known.
func (s *Session) Next(r *rand.Rand, now time.Time, seen Page) Txn {
	t := s.client.Tables
	from, move := s.walk.at, end
	if s.began {
		move = s.walk.step(t.moves, r)
	}
	s.began = true
	if move == end {
		s.walk = walk{at: Home}
		s.user = UserID{s.client.Shard, 1 + r.IntN(t.Users)}
		s.items = nil
		s.browse(r)
	} else {
		s.saw(seen)
		// Who goes back sees the last page of that kind again.
		if move != back {
			s.choose(r, from, seen)
		}
	}
	at := s.walk.at
	return Txn{State: at, First: move == end, ReadOnly: !at.Updates(), Static: at.Static(), Wait: at.Wait(),
		Run: s.program(r, now)}
}

func (s *Session) saw(p Page) {
	if len(p.Items) > 0 {
		s.items = p.Items
	}
	if p.User.N != 0 {
		s.user = p.User
	}
}

// browse draws what the user searches next, and what there is if the search finds nothing.
func (s *Session) browse(r *rand.Rand) {
	t := s.client.Tables
	s.shard = s.client.Shard
	if r.IntN(100) < s.client.RemotePercent {
		s.shard = s.client.Others[r.IntN(len(s.client.Others))]
	}
	s.category, s.region = 1+r.IntN(t.Categories), 1+r.IntN(t.Regions)
	s.item = ItemID{s.shard, t.OldItems + 1 + r.IntN(t.OpenItems)}
	s.other = UserID{s.shard, 1 + r.IntN(t.Users)}
}

// choose draws what the user clicks on in the page that leads to the present one.
func (s *Session) choose(r *rand.Rand, from State, seen Page) {
	switch s.walk.at {
	case SearchItemsInCategory, SearchItemsInRegion:
		s.items = nil
		s.browse(r)
	case ViewItem, PutBidAuth:
		list := from == SearchItemsInCategory || from == SearchItemsInRegion || from == AboutMe
		if list && len(s.items) > 0 {
			s.item = s.items[r.IntN(len(s.items))]
		}
	case ViewUserInfo, PutComment:
		if len(seen.Users) > 0 {
			s.other = seen.Users[r.IntN(len(seen.Users))]
		}
	}
}

// program returns the transaction of the state that the user is in. All chance is drawn here, so
// that it can run again.
func (s *Session) program(r *rand.Rand, now time.Time) func(context.Context, workload.Tx) (Page, error) {
	t := s.client.Tables
	switch s.walk.at {
	case BrowseCategories, BrowseCategoriesInRegion:
		return namesOf(categoriesKey(s.client.Shard)).run
	case BrowseRegions:
		return namesOf(regionsKey(s.client.Shard)).run
	case SearchItemsInCategory:
		return search{inCategoryKey(s.shard, s.category), s.client.Prices}.run
	case SearchItemsInRegion:
		return search{inRegionKey(s.shard, s.region), s.client.Prices}.run
	case ViewItem:
		return viewItem{s.item}.run
	case ViewUserInfo:
		return viewUserInfo{s.other, t.Listed}.run
	case ViewBidHistory:
		return viewBidHistory{s.item}.run
	case BuyNow, PutBid:
		return form{s.user, s.item}.run
	case PutComment:
		return putComment{s.user, s.item, s.other}.run
	case SelectCategoryToSellItem:
		return selectCategory{s.user}.run
	case AboutMe:
		return aboutMe{s.user, t.Listed}.run
	case RegisterUser:
		return registerUser{s.client.Shard, User{Region: 1 + r.IntN(t.Regions), Since: now}}.run
	case StoreBuyNow:
		return storeBuyNow{s.user, s.item, r.IntN(1 << 20), now, t.Listed}.run
	case StoreBid:
		return storeBid{s.user, s.item, Cents(100 * (1 + r.IntN(10))), now, t.Listed}.run
	case StoreComment:
		c := Comment{From: s.user, Item: s.item, Rating: rating(r.IntN(5)), Text: rows.Text(r, 1, t.CommentBytes), At: now}
		return storeComment{s.other, c}.run
	case RegisterItem:
		item := terms(r)
		item.Seller, item.Category, item.Since = s.user, 1+r.IntN(t.Categories), now
		t.describe(r, &item)
		return registerItem{item, t.Listed}.run
	}
	return func(context.Context, workload.Tx) (Page, error) { return Page{}, nil }
}
