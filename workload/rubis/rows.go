package rubis

import (
	"fmt"
	"strings"
	"time"

	"github.com/foresay/foresay/workload/internal/rows"
)

// Cents is an amount of money.
type Cents int64

// id is the number of something in its shard, from 1 on. Numbers are dense.
type id struct {
	Shard int `json:"shard"`
	N     int `json:"n"`
}

// UserID, ItemID, BidID and PurchaseID say which one is meant. Shards count from 0.
type (
	UserID     id
	ItemID     id
	BidID      id
	PurchaseID id
)

// The rows, by key.
type (
	// User is who somebody is; it does not change.
	User struct {
		Nick   string    `json:"nick"`
		Region int       `json:"region"`
		Since  time.Time `json:"since"`
	}

	// Rating is what others have said of a user.
	Rating struct {
		Sum      int `json:"sum"`
		Comments int `json:"comments"` // comments 1 to Comments exist
	}

	// Comment is what one user says of another.
	Comment struct {
		From   UserID    `json:"from"`
		Item   ItemID    `json:"item"`
		Rating int       `json:"rating"`
		Text   string    `json:"text"`
		At     time.Time `json:"at"`
	}

	// Item is what is offered; it does not change.
	Item struct {
		Name        string    `json:"name"`
		Description string    `json:"description"`
		Seller      UserID    `json:"seller"`
		Category    int       `json:"category"`
		Region      int       `json:"region"`
		Initial     Cents     `json:"initial"`           // price
		Reserve     Cents     `json:"reserve,omitempty"` // price; 0: none
		BuyNow      Cents     `json:"buy_now,omitempty"` // price; 0: none is told
		Quantity    int       `json:"quantity"`
		Since       time.Time `json:"since"`
		Days        int       `json:"days"`
	}

	// Auction is how far an item's auction has got.
	Auction struct {
		Left   int     `json:"left"` // of the item's quantity
		Over   bool    `json:"over,omitempty"`
		Bids   int     `json:"bids"`
		MaxBid Cents   `json:"max_bid"`
		Latest []BidID `json:"latest"` // the newest first
	}

	// Bid is a bid for an item.
	Bid struct {
		Item   ItemID    `json:"item"`
		User   UserID    `json:"user"`
		Amount Cents     `json:"amount"`
		At     time.Time `json:"at"`
	}

	// Purchase is what somebody has bought without waiting for the end of the auction.
	Purchase struct {
		Item     ItemID    `json:"item"`
		User     UserID    `json:"user"`
		Quantity int       `json:"quantity"`
		At       time.Time `json:"at"`
	}
)

// Last is the value of a shard's key that says which number was given last: a local index.
type Last struct {
	N int `json:"n"`
}

// Names is the value of the keys that have all categories and all regions. They never change.
type Names struct {
	Names []string `json:"names"`
}

// List is the value of a key for what is added to, of which the newest are known.
type List[T any] struct {
	Count  int `json:"count"`  // of all
	Latest []T `json:"latest"` // the newest first
}

// added returns a list with one more at its front.
func added[T any](latest []T, one T, most int) []T {
	return append([]T{one}, latest[:min(len(latest), most-1)]...)
}

// Keys. A key's first number is the shard that it belongs to; see Shard.

func lastUserKey(shard int) string      { return fmt.Sprintf("last-user/%d", shard) }
func lastItemKey(shard int) string      { return fmt.Sprintf("last-item/%d", shard) }
func lastBidKey(shard int) string       { return fmt.Sprintf("last-bid/%d", shard) }
func lastPurchaseKey(shard int) string  { return fmt.Sprintf("last-purchase/%d", shard) }
func categoriesKey(shard int) string    { return fmt.Sprintf("categories/%d", shard) }
func regionsKey(shard int) string       { return fmt.Sprintf("regions/%d", shard) }
func inCategoryKey(shard, c int) string { return fmt.Sprintf("category/%d/%d", shard, c) }
func inRegionKey(shard, n int) string   { return fmt.Sprintf("region/%d/%d", shard, n) }
func userKey(u UserID) string           { return id(u).key("u") }
func ratingKey(u UserID) string         { return id(u).key("u-rating") }
func bidsOfKey(u UserID) string         { return id(u).key("u-bids") }
func purchasesOfKey(u UserID) string    { return id(u).key("u-bought") }
func itemsOfKey(u UserID) string        { return id(u).key("u-sells") }
func commentKey(u UserID, n int) string { return fmt.Sprintf("m/%d/%d/%d", u.Shard, u.N, n) }
func itemKey(i ItemID) string           { return id(i).key("i") }
func auctionKey(i ItemID) string        { return id(i).key("a") }
func bidKey(b BidID) string             { return id(b).key("b") }
func purchaseKey(p PurchaseID) string   { return id(p).key("p") }

func (i id) key(kind string) string { return fmt.Sprintf("%s/%d/%d", kind, i.Shard, i.N) }

// Shard returns the shard that a key belongs to, so that a placement can put each on a server of
// its own. Each shard has a copy of the names of categories and regions.
func Shard(key string) (shard int, ok bool) {
	_, rest, _ := strings.Cut(key, "/")
	number, _, _ := strings.Cut(rest, "/")
	if shard, ok = rows.Number(number); !ok {
		return 0, false
	}
	return shard, true
}
