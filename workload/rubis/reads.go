package rubis

import (
	"context"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/internal/rows"
)

// namesOf is the key of the names of categories or regions, all of which the page has.
type namesOf string

func (n namesOf) run(ctx context.Context, tx workload.Tx) (Page, error) {
	_, err := rows.Get[Names](ctx, tx, string(n))
	return Page{}, err
}

// search shows the newest items of a category or a region.
type search struct {
	list   string
	prices bool
}

func (s search) run(ctx context.Context, tx workload.Tx) (p Page, err error) {
	list, err := rows.Get[List[ItemID]](ctx, tx, s.list)
	if err != nil || !s.prices {
		return Page{Items: list.Latest}, err
	}
	err = p.offer(ctx, tx, list.Latest)
	return p, err
}

// offer adds those items to a page whose auctions are not over.
func (p *Page) offer(ctx context.Context, tx workload.Tx, items []ItemID) error {
	for _, i := range items {
		a, err := rows.Get[Auction](ctx, tx, auctionKey(i))
		if err != nil {
			return err
		}
		if !a.Over {
			p.Items = append(p.Items, i)
		}
	}
	return nil
}

type viewItem struct{ item ItemID }

func (v viewItem) run(ctx context.Context, tx workload.Tx) (Page, error) {
	item, err := rows.Get[Item](ctx, tx, itemKey(v.item))
	if err != nil {
		return Page{}, err
	}
	if _, err := rows.Get[Auction](ctx, tx, auctionKey(v.item)); err != nil {
		return Page{}, err
	}
	_, err = rows.Get[User](ctx, tx, userKey(item.Seller))
	return Page{Users: []UserID{item.Seller}}, err
}

// viewUserInfo shows a user with the newest comments on him.
type viewUserInfo struct {
	user   UserID
	listed int
}

func (v viewUserInfo) run(ctx context.Context, tx workload.Tx) (p Page, err error) {
	if _, err := rows.Get[User](ctx, tx, userKey(v.user)); err != nil {
		return Page{}, err
	}
	rating, err := rows.Get[Rating](ctx, tx, ratingKey(v.user))
	if err != nil {
		return Page{}, err
	}
	for n := rating.Comments; n > max(rating.Comments-v.listed, 0); n-- {
		c, err := rows.Get[Comment](ctx, tx, commentKey(v.user, n))
		if err != nil {
			return Page{}, err
		}
		p.Users = append(p.Users, c.From)
	}
	return p, nil
}

type viewBidHistory struct{ item ItemID }

func (v viewBidHistory) run(ctx context.Context, tx workload.Tx) (p Page, err error) {
	if _, err := rows.Get[Item](ctx, tx, itemKey(v.item)); err != nil {
		return Page{}, err
	}
	auction, err := rows.Get[Auction](ctx, tx, auctionKey(v.item))
	if err != nil {
		return Page{}, err
	}
	for _, b := range auction.Latest {
		bid, err := rows.Get[Bid](ctx, tx, bidKey(b))
		if err != nil {
			return Page{}, err
		}
		p.Users = append(p.Users, bid.User)
	}
	return p, nil
}

// form shows an item to a user who is about to bid for it or to buy it, once he has logged in.
type form struct {
	user UserID
	item ItemID
}

func (f form) run(ctx context.Context, tx workload.Tx) (Page, error) {
	if _, err := rows.Get[User](ctx, tx, userKey(f.user)); err != nil {
		return Page{}, err
	}
	return viewItem{f.item}.run(ctx, tx)
}

type putComment struct {
	user UserID
	item ItemID
	on   UserID
}

func (c putComment) run(ctx context.Context, tx workload.Tx) (Page, error) {
	for _, u := range []UserID{c.user, c.on} {
		if _, err := rows.Get[User](ctx, tx, userKey(u)); err != nil {
			return Page{}, err
		}
	}
	_, err := rows.Get[Item](ctx, tx, itemKey(c.item))
	return Page{}, err
}

type selectCategory struct{ user UserID }

func (c selectCategory) run(ctx context.Context, tx workload.Tx) (Page, error) {
	if _, err := rows.Get[User](ctx, tx, userKey(c.user)); err != nil {
		return Page{}, err
	}
	return namesOf(categoriesKey(c.user.Shard)).run(ctx, tx)
}

// aboutMe shows a user what he has bid for, bought and sold of late, and what others say of him.
type aboutMe struct {
	user   UserID
	listed int
}

func (m aboutMe) run(ctx context.Context, tx workload.Tx) (Page, error) {
	p, err := viewUserInfo(m).run(ctx, tx)
	if err != nil {
		return Page{}, err
	}
	bids, err := rows.Get[List[BidID]](ctx, tx, bidsOfKey(m.user))
	if err != nil {
		return Page{}, err
	}
	bought, err := rows.Get[List[PurchaseID]](ctx, tx, purchasesOfKey(m.user))
	if err != nil {
		return Page{}, err
	}
	sells, err := rows.Get[List[ItemID]](ctx, tx, itemsOfKey(m.user))
	if err != nil {
		return Page{}, err
	}
	items := sells.Latest
	for _, b := range bids.Latest {
		bid, err := rows.Get[Bid](ctx, tx, bidKey(b))
		if err != nil {
			return Page{}, err
		}
		items = append(items, bid.Item)
	}
	for _, b := range bought.Latest {
		purchase, err := rows.Get[Purchase](ctx, tx, purchaseKey(b))
		if err != nil {
			return Page{}, err
		}
		items = append(items, purchase.Item)
	}
	return p, p.offer(ctx, tx, items)
}
