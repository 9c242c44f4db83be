package tpcc

import (
	"context"

	"github.com/foresay/foresay/workload"
	"github.com/foresay/foresay/workload/internal/rows"
)

// Check reads all that a store holds, and returns an error if it cannot have come about by
// transactions that ran one after the other: the consistency conditions of the specification, and
// that what is kept for want of scans says what a scan would have found [TPC-C §3.3.2]. Nobody may
// write meanwhile, unless all is read as of one moment.
func (t *Tables) Check(ctx context.Context, tx workload.Tx) error {
	b := books{tables: t, tx: tx, taken: map[DistrictID]Cents{}, sold: map[[2]int]Stock{}}
	for w := range t.Warehouses {
		for d := range Districts {
			if err := b.district(ctx, DistrictID{w + 1, d + 1}); err != nil {
				return err
			}
		}
	}
	for w := range t.Warehouses {
		if err := b.warehouse(ctx, w+1); err != nil {
			return err
		}
	}
	return nil
}

// books are what districts say, to compare with what warehouses say.
type books struct {
	tables *Tables
	tx     workload.Tx
	taken  map[DistrictID]Cents // by payments, of customers of any district
	sold   map[[2]int]Stock     // by warehouse and item
}

// district looks at a district's orders, and then at its customers.
func (b *books) district(ctx context.Context, id DistrictID) error {
	d, err := rows.Get[District](ctx, b.tx, districtKey(id))
	if err != nil {
		return err
	}
	next, err := rows.Get[Next](ctx, b.tx, deliverKey(id))
	if err != nil {
		return err
	}
	if next.Order > d.NextOrder {
		return rows.Wrong(deliverKey(id), "delivers order %d next, of %d", next.Order, d.NextOrder-1)
	}
	latest, owed, delivered := map[int]int{}, map[int]Cents{}, map[int]int{}
	for n := 1; n < d.NextOrder; n++ {
		o := OrderID{id, n}
		order, err := rows.Get[Order](ctx, b.tx, orderKey(o)) // condition 2
		if err != nil {
			return err
		}
		latest[order.Customer] = n
		if is := order.Carrier != 0; is != (n < next.Order) { // conditions 3, 5, 11
			return rows.Wrong(orderKey(o), "delivered: %v, while %d is delivered next", is, next.Order)
		}
		sum, err := b.lines(ctx, o, order)
		if err != nil {
			return err
		}
		if order.Carrier != 0 {
			owed[order.Customer] += sum
			if n > b.tables.delivered() {
				delivered[order.Customer]++
			}
		}
	}
	if err := rows.Absent(ctx, b.tx, orderKey(OrderID{id, d.NextOrder})); err != nil {
		return err
	}
	for c := range b.tables.Customers {
		if err := b.customer(ctx, CustomerID{id, c + 1}, latest[c+1], owed[c+1], delivered[c+1]); err != nil {
			return err
		}
	}
	return nil
}

// lines looks at an order's lines, and returns the sum of their amounts.
func (b *books) lines(ctx context.Context, o OrderID, order Order) (sum Cents, err error) {
	for n := 1; n <= order.Lines; n++ { // conditions 4, 6
		line, err := rows.Get[Line](ctx, b.tx, lineKey(o, n))
		if err != nil {
			return 0, err
		}
		if line.Delivered.IsZero() != (order.Carrier == 0) { // condition 7
			return 0, rows.Wrong(lineKey(o, n), "delivered at %v by the carrier %d", line.Delivered, order.Carrier)
		}
		sum += line.Amount
		if o.Order <= b.tables.Customers {
			continue // it was there at the beginning, and nothing was sold
		}
		s := b.sold[[2]int{line.Supplier, line.Item}]
		s.Orders++
		s.Sold += line.Quantity
		if line.Supplier != o.Warehouse {
			s.Remote++
		}
		b.sold[[2]int{line.Supplier, line.Item}] = s
	}
	return sum, rows.Absent(ctx, b.tx, lineKey(o, order.Lines+1))
}

// customer looks at what a customer has paid and owes.
func (b *books) customer(ctx context.Context, c CustomerID, latest int, owed Cents, delivered int) error {
	a, err := rows.Get[Account](ctx, b.tx, accountKey(c))
	if err != nil {
		return err
	}
	paid := Cents(0)
	for n := 1; n <= a.Payments; n++ {
		p, err := rows.Get[Payment](ctx, b.tx, paymentKey(c, n))
		if err != nil {
			return err
		}
		paid += p.Amount
		b.taken[DistrictID{p.Warehouse, p.District}] += p.Amount
	}
	if err := rows.Absent(ctx, b.tx, paymentKey(c, a.Payments+1)); err != nil {
		return err
	}
	last, err := rows.Get[Latest](ctx, b.tx, latestKey(c))
	switch {
	case err != nil:
		return err
	case last.Order != latest:
		return rows.Wrong(latestKey(c), "the latest order is %d, want %d", last.Order, latest)
	case a.Paid != paid:
		return rows.Wrong(accountKey(c), "has paid %d, want %d, the sum of the payments", a.Paid, paid)
	case a.Balance != owed-paid: // conditions 10, 12
		return rows.Wrong(accountKey(c), "the balance is %d, want %d delivered less %d paid", a.Balance, owed, paid)
	case a.Deliveries != delivered:
		return rows.Wrong(accountKey(c), "%d deliveries, want %d", a.Deliveries, delivered)
	}
	return nil
}

// warehouse compares what a warehouse has taken and sold with what customers have paid and ordered.
func (b *books) warehouse(ctx context.Context, w int) error {
	taken := Cents(0)
	for i := range Districts {
		d := DistrictID{w, i + 1}
		total, err := rows.Get[Total](ctx, b.tx, districtTotalKey(d))
		if err != nil {
			return err
		}
		if total.Taken != b.taken[d] { // condition 9
			return rows.Wrong(districtTotalKey(d), "has taken %d, want %d, the sum of the payments", total.Taken, b.taken[d])
		}
		taken += total.Taken
	}
	total, err := rows.Get[Total](ctx, b.tx, warehouseTotalKey(w))
	if err != nil {
		return err
	}
	if total.Taken != taken { // conditions 1, 8
		return rows.Wrong(warehouseTotalKey(w), "has taken %d, want %d, the sum of its districts", total.Taken, taken)
	}
	for i := range b.tables.Items {
		key := stockKey(w, i+1)
		s, err := rows.Get[Stock](ctx, b.tx, key)
		if err != nil {
			return err
		}
		want := b.sold[[2]int{w, i + 1}]
		if s.Orders != want.Orders || s.Sold != want.Sold || s.Remote != want.Remote {
			return rows.Wrong(key, "sold %d in %d orders, %d of them remote, want %d in %d, %d", s.Sold, s.Orders, s.Remote,
				want.Sold, want.Orders, want.Remote)
		}
	}
	return nil
}
