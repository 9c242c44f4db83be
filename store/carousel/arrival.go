package carousel

import (
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// Order by arrival [Carousel §6.1]: see DESIGN.md, "Order by arrival". Agents say when a request to
// prepare should have arrived everywhere, and servers hold it until then.

// delays are what an agent measures of the ways to servers, while it needs to know.
type delays struct {
	to   map[protocol.ID]*clock.Delay
	used time.Duration // when a transaction wanted to know last
	asks bool
}

// delayTimer is when an agent asks servers for their times.
type delayTimer struct{}

// An agent asks once in a round trip, or in leastDelayEvery if that is longer, and goes by the
// answers of delayWindow times as long. It goes on for so long after the last transaction.
const (
	leastDelayEvery = 20 * time.Millisecond
	delayWindow     = 32
)

func newDelays() delays { return delays{to: map[protocol.ID]*clock.Delay{}} }

// delayEvery is how often an agent asks.
func (a *agent) delayEvery() time.Duration { return max(a.cfg.RoundTrip, leastDelayEvery) }

// arrives returns when requests that are sent now, all at once, should have arrived everywhere that
// they are sent to, by the clocks there, and for how long those that are sent to leaders are held
// at most. 0: they are handled as they arrive, since nothing is known of the ways yet.
//
// A clock that is ahead lets all others hold for longer. So no way counts for longer than any is,
// forth and back, with clocks that are right.
func (a *agent) arrives(env *protocol.Env[store.Message], parts []callPart) (at, held time.Duration) {
	if !a.cfg.ByArrival || len(parts) == 0 {
		return 0, 0
	}
	a.wantDelays(env)
	way := func(id protocol.ID) (time.Duration, bool) {
		d := a.delays.to[id]
		if d == nil {
			return 0, false
		}
		to, ok := d.OneWay(env.Now)
		return min(to, a.cfg.RoundTrip+a.cfg.MaxOffset), ok
	}
	var longest time.Duration
	nearest, known := time.Duration(math.MaxInt64), false // nearest leader
	for _, p := range parts {
		lead := a.where.leader(p.ref.Shard)
		for _, id := range a.where.members[p.ref.Shard] {
			if !a.fast && id != lead {
				continue
			}
			to, ok := way(id)
			if !ok {
				continue // it is away, perhaps
			}
			if longest = max(longest, to); !known {
				longest, known = to, true
			}
			if id == lead {
				nearest = min(nearest, to)
			}
		}
	}
	if !known || env.Now+longest <= 0 {
		return 0, 0
	}
	return env.Now + longest, max(longest-nearest, 0)
}

// wantDelays has the agent measure, from now on for a while.
func (a *agent) wantDelays(env *protocol.Env[store.Message]) {
	a.delays.used = env.Now
	if !a.delays.asks {
		a.delays.asks = true
		a.askDelays(env)
	}
}

func (a *agent) askDelays(env *protocol.Env[store.Message]) {
	every := a.delayEvery()
	if idle := env.Now - a.delays.used; idle < 0 || idle > delayWindow*every {
		a.delays = newDelays()
		return
	}
	for k := range a.partitions() {
		for _, id := range a.where.members[k] {
			env.SendAhead(id, timeRequest{env.Now})
		}
	}
	env.After(every, delayTimer{})
}

// tookDelay takes a server's time.
func (a *agent) tookDelay(env *protocol.Env[store.Message], from protocol.ID, m timeReply) {
	if _, ok := a.places[from]; !ok || !a.delays.asks {
		return
	}
	d := a.delays.to[from]
	if d == nil {
		var err error
		if d, err = clock.NewDelay(clock.DelayConfig{Window: delayWindow * a.delayEvery()}); err != nil {
			return // it has no other fields
		}
		a.delays.to[from] = d
	}
	d.Add(clock.Probe{Sent: m.Sent, Peer: m.Now, Received: env.Now})
}

// ordering is what a server holds.
type ordering struct {
	kit.Arrivals[heldRequest]
	// writes are the keys that are written by what is held, and by how many.
	writes map[store.Key]int
}

type heldRequest struct {
	from protocol.ID
	m    prepareRequest
}

func newOrdering(cfg store.Config) ordering {
	return ordering{kit.NewArrivals[heldRequest](cfg.RoundTrip, cfg.MaxWaiting), map[store.Key]int{}}
}

// onPrepare takes a request to prepare a part. One with a time is handled when that has come. If
// nobody is known to change what it reads before, it is answered with that at once, and so is who
// takes this server for the leader.
func (s *server) onPrepare(env *protocol.Env[store.Message], from protocol.ID, m prepareRequest) {
	if !s.valid(m) {
		return
	}
	if m.Arrives == 0 || s.clocks.off() {
		s.handlePrepare(env, from, m)
		return
	}
	if m.Leader && s.elsewhere(env, from, m.Part.ID) {
		m.Leader = false
	}
	if m.Values && !slices.ContainsFunc(m.Reads, s.changes) {
		s.sendValues(env, from, m)
		m.Values = false
	}
	for _, k := range m.Writes {
		s.ordering.writes[k]++
	}
	s.inOrder(env, s.ordering.Take(env, kit.Arrival{At: m.Arrives, ID: m.Part.ID, Step: m.Part.Step},
		heldRequest{from, m}))
}

// changes reports whether somebody is known who is to write a key.
func (s *server) changes(key store.Key) bool {
	return s.ordering.writes[key] > 0 || s.state.locks.writes(key) || s.flyingLocks.writes(key) || s.list.locks.writes(key)
}

// inOrder handles requests whose time has come.
func (s *server) inOrder(env *protocol.Env[store.Message], due []heldRequest) {
	for _, h := range due {
		for _, k := range h.m.Writes {
			if s.ordering.writes[k]--; s.ordering.writes[k] <= 0 {
				delete(s.ordering.writes, k)
			}
		}
		s.handlePrepare(env, h.from, h.m)
	}
}
