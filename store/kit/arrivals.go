package kit

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Arrivals are requests that a server holds until the time at which they should have reached all
// servers that they are sent to, so that all of these handle the ones that conflict in one order
// [Carousel §6.1]. It is best effort: one that comes late is handled at once, and so is one for
// which there is no room. To everybody else a request that is held is a message that is still on
// its way.
//
// The node that has them calls Due when ArrivalTimer expires. They are made with NewArrivals.
type Arrivals[T any] struct {
	most   time.Duration
	max    int
	queue  []arriving[T] // Invariant: at most max, in order
	status store.OrderStatus
	let    uint64 // go, of status.Held
}

// An Arrival is when a request should have arrived, by the clock of the server that holds it, and
// what tells it from others of that time: all servers break ties alike.
type Arrival struct {
	At   time.Duration
	ID   store.TxnID
	Step uint32
}

type arriving[T any] struct {
	Arrival
	came time.Duration
	what T
}

// ArrivalTimer is when the first one is due.
type ArrivalTimer struct{}

// NewArrivals returns none, of a server that holds a request for so long at most, whatever its time
// is, and so many at once.
func NewArrivals[T any](most time.Duration, limit int) Arrivals[T] {
	return Arrivals[T]{most: most, max: limit}
}

func (a Arrival) compare(b Arrival) int {
	return cmp.Or(cmp.Compare(a.At, b.At), a.ID.Compare(b.ID), cmp.Compare(a.Step, b.Step))
}

// Take takes a request that has just come, and returns those whose time has come, in order: it is
// among them if it is late, and behind them if there is no room for it.
func (h *Arrivals[T]) Take(env *protocol.Env[store.Message], at Arrival, what T) (due []T) {
	switch {
	case len(h.queue) >= h.max:
		h.status.Full++
		return append(h.Due(env), what)
	case at.At <= env.Now:
		h.status.Late++
	default:
		h.status.Held++
	}
	at.At = min(at.At, env.Now+h.most) // else a clock is wrong, or somebody lies
	i, _ := slices.BinarySearchFunc(h.queue, at, func(q arriving[T], at Arrival) int { return q.compare(at) })
	h.queue = slices.Insert(h.queue, i, arriving[T]{at, env.Now, what})
	if i == 0 && at.At > env.Now {
		env.After(at.At-env.Now, ArrivalTimer{})
	}
	return h.Due(env)
}

// meanOf is of about how many requests the mean time in the status is.
const meanOf = 32

// Due returns those whose time has come, in order. If the clock was set back, nothing is held for
// longer than it may be from then on.
func (h *Arrivals[T]) Due(env *protocol.Env[store.Message]) (due []T) {
	n := 0
	for n < len(h.queue) && (h.queue[n].At <= env.Now || h.queue[n].At > env.Now+h.most) {
		if q := h.queue[n]; q.At > q.came { // else it was late
			h.count(max(env.Now-q.came, 0))
		}
		due = append(due, h.queue[n].what)
		n++
	}
	h.queue = slices.Delete(h.queue, 0, n)
	if n > 0 && len(h.queue) > 0 {
		env.After(h.queue[0].At-env.Now, ArrivalTimer{})
	}
	return due
}

// count counts a request that was held for so long.
func (h *Arrivals[T]) count(held time.Duration) {
	bounds := store.HeldBounds()
	i, _ := slices.BinarySearch(bounds[:], held)
	h.status.Times[i]++
	h.status.Sum += held
	h.let++
	h.status.Mean += (held - h.status.Mean) / time.Duration(min(h.let, meanOf))
}

// Status says how they are.
func (h *Arrivals[T]) Status() store.OrderStatus {
	out := h.status
	out.Holding = len(h.queue)
	return out
}

// Check returns what is wrong with them, or nil.
func (h *Arrivals[T]) Check() error {
	if len(h.queue) > h.max || !slices.IsSortedFunc(h.queue, func(a, b arriving[T]) int { return a.compare(b.Arrival) }) {
		return fmt.Errorf("%d requests are held, out of order or above the limit of %d", len(h.queue), h.max)
	}
	return nil
}
