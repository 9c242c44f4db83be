package demo

import (
	"errors"
	"testing"

	demov1 "github.com/foresay/foresay/api/foresay/demo/v1"
)

// TestPlay plays a small demo over real connections.
func TestPlay(t *testing.T) {
	r, err := Play(t.Context(), Options{Users: 2, Purchases: 2, Stale: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Rows[0].Purchases != 4 || r.Rows[1].Predicted == 0 || r.Rows[1].RatioMean > 0.95 {
		t.Errorf("rows %+v", r.Rows)
	}
	if r.Report == nil || len(r.Report.Calls) < 3 {
		t.Errorf("report %+v", r.Report)
	}
}

// TestDiffer: the demo fails if what was bought, or recorded, differs.
func TestDiffer(t *testing.T) {
	make := func(item string, recorded int) *played {
		p := &played{bought: map[string][]*demov1.BuyRequest{}, numbers: map[string][]uint32{},
			histories: map[string]*demov1.GetPHResponse{}}
		req := &demov1.BuyRequest{User: "u", Purchase: &demov1.Purchase{Item: item}}
		p.bought["u"] = []*demov1.BuyRequest{req}
		p.numbers["u"] = []uint32{1}
		h := &demov1.GetPHResponse{}
		for range recorded {
			h.Purchases = append(h.Purchases, req.Purchase)
		}
		p.histories["u"] = h
		return p
	}
	if err := differ(make("a", 1), make("a", 1)); err != nil {
		t.Error(err)
	}
	for _, other := range []*played{make("b", 1), make("a", 2)} {
		if err := differ(make("a", 1), other); !errors.Is(err, ErrDiffers) {
			t.Errorf("got %v", err)
		}
	}
}
