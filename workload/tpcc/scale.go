package tpcc

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/workload/internal/rows"
)

// Districts is how many a warehouse has.
const Districts = 10

// Scale is how much there is. What is zero is as in the specification, but Warehouses.
type Scale struct {
	Warehouses int
	Customers  int // of a district, 3,000; as many orders are there at the beginning
	Items      int // 100,000
}

// Tables are the rows at the beginning, a function of the key. They are safe for concurrent use.
type Tables struct {
	Scale
	lasts   []string         // of customers, by number less 1: alike in all districts
	named   map[string][]int // by last name
	names   []string         // all of them, in order
	ordered []int            // which customer an order is of, by number less 1
	orders  []int            // and the reverse
}

// NewTables returns the tables of a scale, or an error that names the field.
func NewTables(s Scale) (*Tables, error) {
	if s.Customers == 0 {
		s.Customers = 3000
	}
	if s.Items == 0 {
		s.Items = 100_000
	}
	switch {
	case s.Warehouses < 1:
		return nil, fmt.Errorf("tpcc: Scale.Warehouses is %d (want 1 or more)", s.Warehouses)
	case s.Customers < 10:
		return nil, fmt.Errorf("tpcc: Scale.Customers is %d (want 10 or more for each district)", s.Customers)
	case s.Items < 2*maxLines:
		return nil, fmt.Errorf("tpcc: Scale.Items is %d (want %d or more)", s.Items, 2*maxLines)
	}
	t := &Tables{Scale: s, named: map[string][]int{}, orders: make([]int, s.Customers)}
	r := rand.New(rand.NewPCG(1, 0))
	for c := range s.Customers {
		n := c
		if c >= lastNames {
			n = nonUniform(r, 255, loadLast, 0, lastNames-1)
		}
		last := lastName(n)
		t.lasts = append(t.lasts, last)
		t.named[last] = append(t.named[last], c+1)
	}
	for _, customers := range t.named {
		slices.SortStableFunc(customers, func(a, b int) int { return strings.Compare(t.first(a), t.first(b)) })
	}
	t.names = slices.Sorted(maps.Keys(t.named))
	for i, c := range r.Perm(s.Customers) {
		t.ordered = append(t.ordered, c+1)
		t.orders[c] = i + 1
	}
	return t, nil
}

// delivered is how many of a district's orders are delivered at the beginning: 70 %.
func (t *Tables) delivered() int { return t.Customers * 7 / 10 }

// opened is when all was as at the beginning.
func opened() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// What is paid at the beginning, and what customers owe then.
const firstPayment = Cents(1000)

// Initial returns what a key holds at the beginning, if there is such a row.
func (t *Tables) Initial(key string) (value []byte, ok bool) {
	kind, rest, _ := strings.Cut(key, "/")
	parts := strings.Split(rest, "/")
	named := kind == "c-named" && len(parts) == 3
	if named {
		parts = parts[:2]
	}
	var n [4]int
	if len(parts) > len(n) {
		return nil, false
	}
	for i, p := range parts {
		var ok bool
		if n[i], ok = rows.Number(p); !ok || n[i] < 1 {
			return nil, false
		}
	}
	if n[0] > t.Warehouses {
		return nil, false
	}
	var row any
	if named {
		if customers := t.named[rest[strings.LastIndexByte(rest, '/')+1:]]; customers != nil && n[1] <= Districts {
			row = Named{Customers: customers}
		}
	} else {
		row = t.row(kind, len(parts), n)
	}
	if row == nil {
		return nil, false
	}
	return rows.Encode(row), true
}

// row returns the row of a kind with these numbers, or nil if there is none.
func (t *Tables) row(kind string, numbers int, n [4]int) any {
	switch numbers {
	case 1:
		return t.rowOfWarehouse(kind, n[0])
	case 2:
		if kind == "i" || kind == "s" {
			return t.rowOfItem(kind, n[0], n[1])
		}
		if n[1] <= Districts {
			return t.rowOfDistrict(kind, DistrictID{n[0], n[1]})
		}
	case 3, 4:
		if n[1] <= Districts && n[2] <= t.Customers {
			return t.rowOfCustomer(kind, numbers, n)
		}
	}
	return nil
}

func (t *Tables) rowOfWarehouse(kind string, w int) any {
	r := rows.Chance("w", w)
	switch kind {
	case "w":
		return Warehouse{Name: rows.Text(r, 6, 10), Address: rows.Text(r, 50, 80), Tax: float64(r.IntN(2001)) / 10_000}
	case "w-taken":
		return Total{Taken: Districts * Cents(t.Customers) * firstPayment}
	}
	return nil
}

func (t *Tables) rowOfDistrict(kind string, d DistrictID) any {
	r := rows.Chance("d", d.Warehouse, d.District)
	switch kind {
	case "d":
		return District{Name: rows.Text(r, 6, 10), Address: rows.Text(r, 50, 80), Tax: float64(r.IntN(2001)) / 10_000,
			NextOrder: t.Customers + 1}
	case "d-taken":
		return Total{Taken: Cents(t.Customers) * firstPayment}
	case "d-next":
		return Next{Order: t.delivered() + 1}
	}
	return nil
}

func (t *Tables) rowOfItem(kind string, w, item int) any {
	if item > t.Items {
		return nil
	}
	switch kind {
	case "i":
		r := rows.Chance("i", item)
		return Item{Name: rows.Text(r, 14, 24), Price: Cents(100 + r.IntN(9901)), Data: original(r)}
	case "s":
		r := rows.Chance("s", w, item)
		return Stock{Quantity: 10 + r.IntN(91), Info: rows.Text(r, 24*Districts, 24*Districts), Data: original(r)}
	}
	return nil
}

// rowOfCustomer returns a row whose key has three numbers or four: warehouse, district, customer or
// order, and a payment or a line.
func (t *Tables) rowOfCustomer(kind string, numbers int, n [4]int) any {
	d := DistrictID{n[0], n[1]}
	switch {
	case numbers == 3 && kind == "c":
		r := rows.Chance("c", n[:3]...)
		return Customer{First: t.first(n[2]), Last: t.lasts[n[2]-1], Address: rows.Text(r, 60, 96),
			BadCredit: r.IntN(10) == 0, Discount: float64(r.IntN(5001)) / 10_000, Data: rows.Text(r, 300, 500)}
	case numbers == 3 && kind == "c-account":
		return Account{Balance: -firstPayment, Paid: firstPayment, Payments: 1}
	case numbers == 3 && kind == "c-latest":
		return Latest{Order: t.orders[n[2]-1]}
	case numbers == 4 && kind == "h" && n[3] == 1:
		return Payment{Warehouse: n[0], District: n[1], Amount: firstPayment,
			Data: rows.Text(rows.Chance("h", n[:3]...), 12, 24)}
	case numbers == 3 && kind == "o":
		return t.order(OrderID{d, n[2]})
	case numbers == 4 && kind == "l":
		o := OrderID{d, n[2]}
		if n[3] <= t.order(o).Lines {
			return t.line(o, n[3])
		}
	}
	return nil
}

func (t *Tables) order(o OrderID) Order {
	r := rows.Chance("o", o.Warehouse, o.District, o.Order)
	row := Order{Customer: t.ordered[o.Order-1], Entered: opened(), Local: true,
		Lines: minLines + r.IntN(maxLines-minLines+1)}
	if o.Order <= t.delivered() {
		row.Carrier = 1 + r.IntN(10)
	}
	return row
}

func (t *Tables) line(o OrderID, n int) Line {
	r := rows.Chance("l", o.Warehouse, o.District, o.Order, n)
	row := Line{Item: 1 + r.IntN(t.Items), Supplier: o.Warehouse, Quantity: 5, Info: rows.Text(r, 24, 24)}
	if o.Order <= t.delivered() {
		row.Delivered = opened()
	} else {
		row.Amount = Cents(1 + r.IntN(999_999))
	}
	return row
}

// first returns a customer's first name, alike in all districts as last names are.
func (t *Tables) first(customer int) string { return rows.Text(rows.Chance("first", customer), 8, 16) }

// Rows returns all keys of a warehouse that have a value at the beginning, with their values.
func (t *Tables) Rows(warehouse int) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key := range t.keys(warehouse) {
			value, ok := t.Initial(key)
			if !ok {
				panic(fmt.Sprintf("tpcc: %s has no value", key))
			}
			if !yield(key, value) {
				return
			}
		}
	}
}

func (t *Tables) keys(w int) iter.Seq[string] {
	return func(yield func(string) bool) {
		all := func(keys ...string) bool {
			return !slices.ContainsFunc(keys, func(key string) bool { return !yield(key) })
		}
		if w < 1 || w > t.Warehouses || !all(warehouseKey(w), warehouseTotalKey(w)) {
			return
		}
		for i := range t.Items {
			if !all(itemKey(w, i+1), stockKey(w, i+1)) {
				return
			}
		}
		for d := range Districts {
			if !t.keysOfDistrict(DistrictID{w, d + 1}, all) {
				return
			}
		}
	}
}

func (t *Tables) keysOfDistrict(d DistrictID, all func(...string) bool) bool {
	if !all(districtKey(d), districtTotalKey(d), deliverKey(d)) {
		return false
	}
	for _, last := range t.names {
		if !all(namedKey(d, last)) {
			return false
		}
	}
	for i := range t.Customers {
		c, o := CustomerID{d, i + 1}, OrderID{d, i + 1}
		if !all(customerKey(c), accountKey(c), latestKey(c), paymentKey(c, 1), orderKey(o)) {
			return false
		}
		for n := range t.order(o).Lines {
			if !all(lineKey(o, n+1)) {
				return false
			}
		}
	}
	return true
}

// original returns what is said of an item; of one in ten, that it is original [TPC-C §4.3.3.1].
func original(r *rand.Rand) string {
	s := rows.Text(r, 26, 50)
	if r.IntN(10) == 0 {
		at := r.IntN(len(s) - len("original"))
		s = s[:at] + "original" + s[at+len("original"):]
	}
	return s
}

// lastNames is how many last names there are.
const lastNames = 1000

// lastName returns the last name of a number from 0 to 999 [TPC-C §4.3.2.3].
func lastName(n int) string {
	syllables := [10]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}
	return syllables[n/100] + syllables[n/10%10] + syllables[n%10]
}

// nonUniform returns a number from lo to hi, some of which are more frequent [TPC-C §2.1.6].
func nonUniform(r *rand.Rand, a, c, lo, hi int) int {
	return ((r.IntN(a+1)|(lo+r.IntN(hi-lo+1)))+c)%(hi-lo+1) + lo
}
