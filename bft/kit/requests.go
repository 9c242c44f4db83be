package kit

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Requests are the requests and the batches that a replica has, and which of them wait.
type Requests struct {
	st       *Statements
	dir      *bft.Directory
	maxBatch int

	bodies   map[bft.Digest]*Body
	batches  map[bft.Digest]Batch
	known    map[bft.Digest]bft.Seq // the last place for which a batch was accepted
	arrivals []bft.Digest           // waiting requests in the order in which they came
	waiting  map[protocol.ID]int    // requests by client
}

// A Body is a request and why it is kept.
type Body struct {
	Request bft.Signed[bft.Request]
	Full    bool // the client wants the results from here
	Passed  bool // to the primary
	Since   int  // the tick in which it came, or the view began
	waiting bool // a client asked this replica, and it is not committed
	at      bft.Seq
}

func newRequests(st *Statements, dir *bft.Directory, maxBatch int) Requests {
	return Requests{st: st, dir: dir, maxBatch: maxBatch, bodies: map[bft.Digest]*Body{},
		batches: map[bft.Digest]Batch{}, known: map[bft.Digest]bft.Seq{}, waiting: map[protocol.ID]int{}}
}

// Body returns a request, nil if it is not here.
func (q *Requests) Body(d bft.Digest) *Body { return q.bodies[d] }

// Batch returns a batch. The zero Digest is that of none.
func (q *Requests) Batch(d bft.Digest) (Batch, bool) {
	b, ok := q.batches[d]
	return b, ok
}

// Waiting returns how many requests wait.
func (q *Requests) Waiting() int { return len(q.arrivals) }

// submit keeps a request that waits from now on, and reports whether it did not before. Nobody has
// more than a bounded number of them.
func (q *Requests) submit(d bft.Digest, m *Submitted, tick int, own bool) (fresh, ok bool) {
	client := m.Request.Body().Client
	x := q.bodies[d]
	if x == nil || !x.waiting {
		if q.waiting[client] >= maxWaitingOfClient {
			return false, false
		}
		if x == nil {
			x = &Body{Request: m.Request}
			q.bodies[d] = x
		}
		x.waiting, x.Since = true, tick
		q.waiting[client]++
		q.arrivals = append(q.arrivals, d)
		fresh = true
	}
	x.Full = m.Full || x.Full && !own
	return fresh, true
}

// Settled forgets that a request waits.
func (q *Requests) Settled(d bft.Digest) {
	if b := q.bodies[d]; b != nil && b.waiting {
		b.waiting = false
		q.waiting[b.Request.Body().Client]--
		// It is near the front, as requests are executed in about the order in which they come.
		i := slices.Index(q.arrivals, d)
		copy(q.arrivals[1:i+1], q.arrivals[:i])
		q.arrivals = q.arrivals[1:]
	}
}

// Keep keeps a batch.
func (q *Requests) Keep(d bft.Digest, b Batch) { q.batches[d] = b }

// TakeBatch keeps a batch that is wanted.
func (q *Requests) TakeBatch(b Batch, want bft.Digest) {
	if want != (bft.Digest{}) && len(b.Entries) <= q.maxBatch && q.st.DigestOf(b) == want {
		q.batches[want] = b
	}
}

// TakeRequest keeps a request if a batch has it that is here.
func (q *Requests) TakeRequest(m *bft.Signed[bft.Request], of bft.Digest) {
	if !q.dir.From(m) || !m.Body().Lawful() {
		return
	}
	d := q.st.DigestOfRequest(m.Body())
	for _, e := range q.batches[of].Entries {
		if e.Request == d && q.bodies[d] == nil {
			q.bodies[d] = &Body{Request: *m}
		}
	}
}

// Restore keeps a request that the log has, of a batch in a place.
func (q *Requests) Restore(m *bft.Signed[bft.Request], at bft.Seq) {
	d := q.st.DigestOfRequest(m.Body())
	if q.bodies[d] == nil {
		q.bodies[d] = &Body{Request: *m}
	}
	q.bodies[d].at = max(q.bodies[d].at, at)
}

// Known notes that a place has a batch, so that what is here of it is kept as long as the place.
func (q *Requests) Known(batch bft.Digest, at bft.Seq) {
	q.known[batch] = max(q.known[batch], at)
	for _, e := range q.batches[batch].Entries {
		if b := q.bodies[e.Request]; b != nil {
			b.at = max(b.at, at)
		}
	}
}

// Lacking returns what of a batch is not here.
func (q *Requests) Lacking(batch bft.Digest) (out Wanted) {
	if batch == (bft.Digest{}) {
		return out
	}
	b, ok := q.batches[batch]
	if !ok {
		return Wanted{Batches: []bft.Digest{batch}}
	}
	for _, e := range b.Entries {
		if q.bodies[e.Request] == nil {
			out.Requests = append(out.Requests, e.Request)
		}
	}
	return out
}

// None reports whether nothing is wanted.
func (w Wanted) None() bool { return len(w.Batches)+len(w.Requests) == 0 }

// Of returns the requests of a batch that are here, if not all then those that are small.
func (q *Requests) Of(batch bft.Digest, all bool) (out []bft.Signed[bft.Request]) {
	for _, e := range q.batches[batch].Entries {
		b := q.bodies[e.Request]
		if b != nil && (all || size(b.Request.Body()) <= inlineBytes) {
			out = append(out, b.Request)
		}
	}
	return out
}

func size(m *bft.Request) (n int) {
	for _, o := range m.Operations {
		n += len(o.Command) + len(o.Conditions)*len(bft.Digest{})
	}
	return n
}

// Answer returns what is here of what a member wants.
func (q *Requests) Answer(m Wanted) (out Bodies, ok bool) {
	for _, d := range m.Batches[:min(len(m.Batches), MaxResent)] {
		if b, ok := q.batches[d]; ok {
			out.Batches = append(out.Batches, b)
			out.Requests = append(out.Requests, q.Of(d, false)...)
		}
	}
	for _, d := range m.Requests[:min(len(m.Requests), q.maxBatch)] {
		if b := q.bodies[d]; b != nil {
			out.Requests = append(out.Requests, b.Request)
		}
	}
	return out, len(out.Batches)+len(out.Requests) > 0
}

// Take takes what a place needs.
func (q *Requests) Take(m Bodies, want bft.Digest, at bft.Seq) {
	for _, b := range m.Batches {
		q.TakeBatch(b, want)
	}
	for i := range m.Requests {
		q.TakeRequest(&m.Requests[i], want)
	}
	q.Known(want, at)
}

// oldest returns the request that waits longest of those that can be executed, nil if there is
// none. A client can say something else to every replica under one number: when one of it is
// executed the primary owes nobody the rest.
func (q *Requests) oldest(base keyspace.Reader) *Body {
	for len(q.arrivals) > 0 {
		x := q.bodies[q.arrivals[0]]
		m := x.Request.Body()
		if fresh(base, m) && sessions.Fits(base, m) {
			return x
		}
		q.Settled(q.arrivals[0])
	}
	return nil
}

// fresh reports whether some operation of a request was not executed yet.
func fresh(at keyspace.Reader, m *bft.Request) bool {
	for i := range m.Operations {
		if _, fresh := sessions.Find(at, m.Client, m.Session, m.First+bft.Number(i)); fresh {
			return true
		}
	}
	return false
}

// settleOld forgets the requests of which all is executed.
func (q *Requests) settleOld(base keyspace.Reader) {
	for _, d := range slices.Clone(q.arrivals) {
		if !fresh(base, q.bodies[d].Request.Body()) {
			q.Settled(d)
		}
	}
}

// forget removes what is not needed above a place.
func (q *Requests) forget(low bft.Seq) {
	maps.DeleteFunc(q.bodies, func(_ bft.Digest, b *Body) bool { return !b.waiting && b.at <= low })
	maps.DeleteFunc(q.batches, func(d bft.Digest, _ Batch) bool { return q.known[d] <= low })
	maps.DeleteFunc(q.known, func(_ bft.Digest, seq bft.Seq) bool { return seq <= low })
}
