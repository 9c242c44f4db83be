package rubis

import (
	"context"
	"slices"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/internal/rows"
)

// Check reads all that a store holds, and returns an error if it cannot have come about by
// transactions that ran one after the other:
//
//  1. of each item, what was bought and what is left add up to what was offered, and an auction
//     with nothing left is over;
//  2. an auction's number of bids and its maximum bid are those of its bids, and its latest bids
//     are among them;
//  3. a user's rating is the sum of the comments on him, all of which are there;
//  4. numbers are dense: what a shard has given out is there, and nothing beyond;
//  5. the lists of categories, regions and users count what they are of, and have the newest.
//
// Nobody may write meanwhile, unless all is read as of one moment.
func (t *Tables) Check(ctx context.Context, tx workload.Tx) error {
	b := books{tables: t, tx: tx, bids: map[ItemID][]BidID{}, most: map[ItemID]Cents{}, bought: map[ItemID]int{},
		bidsOf: map[UserID][]BidID{}, purchasesOf: map[UserID][]PurchaseID{}, itemsOf: map[UserID][]ItemID{}}
	looks := []func(context.Context, int) error{b.lookAtBids, b.lookAtPurchases, b.lookAtItems, b.lookAtUsers}
	for _, look := range looks {
		for shard := range t.Shards {
			if err := look(ctx, shard); err != nil {
				return err
			}
		}
	}
	return nil
}

// books are what bids, purchases and items say, to compare with what auctions and lists say.
type books struct {
	tables      *Tables
	tx          workload.Tx
	bids        map[ItemID][]BidID
	most        map[ItemID]Cents // that was bid
	bought      map[ItemID]int
	bidsOf      map[UserID][]BidID // that were not there at the beginning
	purchasesOf map[UserID][]PurchaseID
	itemsOf     map[UserID][]ItemID // that were not there at the beginning
}

// last returns which number was given last, after making sure that there is nothing beyond.
func (b *books) last(ctx context.Context, key string, row func(n int) string) (int, error) {
	last, err := rows.Get[Last](ctx, b.tx, key)
	if err != nil {
		return 0, err
	}
	return last.N, rows.Absent(ctx, b.tx, row(last.N+1))
}

func (b *books) lookAtBids(ctx context.Context, shard int) error {
	last, err := b.last(ctx, lastBidKey(shard), func(n int) string { return bidKey(BidID{shard, n}) })
	if err != nil {
		return err
	}
	for n := range last {
		id := BidID{shard, n + 1}
		bid, err := rows.Get[Bid](ctx, b.tx, bidKey(id))
		if err != nil {
			return err
		}
		b.bids[bid.Item] = append(b.bids[bid.Item], id)
		b.most[bid.Item] = max(b.most[bid.Item], bid.Amount)
		if n >= b.tables.bidsBefore(b.tables.items()+1) {
			b.bidsOf[bid.User] = append(b.bidsOf[bid.User], id)
		}
	}
	return nil
}

func (b *books) lookAtPurchases(ctx context.Context, shard int) error {
	last, err := b.last(ctx, lastPurchaseKey(shard), func(n int) string { return purchaseKey(PurchaseID{shard, n}) })
	if err != nil {
		return err
	}
	for n := range last {
		id := PurchaseID{shard, n + 1}
		p, err := rows.Get[Purchase](ctx, b.tx, purchaseKey(id))
		if err != nil {
			return err
		}
		b.bought[p.Item] += p.Quantity
		b.purchasesOf[p.User] = append(b.purchasesOf[p.User], id)
	}
	return nil
}

func (b *books) lookAtItems(ctx context.Context, shard int) error {
	last, err := b.last(ctx, lastItemKey(shard), func(n int) string { return itemKey(ItemID{shard, n}) })
	if err != nil {
		return err
	}
	inCategory, inRegion := map[int][]ItemID{}, map[int][]ItemID{}
	for n := range last {
		id := ItemID{shard, n + 1}
		item, err := rows.Get[Item](ctx, b.tx, itemKey(id))
		if err != nil {
			return err
		}
		if err := b.auction(ctx, id, item); err != nil {
			return err
		}
		if n >= b.tables.OldItems {
			inCategory[item.Category] = append(inCategory[item.Category], id)
			inRegion[item.Region] = append(inRegion[item.Region], id)
		}
		if n >= b.tables.items() {
			b.itemsOf[item.Seller] = append(b.itemsOf[item.Seller], id)
		}
	}
	for c := range b.tables.Categories {
		if err := checkList(ctx, b, inCategoryKey(shard, c+1), inCategory[c+1]); err != nil {
			return err
		}
	}
	for r := range b.tables.Regions {
		if err := checkList(ctx, b, inRegionKey(shard, r+1), inRegion[r+1]); err != nil {
			return err
		}
	}
	return nil
}

func (b *books) auction(ctx context.Context, id ItemID, item Item) error {
	key := auctionKey(id)
	a, err := rows.Get[Auction](ctx, b.tx, key)
	if err != nil {
		return err
	}
	bids := b.bids[id]
	switch over := a.Left == 0 || id.N <= b.tables.OldItems; {
	case a.Left < 0 || a.Left+b.bought[id] != item.Quantity:
		return rows.Wrong(key, "%d are left and %d bought, of %d", a.Left, b.bought[id], item.Quantity)
	case a.Over != over:
		return rows.Wrong(key, "over: %v, want %v: %d are left", a.Over, over, a.Left)
	case a.Bids != len(bids):
		return rows.Wrong(key, "%d bids, want %d", a.Bids, len(bids))
	case a.MaxBid != b.most[id]:
		return rows.Wrong(key, "the maximum bid is %d, want %d", a.MaxBid, b.most[id])
	case len(a.Latest) != min(len(bids), b.tables.Listed):
		return rows.Wrong(key, "%d bids are listed, of %d", len(a.Latest), len(bids))
	}
	for _, bid := range a.Latest {
		if !slices.Contains(bids, bid) {
			return rows.Wrong(key, "bid %v is listed, and is for another item", bid)
		}
	}
	return nil
}

// checkList compares a list with what it is of, the oldest first: numbers of one shard rise.
func checkList[T comparable](ctx context.Context, b *books, key string, all []T) error {
	list, err := rows.Get[List[T]](ctx, b.tx, key)
	if err != nil {
		return err
	}
	newest := slices.Clone(all[max(len(all)-b.tables.Listed, 0):])
	slices.Reverse(newest)
	if list.Count != len(all) || !slices.Equal(list.Latest, newest) {
		return rows.Wrong(key, "counts %d and lists %v, want %d and %v", list.Count, list.Latest, len(all), newest)
	}
	return nil
}

func (b *books) lookAtUsers(ctx context.Context, shard int) error {
	last, err := b.last(ctx, lastUserKey(shard), func(n int) string { return userKey(UserID{shard, n}) })
	if err != nil {
		return err
	}
	for n := range last {
		u := UserID{shard, n + 1}
		if _, err := rows.Get[User](ctx, b.tx, userKey(u)); err != nil {
			return err
		}
		if err := b.rating(ctx, u); err != nil {
			return err
		}
		if err := checkList(ctx, b, bidsOfKey(u), b.bidsOf[u]); err != nil {
			return err
		}
		if err := checkList(ctx, b, purchasesOfKey(u), b.purchasesOf[u]); err != nil {
			return err
		}
		if err := checkList(ctx, b, itemsOfKey(u), b.itemsOf[u]); err != nil {
			return err
		}
	}
	return nil
}

func (b *books) rating(ctx context.Context, u UserID) error {
	rating, err := rows.Get[Rating](ctx, b.tx, ratingKey(u))
	if err != nil {
		return err
	}
	sum := 0
	for n := range rating.Comments {
		c, err := rows.Get[Comment](ctx, b.tx, commentKey(u, n+1))
		if err != nil {
			return err
		}
		sum += c.Rating
	}
	if sum != rating.Sum {
		return rows.Wrong(ratingKey(u), "the rating is %d, want %d, the sum of %d comments", rating.Sum, sum, rating.Comments)
	}
	return rows.Absent(ctx, b.tx, commentKey(u, rating.Comments+1))
}
