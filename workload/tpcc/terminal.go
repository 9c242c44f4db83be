package tpcc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/workload"
)

// Kind is a kind of transaction.
type Kind int

// The five kinds, in the specification's order.
const (
	KindNewOrder Kind = iota
	KindPayment
	KindOrderStatus
	KindDelivery
	KindStockLevel
	kinds
)

// String returns the kind's name, as in "new-order".
func (k Kind) String() string {
	if k < 0 || k >= kinds {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return [kinds]string{"new-order", "payment", "order-status", "delivery", "stock-level"}[k]
}

// Mix is how many of a hundred transactions are of each kind.
type Mix [kinds]int

// Standard returns the mix of the specification's least shares [TPC-C §5.2.3].
func Standard() Mix { return Mix{45, 43, 4, 4, 4} }

// MixOf returns a mix by its name: standard, or A, B or C of the experiments with STR, which have
// no deliveries and no stock levels [STR §8.2].
func MixOf(name string) (Mix, error) {
	switch name {
	case "standard":
		return Standard(), nil
	case "A":
		return Mix{KindNewOrder: 5, KindPayment: 83, KindOrderStatus: 12}, nil
	case "B":
		return Mix{KindNewOrder: 45, KindPayment: 43, KindOrderStatus: 12}, nil
	case "C":
		return Mix{KindNewOrder: 5, KindPayment: 43, KindOrderStatus: 52}, nil
	}
	return Mix{}, fmt.Errorf("tpcc: no mix %q (there are standard, A, B, C)", name)
}

// Terminal is where a clerk of a warehouse enters transactions.
type Terminal struct {
	Tables    *Tables
	Warehouse int
	Mix       Mix
	// RemoteItems and RemoteBuyers are how many of a hundred lines of orders are supplied, and
	// payments made by customers, of another warehouse. SetRemote sets both.
	RemoteItems, RemoteBuyers int
	// Others are the warehouses that count as other ones, such as those that the terminal's place
	// has replicas of. Without any it is all but Warehouse.
	Others []int
}

// SetRemote sets how often other warehouses are concerned, by a name: authors, as in the
// experiments with STR, 20 % of lines and of payments, or specification, 1 % of lines and 15 % of
// payments [TPC-C §2.4.1.5, §2.5.1.2].
func (t *Terminal) SetRemote(name string) error {
	switch name {
	case "authors":
		t.RemoteItems, t.RemoteBuyers = 20, 20
	case "specification":
		t.RemoteItems, t.RemoteBuyers = 1, 15
	default:
		return fmt.Errorf("tpcc: remote is %q (want authors or specification)", name)
	}
	return nil
}

// A Txn is a transaction that a clerk has entered.
type Txn struct {
	Kind     Kind
	ReadOnly bool
	// Keying is how long it takes to enter, and Thinking how long the clerk looks at the answer
	// afterwards [TPC-C §5.2.5].
	Keying, Thinking time.Duration
	// Run makes the transaction. It may be called again if it did not commit. ErrNoItem means that
	// it is not to commit.
	Run func(ctx context.Context, tx workload.Tx) error
}

// The constants of run time of nonUniform [TPC-C §2.1.6.1]: loadLast is the one by which last names
// were given at the beginning.
const (
	loadLast     = 100
	runLast      = 180
	runCustomers = 259
	runItems     = 7911
)

// Check returns an error that names the field that is wrong.
func (t Terminal) Check() error {
	sum := 0
	for k, share := range t.Mix {
		if share < 0 {
			return fmt.Errorf("tpcc: Terminal.Mix has %d %% of %v", share, Kind(k))
		}
		sum += share
	}
	switch {
	case t.Tables == nil:
		return fmt.Errorf("tpcc: Terminal.Tables is missing")
	case t.Warehouse < 1 || t.Warehouse > t.Tables.Warehouses:
		return fmt.Errorf("tpcc: Terminal.Warehouse is %d (want 1 to %d)", t.Warehouse, t.Tables.Warehouses)
	case sum != 100:
		return fmt.Errorf("tpcc: the shares of Terminal.Mix sum up to %d (want 100)", sum)
	case t.RemoteItems < 0 || t.RemoteItems > 100:
		return fmt.Errorf("tpcc: Terminal.RemoteItems is %d (want 0 to 100)", t.RemoteItems)
	case t.RemoteBuyers < 0 || t.RemoteBuyers > 100:
		return fmt.Errorf("tpcc: Terminal.RemoteBuyers is %d (want 0 to 100)", t.RemoteBuyers)
	}
	for _, w := range t.Others {
		if w < 1 || w > t.Tables.Warehouses || w == t.Warehouse {
			return fmt.Errorf("tpcc: Terminal.Others has %d (want 1 to %d, and not Warehouse, %d)", w, t.Tables.Warehouses,
				t.Warehouse)
		}
	}
	return nil
}

// Next returns a transaction of the mix that is entered now. Check has to return nil.
func (t Terminal) Next(r *rand.Rand, now time.Time) Txn {
	n := r.IntN(100)
	for k, share := range t.Mix {
		if n -= share; n < 0 {
			return t.enter(r, Kind(k), now)
		}
	}
	panic("tpcc: the shares of a mix do not sum up to 100")
}

func (t Terminal) enter(r *rand.Rand, k Kind, now time.Time) Txn {
	txn := Txn{Kind: k, ReadOnly: k == KindOrderStatus || k == KindStockLevel,
		Keying:   time.Second * [kinds]time.Duration{18, 3, 2, 2, 2}[k],
		Thinking: time.Duration(r.ExpFloat64() * float64(time.Second*[kinds]time.Duration{12, 12, 10, 5, 5}[k]))}
	switch k {
	case KindNewOrder:
		txn.Run = discard(t.NewOrder(r, now).Run)
	case KindPayment:
		txn.Run = discard(t.Payment(r).Run)
	case KindOrderStatus:
		txn.Run = discard(OrderStatus{Buyer: t.buyer(r, t.district(r, t.Warehouse))}.Run)
	case KindDelivery:
		txn.Run = discard(Delivery{Warehouse: t.Warehouse, Carrier: 1 + r.IntN(10), At: now}.Run)
	case KindStockLevel:
		txn.Run = discard(StockLevel{District: t.district(r, t.Warehouse), Threshold: 10 + r.IntN(11)}.Run)
	}
	return txn
}

func discard[R any](run func(context.Context, workload.Tx) (R, error)) func(context.Context, workload.Tx) error {
	return func(ctx context.Context, tx workload.Tx) error {
		_, err := run(ctx, tx)
		return err
	}
}

// NewOrder returns an order that is entered now.
func (t Terminal) NewOrder(r *rand.Rand, now time.Time) NewOrder {
	n := NewOrder{Customer: CustomerID{t.district(r, t.Warehouse), t.customer(r)}, Entered: now}
	seen := map[int]bool{}
	for range minLines + r.IntN(maxLines-minLines+1) {
		w := Wanted{Item: nonUniform(r, 8191, runItems, 1, t.Tables.Items), Supplier: t.Warehouse, Quantity: 1 + r.IntN(10)}
		for seen[w.Item] { // an item comes once: the lines' stocks are different keys
			w.Item = w.Item%t.Tables.Items + 1
		}
		seen[w.Item] = true
		if r.IntN(100) < t.RemoteItems {
			w.Supplier = t.other(r)
		}
		n.Lines = append(n.Lines, w)
	}
	if r.IntN(100) == 0 {
		n.Lines[len(n.Lines)-1].Item = t.Tables.Items + 1
	}
	return n
}

// Payment returns a payment: three of five customers are known by their last name.
func (t Terminal) Payment(r *rand.Rand) Pay {
	p := Pay{District: t.district(r, t.Warehouse), Amount: Cents(100 + r.IntN(499_901))}
	of := p.District
	if r.IntN(100) < t.RemoteBuyers {
		of = t.district(r, t.other(r))
	}
	p.Buyer = t.buyer(r, of)
	return p
}

func (t Terminal) buyer(r *rand.Rand, d DistrictID) Buyer {
	b := Buyer{CustomerID: CustomerID{DistrictID: d}}
	if r.IntN(100) < 60 {
		b.Last = lastName(nonUniform(r, 255, runLast, 0, min(lastNames, t.Tables.Customers)-1))
	} else {
		b.Customer = t.customer(r)
	}
	return b
}

func (t Terminal) district(r *rand.Rand, w int) DistrictID {
	return DistrictID{w, 1 + r.IntN(Districts)}
}

func (t Terminal) customer(r *rand.Rand) int {
	return nonUniform(r, 1023, runCustomers, 1, t.Tables.Customers)
}

// other returns another warehouse, if there is one.
func (t Terminal) other(r *rand.Rand) int {
	switch {
	case len(t.Others) > 0:
		return t.Others[r.IntN(len(t.Others))]
	case t.Tables.Warehouses == 1:
		return t.Warehouse
	}
	w := 1 + r.IntN(t.Tables.Warehouses-1)
	if w >= t.Warehouse {
		w++
	}
	return w
}
