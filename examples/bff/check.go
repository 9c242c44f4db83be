package main

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	bffv1 "github.com/foresay/foresay/api/foresay/bff/v1"
)

// verdict says how answers compare with the plain sequential computation.
type verdict struct {
	// same is how many equal what the computation gives on the data as it was when
	// the request began.
	same int
	// meanwhile is how many do not, but equal what it gives if data changes while
	// it runs: each value in them was that of its service at some moment between
	// the request's beginning and its end, and what was asked for with a value was
	// asked for with the one that is in the answer.
	meanwhile int
	views     int // each with the price in the answer, exactly one for each page with a price
}

// check compares all answers with the plain computation, and the views that were
// recorded with the answers. Its error names the first that is wrong.
func (d *data) check(answers []answer) (v verdict, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range answers {
		if a.err != nil {
			return v, a.err
		}
		possible := d.pages(a)
		switch at := indexOf(possible, a.page); {
		case at == 0:
			v.same++
		case at > 0:
			v.meanwhile++
		default:
			return v, fmt.Errorf("request %s: the page %s is not what plain execution gives: %s", a.request.id, a.page, possible)
		}
		if err := d.checkView(a); err != nil {
			return v, err
		}
		v.views += len(d.views[a.request.id])
	}
	if n := len(d.views); n != v.views {
		return v, fmt.Errorf("views are recorded for %d requests, and pages with a price were made for %d", n, v.views)
	}
	return v, nil
}

// pages returns what plain execution may give, first what it gives on the data
// as it was when the request began.
func (d *data) pages(a answer) []Page {
	var all []Page
	for _, u := range d.users[a.request.user].during(a.begun, a.end) {
		for _, may := range d.may[u.plan].during(a.begun, a.end) {
			if !may {
				all = append(all, Page{Name: u.name, SKU: a.request.sku})
				continue
			}
			for _, price := range d.prices[offer{a.request.sku, u.plan}].during(a.begun, a.end) {
				for _, pieces := range d.stock[a.request.sku].during(a.begun, a.end) {
					all = append(all, Page{u.name, a.request.sku, &Offer{price, pieces}})
				}
			}
		}
	}
	return all
}

// checkView checks that a page with a price is recorded once, with that price,
// and one without is not.
func (d *data) checkView(a answer) error {
	views := d.views[a.request.id]
	if a.page.Offer == nil {
		if len(views) > 0 {
			return fmt.Errorf("request %s: a view is recorded, and no price was shown", a.request.id)
		}
		return nil
	}
	if len(views) != 1 {
		return fmt.Errorf("request %s: %d views are recorded, want 1", a.request.id, len(views))
	}
	if v := views[0]; !proto.Equal(v, viewOf(a)) {
		return fmt.Errorf("request %s: the view %v is recorded, and the page was %s", a.request.id, v, a.page)
	}
	return nil
}

// viewOf returns the view that is recorded of a page with a price.
func viewOf(a answer) *bffv1.RecordViewRequest {
	return &bffv1.RecordViewRequest{Request: a.request.id, User: a.request.user, Sku: a.request.sku,
		PriceCents: a.page.Offer.PriceCents}
}

func indexOf(pages []Page, p Page) int {
	for i, q := range pages {
		if q.String() == p.String() {
			return i
		}
	}
	return -1
}

// String returns all that is on the page.
func (p Page) String() string {
	if p.Offer == nil {
		return fmt.Sprintf("{%s: %s}", p.Name, p.SKU)
	}
	return fmt.Sprintf("{%s: %s for %d, %d left}", p.Name, p.SKU, p.Offer.PriceCents, p.Offer.Pieces)
}
