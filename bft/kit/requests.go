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
	limits   bft.Limits

	bodies   map[bft.Digest]*Body
	batches  map[bft.Digest]Batch
	known    map[bft.Digest]bft.Seq // the last place for which a batch was accepted
	arrivals []bft.Digest           // waiting requests in the order in which they came
	waiting  map[asker]waiting
	turns    map[protocol.ID]*turn // of clients of which something waits
	ordered  int                   // requests that were accepted, see turn
}

// asker is who has given this replica requests of a client: the client or a member.
type asker struct{ by, client protocol.ID }

// waiting is how much waits by one asker.
type waiting struct{ requests, sizeBytes int }

// A Body is a request and why it is kept.
type Body struct {
	Request bft.Signed[bft.Request]
	Full    bool // the client wants the results from here
	Passed  bool // to the primary
	Since   int  // the tick in which it came, or the view began
	waiting bool // somebody asked this replica, and it is not committed
	asker   asker
	at      bft.Seq
}

func newRequests(st *Statements, c *bft.ReplicaConfig) Requests {
	return Requests{st: st, dir: c.Directory, maxBatch: c.MaxBatch, limits: c.Limits, bodies: map[bft.Digest]*Body{},
		batches: map[bft.Digest]Batch{}, known: map[bft.Digest]bft.Seq{}, waiting: map[asker]waiting{},
		turns: map[protocol.ID]*turn{}}
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
// more than a bounded number of them, and of their bytes. What members pass on counts for them: a
// client that has filled its own share here must not be able to have this replica replaced for what
// it said elsewhere.
func (q *Requests) submit(d bft.Digest, m *Submitted, tick int, from protocol.ID) (fresh, ok bool) {
	own := from == m.Request.Body().Client
	asker := asker{from, m.Request.Body().Client}
	x := q.bodies[d]
	if x == nil || !x.waiting {
		w := q.waiting[asker]
		w.requests++
		w.sizeBytes += m.Request.Body().Bytes()
		if w.requests > maxWaitingOfClient || w.sizeBytes > waitingBatches*q.limits.Batch {
			return false, false
		}
		if x == nil {
			x = &Body{Request: m.Request}
			q.bodies[d] = x
		}
		x.waiting, x.asker, x.Since = true, asker, tick
		q.waiting[asker] = w
		t := q.turns[asker.client]
		if t == nil {
			t = &turn{mark: q.ordered}
			q.turns[asker.client] = t
		}
		t.waiting++
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
		w := q.waiting[b.asker]
		if q.waiting[b.asker] = (waiting{w.requests - 1, w.sizeBytes - b.Request.Body().Bytes()}); w.requests == 1 {
			delete(q.waiting, b.asker)
		}
		if t := q.turns[b.asker.client]; t.waiting > 1 {
			t.waiting--
		} else {
			delete(q.turns, b.asker.client)
		}
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

// TakeRequest keeps a request if a batch has it that is here, and reports whether it did not
// before.
func (q *Requests) TakeRequest(m *bft.Signed[bft.Request], of bft.Digest) (fresh bool) {
	if !q.dir.From(m) || !m.Body().Lawful(q.limits) {
		return false
	}
	d := q.st.DigestOfRequest(m.Body())
	for _, e := range q.batches[of].Entries {
		if e.Request == d && q.bodies[d] == nil && q.sizeBytes(of)+m.Body().Bytes() <= q.limits.Batch {
			q.bodies[d] = &Body{Request: *m}
			fresh = true
		}
	}
	return fresh
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

// Of returns the requests of a batch that are here, if not all then some that are small.
func (q *Requests) Of(batch bft.Digest, all bool) (out []bft.Signed[bft.Request]) {
	room := inlineBytes
	for _, e := range q.batches[batch].Entries {
		b := q.bodies[e.Request]
		if b == nil {
			continue
		}
		if n := b.Request.Body().Bytes(); all || n <= smallBytes && n <= room {
			room -= n
			out = append(out, b.Request)
		}
	}
	return out
}

// Acceptable reports whether all of a batch is here, and it is no larger than an honest primary
// makes it.
func (q *Requests) Acceptable(batch bft.Digest) bool {
	return q.Lacking(batch).None() && q.sizeBytes(batch) <= q.limits.Batch
}

// sizeBytes is what the requests of a batch have that are here.
func (q *Requests) sizeBytes(batch bft.Digest) (n int) {
	for _, e := range q.batches[batch].Entries {
		if b := q.bodies[e.Request]; b != nil {
			n += b.Request.Body().Bytes()
		}
	}
	return n
}

// Answer returns what is here of what a member wants, as far as it goes into a message, and about
// how much that is: the member asks again for the rest.
func (q *Requests) Answer(m Wanted) (out Bodies, sizeBytes int) {
	room := answerBytes
	for _, d := range m.Batches[:min(len(m.Batches), MaxResent)] {
		if b, ok := q.batches[d]; ok && room > 0 {
			out.Batches = append(out.Batches, b)
			out.Requests = append(out.Requests, q.Of(d, false)...)
			room -= inlineBytes + len(b.Entries)*entryBytes
		}
	}
	for _, d := range m.Requests[:min(len(m.Requests), q.maxBatch)] {
		if b := q.bodies[d]; b != nil && room > 0 {
			out.Requests = append(out.Requests, b.Request)
			room -= b.Request.Body().Bytes() + entryBytes
		}
	}
	return out, answerBytes - room
}

// TakeBodies takes what a place needs from an answer, and asks who gave it for what did not go into
// that.
func (r *Replica) TakeBodies(env *protocol.Env[bft.Message], from protocol.ID, m Bodies, want bft.Digest, at bft.Seq) {
	q, fresh := &r.Requests, false
	for _, b := range m.Batches {
		q.TakeBatch(b, want)
	}
	for i := range m.Requests {
		fresh = q.TakeRequest(&m.Requests[i], want) || fresh
	}
	q.Known(want, at)
	if rest := q.Lacking(want); fresh && !rest.None() {
		env.Send(from, rest)
	}
}

// oldest returns the request that waits longest of those that can be executed, nil if there is
// none. A client can say something else to every replica under one number: when one of it is
// executed the primary owes nobody the rest.
func (q *Requests) oldest(base keyspace.Reader) *Body {
	for len(q.arrivals) > 0 {
		x := q.bodies[q.arrivals[0]]
		if q.owed(base, x) {
			return x
		}
		q.Settled(q.arrivals[0])
	}
	return nil
}

// owed reports whether a request that waits can be executed.
func (q *Requests) owed(base keyspace.Reader, x *Body) bool {
	m := x.Request.Body()
	return fresh(base, m) && sessions.Fits(base, m)
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
