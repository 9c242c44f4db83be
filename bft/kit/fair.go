package kit

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// lines are the requests that wait for a place at a primary: a line for each client, so that nobody
// waits for another one's, however many they are. Clients have their turns in a ring. A turn is
// worth a few operations, or bytes; who has taken more goes without for as many turns.
type lines struct {
	of     map[protocol.ID]*line
	ring   []protocol.ID // clients that have requests; the first has its turn
	queued map[bft.Digest]protocol.ID
}

type line struct {
	requests []bft.Digest
	credit   int
}

const (
	turnCost  = 8       // what a turn is worth
	costBytes = 8 << 10 // cost as much as one operation
)

// cost is what a request takes of its client's turns.
func cost(m *bft.Request) int { return len(m.Operations) + m.Bytes()/costBytes }

// add has a request wait in its client's line, at the end or at the front.
func (l *lines) add(client protocol.ID, d bft.Digest, front bool) {
	if l.of == nil {
		l.of, l.queued = map[protocol.ID]*line{}, map[bft.Digest]protocol.ID{}
	}
	q := l.of[client]
	if q == nil {
		q = &line{}
		l.of[client] = q
	}
	if _, ok := l.queued[d]; ok {
		if !front {
			return
		}
		q.requests = slices.DeleteFunc(q.requests, func(o bft.Digest) bool { return o == d })
	} else if l.queued[d] = client; len(q.requests) == 0 {
		l.ring = append(l.ring, client)
	}
	if front {
		q.requests = slices.Insert(q.requests, 0, d)
	} else {
		q.requests = append(q.requests, d)
	}
}

// next returns the request that is next, if any waits.
func (l *lines) next() (bft.Digest, bool) {
	for len(l.ring) > 0 {
		q := l.of[l.ring[0]]
		if q.credit > 0 {
			return q.requests[0], true
		}
		q.credit += turnCost
		l.ring = append(l.ring[1:], l.ring[0])
	}
	return bft.Digest{}, false
}

// take removes the request that is next.
func (l *lines) take() {
	q := l.of[l.ring[0]]
	delete(l.queued, q.requests[0])
	if q.requests = q.requests[1:]; len(q.requests) == 0 {
		q.requests = nil
		l.ring = l.ring[1:]
	}
}

// charge takes what a request costs from its client's turns.
func (l *lines) charge(m *bft.Request) { l.of[m.Client].credit -= cost(m) }

// turn is how a primary treats a client of which something waits here.
type turn struct {
	waiting int // requests
	mark    int // Requests.ordered when the client last had its turn, or the primary was told of it
	told    bool
}

// mayOvertake is how many requests of others a primary may order while the oldest one of a client
// waits of which it knows. An honest one orders what is under way already, and what others' turns
// are worth while the client goes without for the largest request that there can be.
func (r *Replica) mayOvertake() int {
	return 16 * (r.Config.MaxBatch + (turnCost+1)*len(r.Dir.Clients)) << r.Doublings
}

// noteOrdered notes that a batch was accepted that is new in the view: its clients have had their
// turn.
func (q *Requests) noteOrdered(batch bft.Digest) {
	for _, e := range q.batches[batch].Entries {
		q.ordered++
		if b := q.bodies[e.Request]; b != nil {
			if t := q.turns[b.Request.Body().Client]; t != nil {
				t.mark, t.told = q.ordered, false
			}
		}
	}
}

// newTurns has all clients begin anew, with a primary that has done nothing yet.
func (q *Requests) newTurns() {
	for _, t := range q.turns { //pure:ok each by itself
		t.mark, t.told = q.ordered, false
	}
}

// unfair tells the primary of clients that others have overtaken, as it may not have heard from
// them, and reports whether it has had one of them wait nevertheless while it ordered more than it
// may.
func (r *Replica) unfair(env *protocol.Env[bft.Message]) bool {
	q, may := &r.Requests, r.mayOvertake()
	if r.Primary() {
		return false
	}
	for _, client := range slices.Sorted(maps.Keys(q.turns)) {
		t := q.turns[client]
		if q.ordered-t.mark <= may/2 || t.told && q.ordered-t.mark <= may {
			continue
		}
		x := q.oldestOf(client, r.Store.Committed())
		switch {
		case x == nil:
		case t.told:
			return true
		default:
			t.told, t.mark = true, q.ordered
			env.Send(r.Dir.Primary(r.View).ID, Submitted{Request: x.Request})
		}
	}
	return false
}

// oldestOf returns the request of a client that waits longest of those that can be executed, nil if
// there is none.
func (q *Requests) oldestOf(client protocol.ID, base keyspace.Reader) *Body {
	for _, d := range slices.Clone(q.arrivals) {
		x := q.bodies[d]
		if x.Request.Body().Client != client {
			continue
		}
		if q.owed(base, x) {
			return x
		}
		q.Settled(d)
	}
	return nil
}
