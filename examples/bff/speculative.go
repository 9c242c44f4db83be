package main

import (
	"context"

	"github.com/foresay/foresay"
	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
)

// speculativePage makes a page in a task.
func (c *clients) speculativePage(ctx context.Context, request, user, sku string) (*Page, error) {
	return foresay.Do(ctx, func(ctx context.Context) (*Page, error) {
		return c.pageInTask(ctx, request, user, sku)
	})
}

// pageInTask is page, with a group of Foresay's in place of errgroup's: it tells
// which goroutine made which call.
func (c *clients) pageInTask(ctx context.Context, request, user, sku string) (*Page, error) {
	u, err := c.users.GetUser(ctx, &bffv1.GetUserRequest{User: user})
	if err != nil {
		return nil, err
	}
	may, err := c.permissions.Check(ctx, &bffv1.CheckRequest{Plan: u.GetPlan(), Action: seePrices})
	if err != nil {
		return nil, err
	}
	if !may.GetAllowed() {
		return &Page{Name: u.GetName(), SKU: sku}, nil
	}
	var quote *bffv1.QuoteResponse
	var level *bffv1.GetLevelResponse
	g := foresay.NewGroup(ctx)
	g.Go(func(ctx context.Context) (err error) {
		quote, err = c.pricing.Quote(ctx, &bffv1.QuoteRequest{Sku: sku, Plan: u.GetPlan()})
		return err
	})
	g.Go(func(ctx context.Context) (err error) {
		level, err = c.stock.GetLevel(ctx, &bffv1.GetLevelRequest{Sku: sku})
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	_, err = c.users.RecordView(ctx, &bffv1.RecordViewRequest{Request: request, User: user, Sku: sku,
		PriceCents: quote.GetPriceCents()})
	if err != nil {
		return nil, err
	}
	return &Page{u.GetName(), sku, &Offer{quote.GetPriceCents(), level.GetPieces()}}, nil
}
