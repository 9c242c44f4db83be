package carousel

import (
	"math"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Reads of the nearest members as of closed timestamps: see DESIGN.md, "Stale reads".

// nearby is what an agent knows of partitions' members, so that it can take a timestamp which the
// nearest ones have closed.
type nearby struct {
	members map[protocol.ID]nearMember
	used    time.Duration // when somebody wanted to read so last
	asks    bool          // it asks members how far they are
}

// nearMember is what an agent knows of one.
type nearMember struct {
	closed clock.Stamp
	asked  time.Duration // when it was asked first since it has answered last; 0: it has answered
}

// closedTimer is when an agent asks members how far they have closed.
type closedTimer struct{}

// An agent asks members how far they have closed so often in a round trip, as long as somebody
// reads, and leaders are told in that many round trips that somebody does.
const (
	asksPerTrip = 2
	wantedEvery = 8
)

// beginStale begins a view that may be of a closed timestamp; false: it is to be read otherwise, as
// no member near is known to have closed one that is recent enough, or nobody can tell how old
// something is by a clock that is off.
func (a *agent) beginStale(env *protocol.Env[store.Message], c *call) bool {
	a.near.used = env.Now
	knows := a.near.asks // else what it has heard is of long ago
	if !a.near.asks {
		a.near.asks = true
		a.askClosed(env)
	}
	v, m := c.view, c.declared
	at := clock.Stamp(min(m.At, maxStamp))
	if v.fixed = m.At > 0; !v.fixed {
		if at = a.staleAt(env, *m); !knows || at == 0 || a.clocks.off() {
			return false
		}
	}
	v.stage, v.at = byClosed, at
	a.waitForAll(c)
	return true
}

// staleAt returns as of when a transaction reads that may see what is old: the newest timestamp
// that the nearest members of all partitions have closed, as far as is known, of those that have
// closed any which is not too old, or from before what its session has seen. 0: none has.
func (a *agent) staleAt(env *protocol.Env[store.Message], m store.DeclareRequest) clock.Stamp {
	oldest := max(clock.Stamp(min(m.NotBefore, maxStamp)), clock.Stamp(env.Now-m.MaxAge), 1)
	newest := clock.Stamp(math.MaxInt64)
	for shard := range a.partitions() {
		if id, ok := a.nearest(env, shard); ok && a.near.members[id].closed >= oldest {
			newest = min(newest, a.near.members[id].closed)
		}
	}
	if newest == math.MaxInt64 {
		return 0
	}
	return newest
}

// partitions returns how many partitions have keys.
func (a *agent) partitions() uint32 { return uint32(len(a.where.leads) - a.cfg.Layout.Keyless) }

// nearest returns the nearest member of a partition that is not silent; ok is false if all are.
func (a *agent) nearest(env *protocol.Env[store.Message], shard uint32) (id protocol.ID, ok bool) {
	var best time.Duration
	for _, m := range a.where.members[shard] {
		asked := a.near.members[m].asked
		if silent := asked > 0 && env.Now-asked > a.cfg.RoundTrip; silent {
			continue
		}
		if d := a.distance(m); !ok || d < best {
			id, best, ok = m, d, true
		}
	}
	return id, ok
}

// distance is how far a server is, as far as is known.
func (a *agent) distance(id protocol.ID) time.Duration {
	site := a.places[id].Site
	if site == a.site {
		return 0
	}
	if o, ok := a.clocks.seen[a.cfg.Layout.Sites[site].Coordinators[0]]; ok {
		return o.within
	}
	return math.MaxInt64
}

// askClosed asks the nearest members how far they have closed, and those that would be nearer and
// are silent; and so on as long as somebody reads.
func (a *agent) askClosed(env *protocol.Env[store.Message]) {
	if env.Now-a.near.used > closesFor*a.cfg.RoundTrip {
		a.near.asks = false
		return
	}
	for shard := range a.partitions() {
		nearest, ok := a.nearest(env, shard)
		for _, m := range a.where.members[shard] {
			if !ok || a.distance(m) <= a.distance(nearest) {
				a.toMember(env, m, closedRequest{})
			}
		}
	}
	env.After(a.cfg.RoundTrip/asksPerTrip, closedTimer{})
}

// toMember asks a member for what it has closed.
func (a *agent) toMember(env *protocol.Env[store.Message], to protocol.ID, m closedRequest) {
	n := a.near.members[to]
	if n.asked == 0 {
		n.asked = max(env.Now, 1)
		a.near.members[to] = n
	}
	env.Send(to, m)
}

// onClosedReply takes how far a member has closed and, of one that was asked to read, what it has.
func (a *agent) onClosedReply(env *protocol.Env[store.Message], from protocol.ID, m closedReply) {
	if !a.where.isMember(m.Shard, from) || m.Closed > maxStamp {
		return
	}
	a.near.members[from] = nearMember{closed: max(a.near.members[from].closed, m.Closed)}
	c := a.calls[m.ID]
	if c == nil || c.view == nil || c.view.stage != byClosed || m.At != c.view.at || !c.left[m.Shard] {
		return
	}
	keys := a.readsOf(c.view, m.Shard)
	if m.Reason != store.NoReason || len(m.Values) != len(keys) {
		a.leaveClosed(env, c)
		a.ask(env, c, a.leaders)
		return
	}
	a.keep(c, from, keys, m.Values)
	if len(c.left) == 0 {
		a.viewed(env, c)
	}
}

// leaveClosed has leaders read what the nearest members cannot: as of the present or, if the
// transaction has read before, as of the same timestamp.
func (a *agent) leaveClosed(env *protocol.Env[store.Message], c *call) {
	if c.view.fixed {
		c.view.stage = bySnapshot
		return
	}
	a.beginView(env, c)
}

// refuseView ends a view that cannot be as of the timestamp at which its transaction has begun.
func (a *agent) refuseView(env *protocol.Env[store.Message], c *call) {
	for _, to := range c.clients {
		env.Send(to, store.DeclareReply{ID: c.id})
	}
	a.end(env, c, store.Decided{ID: c.id, Verdict: store.Aborted})
}

// onClosed answers an agent that wants to read as of a timestamp, whoever leads: if that is closed
// here, nothing will be written at or below it any more, and all that was is there.
func (s *server) onClosed(env *protocol.Env[store.Message], from protocol.ID, m closedRequest) {
	if len(m.Reads) > 0 && !s.validReads(m.Reads) || m.At > maxStamp {
		return
	}
	s.askClosed(env, 0)
	out := closedReply{ID: m.ID, Shard: s.self, At: m.At, Closed: s.closedAt(env)}
	out.Values, out.Reason = s.valuesClosed(env, m)
	env.Send(from, out)
}

// valuesClosed returns what was there as of a timestamp, or why this member does not say.
func (s *server) valuesClosed(env *protocol.Env[store.Message], m closedRequest) (out []store.Value, why store.Reason) {
	switch {
	case m.At > s.closedAt(env):
		return nil, store.Locked
	case uint64(m.At) < s.state.sure:
		return nil, store.StaleRead // what a session takes for its write may be later
	}
	state := s.group.State(env)
	for _, r := range m.Reads {
		v, err := s.state.values.Get(state, r.Key, m.At)
		if err != nil {
			return nil, store.Old
		}
		out = append(out, v)
	}
	return out, store.NoReason
}
