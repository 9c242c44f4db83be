package kit

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Reservations are the keys that a server keeps from transactions that are younger than ones it has
// refused. A transaction that is tried again has the age of its first attempt, so the oldest wins
// at all servers. A reservation is a hint that ends by itself, not a lock: all it does is to have
// the server refuse. Those of a key are a queue, the oldest first: when it is done, the next one
// need not have been refused once more to be next.
//
// The node that has them gives their ReserveTimers to Expire. It is made with NewReservations.
type Reservations struct {
	cfg  store.Config
	left func(store.Key)
	keys map[store.Key][]Reservation // Invariant: the oldest first, none of them empty
	n    int                         // Invariant: the sum over keys, at most MaxWaiting
}

// A Reservation is a transaction's in the queue of a key.
type Reservation struct {
	Priority store.Priority
	Writes   bool // else the transaction only reads the key, and other reads are no harm to it
	until    time.Duration
}

// ReserveFor is how many round trips a reservation lasts, in which a transaction that was refused
// is tried again; MaxQueue is how many reservations a key has at most.
const (
	ReserveFor = 3
	MaxQueue   = 256
)

// ReserveTimer ends the reservations of a key.
type ReserveTimer struct{ Key store.Key }

// NewReservations returns none, of a server whose configuration has its defaults. left is called
// with each key that somebody leaves; nil: nobody wants to know.
func NewReservations(cfg store.Config, left func(store.Key)) Reservations {
	return Reservations{cfg: cfg, left: left, keys: map[store.Key][]Reservation{}}
}

// Fresh returns a priority, or none if no transaction that is still tried can have it: nobody goes
// before all others, time and again.
func (r *Reservations) Fresh(now time.Duration, p store.Priority) store.Priority {
	now = max(now, 0)
	if p.Began < uint64(max(now-r.cfg.Retain, 0)) || p.Began > uint64(now)+uint64(r.cfg.MaxAhead) {
		return store.Priority{}
	}
	return p
}

// lasts reports whether a reservation has not ended. One that would last for longer than any was
// made before the clock was set back.
func (r *Reservations) lasts(now time.Duration, q Reservation) bool {
	return q.until > now && q.until <= now+ReserveFor*r.cfg.RoundTrip
}

// Before reports whether a transaction that goes before one of a priority wants the key, in a way
// that does not go together with it.
func (r *Reservations) Before(now time.Duration, key store.Key, write bool, p store.Priority) bool {
	mine := r.Fresh(now, p)
	for _, q := range r.keys[key] {
		if !q.Priority.Before(mine) {
			return false
		}
		if q.Priority != p && r.lasts(now, q) && (q.Writes || write) {
			return true
		}
	}
	return false
}

// Behind reports whether older transactions are going to change a key that one which was refused
// before reads, and is going to change too: what it read now would be out of date. One that only
// reads the key may be in time.
func (r *Reservations) Behind(now time.Duration, key store.Key, p store.Priority) bool {
	if r.Fresh(now, p).IsZero() || !slices.ContainsFunc(r.keys[key], func(q Reservation) bool {
		return q.Priority == p && q.Writes
	}) {
		return false
	}
	return r.Before(now, key, false, p)
}

// Queue returns the reservations of a key, the oldest first. It is not for its caller to change.
func (r *Reservations) Queue(key store.Key) []Reservation { return r.keys[key] }

// Len returns how many there are in all.
func (r *Reservations) Len() int { return r.n }

// Reserve puts a transaction into a key's queue, or has it stay there longer.
func (r *Reservations) Reserve(env *protocol.Env[store.Message], key store.Key, write bool, p store.Priority) {
	if p = r.Fresh(env.Now, p); p.IsZero() {
		return
	}
	r.keep(env, key, func(q Reservation) bool { return r.lasts(env.Now, q) })
	queue := r.keys[key]
	until := env.Now + ReserveFor*r.cfg.RoundTrip
	i, found := slices.BinarySearchFunc(queue, p, func(q Reservation, p store.Priority) int {
		switch {
		case q.Priority == p:
			return 0
		case q.Priority.Before(p):
			return -1
		}
		return 1
	})
	switch {
	case found:
		queue[i].Writes, queue[i].until = queue[i].Writes || write, until
	case r.n >= r.cfg.MaxWaiting || i == MaxQueue:
		return
	default:
		if len(queue) == MaxQueue { // the youngest makes room
			queue = queue[:MaxQueue-1]
			r.n--
		}
		r.keys[key] = slices.Insert(queue, i, Reservation{p, write, until})
		r.n++
	}
	env.After(ReserveFor*r.cfg.RoundTrip, ReserveTimer{key})
}

// Release gives back what a transaction that is done had reserved of a key.
func (r *Reservations) Release(env *protocol.Env[store.Message], key store.Key, p store.Priority) {
	if len(r.keys[key]) > 0 {
		r.keep(env, key, func(q Reservation) bool { return q.Priority != p })
	}
}

// Expire ends the reservations of a key. The timer is set anew with each: all have had their time,
// whatever the clock says.
func (r *Reservations) Expire(env *protocol.Env[store.Message], t ReserveTimer) {
	r.keep(env, t.Key, func(Reservation) bool { return false })
}

// keep leaves those of a key's reservations for which a function says so.
func (r *Reservations) keep(env *protocol.Env[store.Message], key store.Key, stays func(Reservation) bool) {
	queue := r.keys[key]
	left := slices.DeleteFunc(queue, func(q Reservation) bool { return !stays(q) })
	r.n -= len(queue) - len(left)
	if len(left) < len(queue) && r.left != nil {
		r.left(key)
	}
	if len(left) == 0 {
		delete(r.keys, key)
		env.Stop(ReserveTimer{key})
		return
	}
	r.keys[key] = left
}

// Check returns what is wrong with them, or nil.
func (r *Reservations) Check() error {
	n := 0
	for key, queue := range r.keys { //pure:ok any broken one is an error
		n += len(queue)
		if len(queue) == 0 || len(queue) > MaxQueue || !slices.IsSortedFunc(queue, func(a, b Reservation) int {
			if a.Priority.Before(b.Priority) {
				return -1
			}
			return 1
		}) {
			return fmt.Errorf("%q is reserved by %v", key, queue)
		}
	}
	if n != r.n || n > r.cfg.MaxWaiting {
		return fmt.Errorf("%d reservations, counted as %d, with a limit of %d", n, r.n, r.cfg.MaxWaiting)
	}
	return nil
}
