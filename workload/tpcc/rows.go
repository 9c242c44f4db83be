package tpcc

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cents is an amount of money.
type Cents int64

// The rows, by key. Amounts and counts that several transactions add to are in Total and Account.
type (
	// Warehouse is what a warehouse's key holds.
	Warehouse struct {
		Name    string  `json:"name"`
		Address string  `json:"address"`
		Tax     float64 `json:"tax"`
	}

	// District is a district of a warehouse.
	District struct {
		Name      string  `json:"name"`
		Address   string  `json:"address"`
		Tax       float64 `json:"tax"`
		NextOrder int     `json:"next_order"` // orders 1 to NextOrder-1 exist
	}

	// Customer is a customer of a district.
	Customer struct {
		First     string  `json:"first"`
		Last      string  `json:"last"`
		Address   string  `json:"address"`
		BadCredit bool    `json:"bad_credit,omitempty"`
		Discount  float64 `json:"discount"`
		Data      string  `json:"data"`
	}

	// Account is what a customer owes and has paid.
	Account struct {
		Balance    Cents `json:"balance"`
		Paid       Cents `json:"paid"`
		Payments   int   `json:"payments"`
		Deliveries int   `json:"deliveries"`
	}

	// Payment is a row of the history: what a customer has paid, and where.
	Payment struct {
		Warehouse int    `json:"warehouse"`
		District  int    `json:"district"`
		Amount    Cents  `json:"amount"`
		Data      string `json:"data"`
	}

	// Order is an order of a district's customer.
	Order struct {
		Customer int       `json:"customer"`
		Entered  time.Time `json:"entered"`
		Carrier  int       `json:"carrier,omitempty"` // 0: not delivered
		Lines    int       `json:"lines"`
		Local    bool      `json:"local"` // all lines are supplied by the warehouse itself
	}

	// Line is a line of an order.
	Line struct {
		Item      int       `json:"item"`
		Supplier  int       `json:"supplier"` // a warehouse
		Quantity  int       `json:"quantity"`
		Amount    Cents     `json:"amount"`
		Delivered time.Time `json:"delivered,omitzero"`
		Info      string    `json:"info"`
	}

	// Item is what the company sells, the same in each warehouse.
	Item struct {
		Name  string `json:"name"`
		Price Cents  `json:"price"`
		Data  string `json:"data"`
	}

	// Stock is what a warehouse has of an item.
	Stock struct {
		Quantity int    `json:"quantity"`
		Sold     int    `json:"sold"`
		Orders   int    `json:"orders"`
		Remote   int    `json:"remote"` // of the orders, those of other warehouses
		Info     string `json:"info"`   // 24 characters for each district
		Data     string `json:"data"`
	}
)

// Total is the value of a key that a sum is in: what a warehouse or a district has taken this year.
type Total struct {
	Taken Cents `json:"taken"`
}

// Next is the value of the key that says which order a district delivers next.
type Next struct {
	Order int `json:"order"`
}

// Latest is the value of the key that says which order is a customer's latest. 0: none.
type Latest struct {
	Order int `json:"order"`
}

// Named is the value of the key of a last name: the customers that have it, by first name.
type Named struct {
	Customers []int `json:"customers"`
}

// DistrictID, CustomerID and OrderID say which one is meant. All numbers begin at 1.
type (
	DistrictID struct{ Warehouse, District int }
	CustomerID struct {
		DistrictID
		Customer int
	}
	OrderID struct {
		DistrictID
		Order int
	}
)

// Keys. A key's first number is the warehouse that it belongs to; see Home.

func warehouseKey(w int) string                 { return fmt.Sprintf("w/%d", w) }
func warehouseTotalKey(w int) string            { return fmt.Sprintf("w-taken/%d", w) }
func districtKey(d DistrictID) string           { return "d/" + d.path() }
func districtTotalKey(d DistrictID) string      { return "d-taken/" + d.path() }
func deliverKey(d DistrictID) string            { return "d-next/" + d.path() }
func namedKey(d DistrictID, last string) string { return "c-named/" + d.path() + "/" + last }
func customerKey(c CustomerID) string           { return "c/" + c.path() }
func accountKey(c CustomerID) string            { return "c-account/" + c.path() }
func latestKey(c CustomerID) string             { return "c-latest/" + c.path() }
func paymentKey(c CustomerID, n int) string     { return fmt.Sprintf("h/%s/%d", c.path(), n) }
func orderKey(o OrderID) string                 { return "o/" + o.path() }
func lineKey(o OrderID, n int) string           { return fmt.Sprintf("l/%s/%d", o.path(), n) }
func itemKey(w, item int) string                { return fmt.Sprintf("i/%d/%d", w, item) }
func stockKey(w, item int) string               { return fmt.Sprintf("s/%d/%d", w, item) }

func (d DistrictID) path() string { return fmt.Sprintf("%d/%d", d.Warehouse, d.District) }
func (c CustomerID) path() string { return fmt.Sprintf("%s/%d", c.DistrictID.path(), c.Customer) }
func (o OrderID) path() string    { return fmt.Sprintf("%s/%d", o.DistrictID.path(), o.Order) }

// Home returns the warehouse that a key belongs to, so that a placement can keep a warehouse's keys
// together. Each warehouse has a copy of the items, which never change.
func Home(key string) (warehouse int, ok bool) {
	_, rest, ok := strings.Cut(key, "/")
	number, _, _ := strings.Cut(rest, "/")
	warehouse, err := strconv.Atoi(number)
	if !ok || err != nil || warehouse < 1 {
		return 0, false
	}
	return warehouse, true
}
