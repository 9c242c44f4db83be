package rubis

import (
	"context"
	"errors"
	"time"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/internal/rows"
)

// number gives out the next number of a shard.
func number(ctx context.Context, tx workload.Tx, key string) (int, error) {
	last, err := rows.Change(ctx, tx, key, func(l *Last) { l.N++ })
	return last.N, err
}

// prepend adds to a list.
func prepend[T any](ctx context.Context, tx workload.Tx, key string, one T, most int) error {
	_, err := rows.Change(ctx, tx, key, func(l *List[T]) {
		l.Count++
		l.Latest = added(l.Latest, one, most)
	})
	return err
}

type registerUser struct {
	shard int
	user  User
}

func (u registerUser) run(ctx context.Context, tx workload.Tx) (Page, error) {
	n, err := number(ctx, tx, lastUserKey(u.shard))
	if err != nil {
		return Page{}, err
	}
	who := UserID{u.shard, n}
	u.user.Nick = nick(who)
	return Page{User: who}, errors.Join(rows.Put(tx, userKey(who), u.user), rows.Put(tx, ratingKey(who), Rating{}),
		rows.Put(tx, bidsOfKey(who), List[BidID]{Latest: []BidID{}}),
		rows.Put(tx, purchasesOfKey(who), List[PurchaseID]{Latest: []PurchaseID{}}),
		rows.Put(tx, itemsOfKey(who), List[ItemID]{Latest: []ItemID{}}))
}

// registerItem offers an item. All who sell in a shard meet at its number, and those of a category
// or a region at its list.
type registerItem struct {
	item   Item
	listed int
}

func (i registerItem) run(ctx context.Context, tx workload.Tx) (Page, error) {
	seller, err := rows.Get[User](ctx, tx, userKey(i.item.Seller))
	if err != nil {
		return Page{}, err
	}
	shard := i.item.Seller.Shard
	n, err := number(ctx, tx, lastItemKey(shard))
	if err != nil {
		return Page{}, err
	}
	item, row := ItemID{shard, n}, i.item
	row.Region = seller.Region
	lists := []string{inCategoryKey(shard, row.Category), inRegionKey(shard, row.Region), itemsOfKey(row.Seller)}
	for _, key := range lists {
		if err := prepend(ctx, tx, key, item, i.listed); err != nil {
			return Page{}, err
		}
	}
	return Page{}, errors.Join(rows.Put(tx, itemKey(item), row),
		rows.Put(tx, auctionKey(item), Auction{Left: row.Quantity, Latest: []BidID{}}))
}

// storeBuyNow buys of what is left of an item. What is sold out is over.
type storeBuyNow struct {
	user   UserID
	item   ItemID
	chance int // of how much: all numbers up to what is left are alike
	at     time.Time
	listed int
}

func (b storeBuyNow) run(ctx context.Context, tx workload.Tx) (Page, error) {
	auction, err := rows.Get[Auction](ctx, tx, auctionKey(b.item))
	if err != nil || auction.Over || auction.Left < 1 {
		return Page{Refused: err == nil}, err
	}
	quantity := 1 + b.chance%auction.Left
	auction.Left -= quantity
	auction.Over = auction.Left == 0
	n, err := number(ctx, tx, lastPurchaseKey(b.user.Shard))
	if err != nil {
		return Page{}, err
	}
	purchase := PurchaseID{b.user.Shard, n}
	if err := prepend(ctx, tx, purchasesOfKey(b.user), purchase, b.listed); err != nil {
		return Page{}, err
	}
	return Page{}, errors.Join(rows.Put(tx, auctionKey(b.item), auction),
		rows.Put(tx, purchaseKey(purchase), Purchase{Item: b.item, User: b.user, Quantity: quantity, At: b.at}))
}

// storeBid bids more than anybody before.
type storeBid struct {
	user   UserID
	item   ItemID
	raise  Cents
	at     time.Time
	listed int
}

func (b storeBid) run(ctx context.Context, tx workload.Tx) (Page, error) {
	item, err := rows.Get[Item](ctx, tx, itemKey(b.item))
	if err != nil {
		return Page{}, err
	}
	auction, err := rows.Get[Auction](ctx, tx, auctionKey(b.item))
	if err != nil || auction.Over {
		return Page{Refused: err == nil}, err
	}
	n, err := number(ctx, tx, lastBidKey(b.user.Shard))
	if err != nil {
		return Page{}, err
	}
	bid := BidID{b.user.Shard, n}
	auction.MaxBid = max(auction.MaxBid, item.Initial) + b.raise
	auction.Bids++
	auction.Latest = added(auction.Latest, bid, b.listed)
	if err := prepend(ctx, tx, bidsOfKey(b.user), bid, b.listed); err != nil {
		return Page{}, err
	}
	return Page{}, errors.Join(rows.Put(tx, auctionKey(b.item), auction),
		rows.Put(tx, bidKey(bid), Bid{Item: b.item, User: b.user, Amount: auction.MaxBid, At: b.at}))
}

type storeComment struct {
	on      UserID
	comment Comment
}

func (c storeComment) run(ctx context.Context, tx workload.Tx) (Page, error) {
	rating, err := rows.Change(ctx, tx, ratingKey(c.on), func(r *Rating) {
		r.Sum += c.comment.Rating
		r.Comments++
	})
	if err != nil {
		return Page{}, err
	}
	return Page{}, rows.Put(tx, commentKey(c.on, rating.Comments), c.comment)
}
