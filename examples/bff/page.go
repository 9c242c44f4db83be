package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
)

// Page is what a customer gets to see.
type Page struct {
	Name  string `json:"name"`
	SKU   string `json:"sku"`
	Offer *Offer `json:"offer,omitempty"` // nil: this customer may not see prices
}

// Offer is at what price and how many there are.
type Offer struct {
	PriceCents uint32 `json:"price_cents"`
	Pieces     uint32 `json:"pieces"`
}

// clients are the four services as the front sees them.
type clients struct {
	users       bffv1.UsersClient
	permissions bffv1.PermissionsClient
	pricing     bffv1.PricingClient
	stock       bffv1.StockClient
}

func newClients(conns []grpc.ClientConnInterface) *clients {
	return &clients{
		bffv1.NewUsersClient(conns[0]), bffv1.NewPermissionsClient(conns[1]),
		bffv1.NewPricingClient(conns[2]), bffv1.NewStockClient(conns[3]),
	}
}

// page makes a page, as one writes it without Foresay.
func (c *clients) page(ctx context.Context, request, user, sku string) (*Page, error) {
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
	g, both := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		quote, err = c.pricing.Quote(both, &bffv1.QuoteRequest{Sku: sku, Plan: u.GetPlan()})
		return err
	})
	g.Go(func() (err error) {
		level, err = c.stock.GetLevel(both, &bffv1.GetLevelRequest{Sku: sku})
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

// A pageFunc makes a page.
type pageFunc func(ctx context.Context, request, user, sku string) (*Page, error)

// newMux serves GET /page?user=..&sku=.. with pages.
func newMux(page pageFunc) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page", func(w http.ResponseWriter, r *http.Request) {
		request, query := r.Header.Get("X-Request-Id"), r.URL.Query()
		ctx := metadata.AppendToOutgoingContext(r.Context(), requestIDKey, request)
		p, err := page(ctx, request, query.Get("user"), query.Get("sku"))
		if err != nil {
			code := http.StatusBadGateway
			if status.Code(err) == codes.NotFound {
				code = http.StatusNotFound
			}
			http.Error(w, err.Error(), code)
			return
		}
		body, err := json.Marshal(p)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, "%s\n", body)
	})
	return mux
}
