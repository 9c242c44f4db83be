package tpcc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/internal/rows"
)

// ErrNoItem ends one new order in a hundred, which names an item that there is none of: the
// transaction is not to commit [TPC-C §2.4.1.4].
var ErrNoItem = errors.New("tpcc: there is no such item")

// An order has 5 to 15 lines.
const (
	minLines = 5
	maxLines = 15
)

// NewOrder is an order of a customer: the heaviest of the transactions that are frequent
// [TPC-C §2.4].
type NewOrder struct {
	Customer CustomerID
	Lines    []Wanted // 5 to 15
	Entered  time.Time
}

// Wanted is how much of an item is ordered, from which warehouse.
type Wanted struct{ Item, Supplier, Quantity int }

// Run makes the transaction, and returns what the order costs. The error is ErrNoItem if there is
// no such item.
func (n NewOrder) Run(ctx context.Context, tx workload.Tx) (total Cents, err error) {
	warehouse, err := rows.Get[Warehouse](ctx, tx, warehouseKey(n.Customer.Warehouse))
	if err != nil {
		return 0, err
	}
	customer, err := rows.Get[Customer](ctx, tx, customerKey(n.Customer))
	if err != nil {
		return 0, err
	}
	district, err := rows.Change(ctx, tx, districtKey(n.Customer.DistrictID), func(d *District) { d.NextOrder++ })
	if err != nil {
		return 0, err
	}
	o := OrderID{n.Customer.DistrictID, district.NextOrder - 1}
	local := !slices.ContainsFunc(n.Lines, func(w Wanted) bool { return w.Supplier != n.Customer.Warehouse })
	err = errors.Join(
		rows.Put(tx, orderKey(o), Order{Customer: n.Customer.Customer, Entered: n.Entered, Lines: len(n.Lines),
			Local: local}),
		rows.Put(tx, latestKey(n.Customer), Latest{Order: o.Order}))
	if err != nil {
		return 0, err
	}
	for i, w := range n.Lines {
		amount, err := n.order(ctx, tx, o, i+1, w)
		if err != nil {
			return 0, err
		}
		total += amount
	}
	return Cents(float64(total) * (1 - customer.Discount) * (1 + warehouse.Tax + district.Tax)), nil
}

// order adds a line to an order, and takes the item from the stock.
func (n NewOrder) order(ctx context.Context, tx workload.Tx, o OrderID, line int, w Wanted) (Cents, error) {
	item, ok, err := rows.Find[Item](ctx, tx, itemKey(o.Warehouse, w.Item))
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, ErrNoItem
	}
	stock, err := rows.Change(ctx, tx, stockKey(w.Supplier, w.Item), func(s *Stock) {
		s.Quantity -= w.Quantity
		if s.Quantity < 10 {
			s.Quantity += 91
		}
		s.Sold += w.Quantity
		s.Orders++
		if w.Supplier != o.Warehouse {
			s.Remote++
		}
	})
	if err != nil {
		return 0, err
	}
	const width = 24
	at := min((o.District-1)*width, len(stock.Info))
	amount := item.Price * Cents(w.Quantity)
	return amount, rows.Put(tx, lineKey(o, line), Line{Item: w.Item, Supplier: w.Supplier, Quantity: w.Quantity,
		Amount: amount, Info: stock.Info[at:min(at+width, len(stock.Info))]})
}

// Buyer is a customer, or a last name: of all who have it, the one in the middle by first name.
type Buyer struct {
	CustomerID        // without Customer if it is by name
	Last       string // empty if it is by number
}

// find returns the customer. The key of the name says who has it; so what is read next depends on
// what was read.
func (b Buyer) find(ctx context.Context, tx workload.Tx) (CustomerID, error) {
	if b.Last == "" {
		return b.CustomerID, nil
	}
	key := namedKey(b.DistrictID, b.Last)
	named, err := rows.Get[Named](ctx, tx, key)
	if err != nil {
		return CustomerID{}, err
	}
	if len(named.Customers) == 0 {
		return CustomerID{}, fmt.Errorf("tpcc: %s: nobody has the name", key)
	}
	return CustomerID{b.DistrictID, named.Customers[(len(named.Customers)+1)/2-1]}, nil
}

// Pay is a payment: it adds to what the warehouse and the district have taken, where many meet
// [TPC-C §2.5].
type Pay struct {
	District DistrictID // where it is paid
	Buyer    Buyer
	Amount   Cents
}

// Run makes the transaction, and returns who has paid.
func (p Pay) Run(ctx context.Context, tx workload.Tx) (CustomerID, error) {
	warehouse, err := rows.Get[Warehouse](ctx, tx, warehouseKey(p.District.Warehouse))
	if err != nil {
		return CustomerID{}, err
	}
	district, err := rows.Get[District](ctx, tx, districtKey(p.District))
	if err != nil {
		return CustomerID{}, err
	}
	for _, key := range []string{warehouseTotalKey(p.District.Warehouse), districtTotalKey(p.District)} {
		if _, err := rows.Change(ctx, tx, key, func(t *Total) { t.Taken += p.Amount }); err != nil {
			return CustomerID{}, err
		}
	}
	c, err := p.Buyer.find(ctx, tx)
	if err != nil {
		return CustomerID{}, err
	}
	customer, err := rows.Get[Customer](ctx, tx, customerKey(c))
	if err != nil {
		return CustomerID{}, err
	}
	account, err := rows.Change(ctx, tx, accountKey(c), func(a *Account) {
		a.Balance -= p.Amount
		a.Paid += p.Amount
		a.Payments++
	})
	if err != nil {
		return CustomerID{}, err
	}
	if customer.BadCredit {
		const most = 500
		customer.Data = fmt.Sprintf("%d %d %d %d %d %d|", c.Customer, c.District, c.Warehouse, p.District.District,
			p.District.Warehouse, p.Amount) + customer.Data
		customer.Data = customer.Data[:min(len(customer.Data), most)]
		if err := rows.Put(tx, customerKey(c), customer); err != nil {
			return CustomerID{}, err
		}
	}
	return c, rows.Put(tx, paymentKey(c, account.Payments), Payment{Warehouse: p.District.Warehouse,
		District: p.District.District, Amount: p.Amount, Data: warehouse.Name + "    " + district.Name})
}

// OrderStatus asks for a customer's latest order [TPC-C §2.6].
type OrderStatus struct{ Buyer Buyer }

// Run makes the transaction, and returns the order's lines. There are none if the customer has
// never ordered.
func (s OrderStatus) Run(ctx context.Context, tx workload.Tx) (lines []Line, err error) {
	c, err := s.Buyer.find(ctx, tx)
	if err != nil {
		return nil, err
	}
	if _, err := rows.Get[Customer](ctx, tx, customerKey(c)); err != nil {
		return nil, err
	}
	if _, err := rows.Get[Account](ctx, tx, accountKey(c)); err != nil {
		return nil, err
	}
	latest, err := rows.Get[Latest](ctx, tx, latestKey(c))
	if err != nil || latest.Order == 0 {
		return nil, err
	}
	o := OrderID{c.DistrictID, latest.Order}
	order, err := rows.Get[Order](ctx, tx, orderKey(o))
	if err != nil {
		return nil, err
	}
	for n := range order.Lines {
		line, err := rows.Get[Line](ctx, tx, lineKey(o, n+1))
		if err != nil {
			return nil, err
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// Delivery delivers the oldest order that is not delivered of each district [TPC-C §2.7].
type Delivery struct {
	Warehouse, Carrier int
	At                 time.Time
}

// Run makes the transaction, and returns how many orders it delivers: districts without any are
// left out.
func (d Delivery) Run(ctx context.Context, tx workload.Tx) (orders int, err error) {
	for i := range Districts {
		delivered, err := d.deliver(ctx, tx, DistrictID{d.Warehouse, i + 1})
		if err != nil {
			return 0, err
		}
		if delivered {
			orders++
		}
	}
	return orders, nil
}

func (d Delivery) deliver(ctx context.Context, tx workload.Tx, id DistrictID) (bool, error) {
	next, err := rows.Get[Next](ctx, tx, deliverKey(id))
	if err != nil {
		return false, err
	}
	o := OrderID{id, next.Order}
	// Not the district's own row, which each new order changes.
	order, ok, err := rows.Find[Order](ctx, tx, orderKey(o))
	if err != nil || !ok {
		return false, err
	}
	order.Carrier = d.Carrier
	err = errors.Join(rows.Put(tx, orderKey(o), order), rows.Put(tx, deliverKey(id), Next{Order: o.Order + 1}))
	if err != nil {
		return false, err
	}
	sum := Cents(0)
	for n := range order.Lines {
		line, err := rows.Change(ctx, tx, lineKey(o, n+1), func(l *Line) { l.Delivered = d.At })
		if err != nil {
			return false, err
		}
		sum += line.Amount
	}
	_, err = rows.Change(ctx, tx, accountKey(CustomerID{id, order.Customer}), func(a *Account) {
		a.Balance += sum
		a.Deliveries++
	})
	return true, err
}

// StockLevel asks how many of the items of a district's last 20 orders are short [TPC-C §2.8].
type StockLevel struct {
	District  DistrictID
	Threshold int
}

// Run makes the transaction, and returns how many items there are less of than the threshold.
func (s StockLevel) Run(ctx context.Context, tx workload.Tx) (short int, err error) {
	const last = 20
	district, err := rows.Get[District](ctx, tx, districtKey(s.District))
	if err != nil {
		return 0, err
	}
	seen := map[int]bool{}
	for n := max(1, district.NextOrder-last); n < district.NextOrder; n++ {
		o := OrderID{s.District, n}
		order, err := rows.Get[Order](ctx, tx, orderKey(o))
		if err != nil {
			return 0, err
		}
		for i := range order.Lines {
			line, err := rows.Get[Line](ctx, tx, lineKey(o, i+1))
			if err != nil {
				return 0, err
			}
			if seen[line.Item] {
				continue
			}
			seen[line.Item] = true
			stock, err := rows.Get[Stock](ctx, tx, stockKey(s.District.Warehouse, line.Item))
			if err != nil {
				return 0, err
			}
			if stock.Quantity < s.Threshold {
				short++
			}
		}
	}
	return short, nil
}
