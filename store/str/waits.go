package str

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// waits are the requests that wait at a server for the outcome of transactions. A request is tried
// again when one of its keys is touched.
type waits struct {
	all     map[uint64]*waiter
	byKey   map[store.Key][]*waiter
	high    []*waiter // reads that wait for the ceiling, or the clock
	last    uint64
	touched []*waiter
	since   time.Duration // of what is added: when it was asked for
}

// waiter is what waits: a readAt, a certify or a part that is to be prepared.
type waiter struct {
	number uint64
	from   protocol.ID
	ref    uint64
	msg    store.Message
	keys   []store.Key
	since  time.Duration // when it was asked for last
}

// waitTrips is for how many round trips a request waits without being repeated: whoever made it is
// gone, or asks others.
const waitTrips = 12

func newWaits() waits { return waits{all: map[uint64]*waiter{}, byKey: map[store.Key][]*waiter{}} }

// same reports whether two are the same request.
func (w *waiter) same(than *waiter) bool {
	if w.from != than.from {
		return false
	}
	switch m := w.msg.(type) {
	case certify:
		n, ok := than.msg.(certify)
		return ok && m.ID == n.ID
	case part:
		n, ok := than.msg.(part)
		return ok && m.ID == n.ID
	}
	_, reads := than.msg.(readAt)
	return reads && w.ref == than.ref
}

// add has a request wait, in place of an earlier one that was the same; false: there is no room.
func (w *waits) add(most int, r *waiter) bool {
	for _, o := range w.byKey[r.keys[0]] {
		if o.same(r) {
			w.remove(o)
			break
		}
	}
	if len(w.all) >= most {
		return false
	}
	w.last++
	r.number, r.since = w.last, w.since
	w.all[r.number] = r
	for _, key := range r.keys {
		w.byKey[key] = append(w.byKey[key], r)
	}
	return true
}

// addHigh has a read wait for the ceiling.
func (w *waits) addHigh(most int, r *waiter) bool {
	w.high = slices.DeleteFunc(w.high, r.same)
	if len(w.high) >= most {
		return false
	}
	r.since = w.since
	w.high = append(w.high, r)
	return true
}

func (w *waits) remove(r *waiter) {
	delete(w.all, r.number)
	for _, key := range r.keys {
		left := slices.DeleteFunc(w.byKey[key], func(o *waiter) bool { return o == r })
		if w.byKey[key] = left; len(left) == 0 {
			delete(w.byKey, key)
		}
	}
}

// touch has the requests that wait for a key tried again.
func (w *waits) touch(key store.Key) { w.touched = append(w.touched, w.byKey[key]...) }

// touchPrepare has a part tried again about which something has become known.
func (w *waits) touchPrepare(id store.TxnID) {
	for _, r := range w.sorted() {
		if p, ok := r.msg.(part); ok && p.ID == id {
			w.touched = append(w.touched, r)
		}
	}
}

func (w *waits) touchAll() { w.touched = w.sorted() }

func (w *waits) sorted() []*waiter {
	var out []*waiter
	for _, r := range w.all { //pure:ok they are sorted
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *waiter) int { return cmp.Compare(a.number, b.number) })
	return out
}

// take returns those that are to be tried again, in the order in which they have come.
func (w *waits) take() []*waiter {
	out := w.touched
	w.touched = nil
	slices.SortFunc(out, func(a, b *waiter) int { return cmp.Compare(a.number, b.number) })
	out = slices.Compact(out)
	out = slices.DeleteFunc(out, func(r *waiter) bool { return w.all[r.number] != r })
	for _, r := range out {
		w.remove(r)
	}
	return out
}

// reads returns how many reads wait.
func (w *waits) reads() int {
	n := len(w.high)
	for _, r := range w.all { //pure:ok it counts
		if _, ok := r.msg.(readAt); ok {
			n++
		}
	}
	return n
}

// dropCertify forgets a request to certify a transaction.
func (w *waits) dropCertify(id store.TxnID) {
	for _, r := range w.sorted() {
		if m, ok := r.msg.(certify); ok && m.ID == id {
			w.remove(r)
		}
	}
}

// dropOld forgets what was not asked for since a time.
func (w *waits) dropOld(since time.Duration) {
	for _, r := range w.sorted() {
		if r.since < since {
			w.remove(r)
		}
	}
	w.high = slices.DeleteFunc(w.high, func(r *waiter) bool { return r.since < since })
}

// dropPrepares forgets parts that wait, and returns who has asked.
func (w *waits) dropPrepares() []kit.Question {
	var out []kit.Question
	for _, r := range w.sorted() {
		if _, ok := r.msg.(part); ok {
			w.remove(r)
			out = append(out, kit.Question{From: r.from, Ref: r.ref})
		}
	}
	return out
}

// tryAgain tries what waited for what was touched.
func (s *server) tryAgain(env *protocol.Env[store.Message]) {
	for len(s.waits.touched) > 0 {
		for _, r := range s.waits.take() {
			s.waits.since = r.since
			switch m := r.msg.(type) {
			case readAt:
				s.onRead(env, r.from, m)
			case certify:
				s.onCertify(env, r.from, m)
			case part:
				if q := (kit.Question{From: r.from, Ref: r.ref}); s.group.Current() {
					s.tryPrepare(env, q, m)
				} else {
					q.Elsewhere(env, s.group.Leader().ID)
				}
			}
		}
	}
	s.waits.since = env.Now
}

// tryReads tries the reads that waited for the ceiling, or the clock.
func (s *server) tryReads(env *protocol.Env[store.Message]) {
	high := s.waits.high
	s.waits.high = nil
	for _, r := range high {
		s.waits.since = r.since
		if m, ok := r.msg.(readAt); ok {
			s.onRead(env, r.from, m)
		}
	}
	s.waits.since = env.Now
}
