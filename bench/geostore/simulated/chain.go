package simulated

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/wan"
)

// A user makes transactions, as one of the clients of a server: one after the other, each when the
// one before is committed locally, or final.
type user struct {
	server
	site   wan.Site
	random *rand.Rand
	free   []*caller
	next   func() job
	chain  []*flight // its transactions that are not final, the oldest first
	waits  *job      // has no place in the chain; nil: there is none
	rests  bool      // it begins nothing more
}

// A flight is a transaction of a user that is not final.
type flight struct {
	job
	began  time.Duration
	now    flown
	id     store.TxnID   // of what is committed locally
	local  time.Duration // when that was
	passed bool          // the user has gone on
}

// flown is how far a flight is.
type flown int

const (
	aloft  flown = iota // on its way to its local commit
	landed              // committed locally
	again               // refused, and not begun anew
)

// callers is how many transactions of a user are not final at most.
func (n nine) callers() int { return max(n.system.ahead, 1) }

// act has a user do its next job.
func (u *users) act(x *user) {
	if u.stopped {
		x.rests = true
		u.rest(x)
		return
	}
	u.do(x, x.next())
}

// rest counts a user that begins nothing more, and has nothing left to do.
func (u *users) rest(x *user) {
	if x.rests && len(x.chain) == 0 {
		u.idle++
	}
}

// do has a user do a job.
func (u *users) do(x *user, j job) {
	u.After(j.keying, func() {
		if j.static {
			u.After(j.thinking, func() { u.act(x) })
			return
		}
		x.waits = &j
		u.begin(x)
	})
}

// begin begins the transaction that waits for a place in the chain, if there is one.
func (u *users) begin(x *user) {
	if x.waits == nil || len(x.chain) == u.callers() {
		return
	}
	f := &flight{job: *x.waits, began: u.Now()}
	x.waits, x.chain = nil, append(x.chain, f)
	u.fly(x, f)
}

// fly makes a transaction, after those before it in the chain, which are all committed locally.
func (u *users) fly(x *user, f *flight) {
	c := x.free[0]
	x.free = x.free[1:]
	p := program{code: f.code}
	if u.system.ahead > 0 {
		p.local = func(id store.TxnID) {
			f.now, f.id, f.local = landed, id, u.Now()
			u.passes(x, f)
			u.flyAgain(x)
		}
	}
	for _, before := range x.chain[:slices.Index(x.chain, f)] {
		p.after = append(p.after, before.id)
	}
	c.runs(p, func(r result) {
		x.free = append(x.free, c)
		u.landedAs(x, f, r)
	})
}

// passes has a user go on after a transaction, once.
func (u *users) passes(x *user, f *flight) {
	if f.passed {
		return
	}
	f.passed = true
	if f.ended != nil {
		f.ended()
	}
	u.After(f.thinking, func() { u.act(x) })
}

// flyAgain makes the first transaction of the chain again that was refused, once all before it are
// committed locally.
func (u *users) flyAgain(x *user) {
	i := slices.IndexFunc(x.chain, func(f *flight) bool { return f.now != landed })
	if i >= 0 && x.chain[i].now == again {
		x.chain[i].now = aloft
		u.fly(x, x.chain[i])
	}
}

// landedAs takes what became of a transaction. What was refused is tried again at once.
func (u *users) landedAs(x *user, f *flight, r result) {
	if u.on {
		u.count(x, f, r)
	}
	if r.verdict != store.Committed {
		f.now = again
		u.flyAgain(x)
		return
	}
	if u.wrote != nil && r.err == nil {
		for _, w := range r.writes {
			u.wrote[string(w.Key)] = true
		}
	}
	u.passes(x, f)
	x.chain = slices.DeleteFunc(x.chain, func(o *flight) bool { return o == f })
	u.rest(x)
	u.flyAgain(x)
	u.begin(x)
}

// count counts an attempt.
func (u *users) count(x *user, f *flight, r result) {
	switch {
	case r.verdict == store.Committed && r.err == nil:
		u.committed++
		perceived := u.Now()
		if f.now == landed {
			perceived = f.local
		}
		u.final, u.perceived = append(u.final, u.Now()-f.began), append(u.perceived, perceived-f.began)
		u.sampleOf(x, r)
	case r.verdict == store.Committed:
	case r.verdict == store.Aborted:
		u.aborted[r.reason]++
		if f.now == landed || r.reason == store.StaleRead || r.reason == store.NoReason {
			u.wrong++
		}
	default:
		u.other++
	}
}
