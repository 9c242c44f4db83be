package domino

import (
	"math/bits"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// road is what a client knows of the way to a replica.
type road struct {
	meter *meter
	echo  echo // the newest
	// unanswered is how many probes were sent since it came.
	unanswered int
}

// silent reports whether the replica has probably failed: the probes of a round trip, and some
// more, were not answered. Its measurements stay in the window for longer.
func (c *client) silent(o *road) bool {
	return o.unanswered > 4+int(c.Tempo.Times(1)/c.opt.Probe)
}

// trip returns the usual round trip to a replica that answers.
func (c *client) trip(id protocol.ID, now time.Duration) (time.Duration, bool) {
	o := c.roads[id]
	if o == nil || c.silent(o) {
		return 0, false
	}
	return o.meter.usual(now)
}

// way is how commands are to be agreed on.
type way struct {
	fast    bool
	slot    smr.Slot      // if fast: at which they will have arrived
	arrival time.Duration // as predicted, without slack
	target  protocol.ID   // who proposes them, or answers
}

// record16 is how the last attempts of the fast path went, at most 16.
type record16 struct {
	count uint
	bits  uint16 // a one for each that failed, the newest lowest
}

func (r *record16) add(fast bool) {
	r.bits <<= 1
	if !fast {
		r.bits |= 1
	}
	r.count = min(r.count+1, 16)
}

// failing reports whether the fast path is rarely taken: the estimates are wrong, or there is too
// much to do.
//
// Eight attempts at least, or a client that begins with one bad estimate would leave the fast path
// at once.
func (r *record16) failing() bool { return r.count >= 8 && bits.OnesCount16(r.bits)*3 > int(r.count) }

// probe measures the way to all replicas, often only if there are calls.
func (c *client) probe(env *protocol.Env[smr.Message]) {
	for _, m := range c.members {
		c.roads[m.ID].unanswered++
		env.SendAhead(m.ID, probe{Sent: env.Now, Generation: c.generation})
	}
	c.active++
	next := c.opt.Probe
	if time.Duration(c.active)*c.opt.Probe > 2*c.opt.Window {
		next = max(next, c.opt.Window/4)
	}
	env.After(next, probeTimer{})
}

func (c *client) onEcho(env *protocol.Env[smr.Message], from protocol.ID, m echo) {
	o := c.roads[from]
	if o == nil {
		return
	}
	o.meter.add(env.Now, m)
	c.Tempo.Saw(env.Now, env.Now-m.Sent)
	o.echo, o.unanswered = m, 0
	if m.Leader != protocol.App {
		c.leader = m.Leader
	}
	if m.Generation > c.generation && len(m.Members) > 0 {
		c.generation = m.Generation
		c.regroup(m.Members)
		env.Send(protocol.App, smr.MembersChanged{Members: c.members})
	}
}

// regroup makes the members those whom the client asks.
func (c *client) regroup(members []smr.Member) {
	c.members = members
	for _, m := range members {
		if c.roads[m.ID] == nil {
			c.roads[m.ID] = &road{meter: newMeter(c.opt)}
		}
	}
}

// choose compares what DFP and DM usually take by the delays that were measured [Thesis §4.3.6, but
// for the median].
//
// The arrival that counts is the one at the last replica of the nearest supermajority: for it to
// vote, the slot must not have been passed when the command comes. What is later than that at the
// others costs nothing, as their votes are not needed. The same replicas answer the client
// directly, so the fast path takes the round trip to the last of them.
func (c *client) choose(now time.Duration) way {
	owner, slow, known := c.bestOwner(now, protocol.App)
	arrivals, trips := c.measured(now)
	q := quorum.Fast(len(c.members))
	if c.opt.Path == OnlyDM || c.pause > 0 || len(arrivals) < q {
		return way{target: c.chooseOwner(now, protocol.App)}
	}
	// A replica whose clock is far ahead has passed all slots that others take.
	spread := arrivals[q-1] - arrivals[quorum.Majority(len(c.members))-1]
	if spread > 2*c.cfg.RoundTrip || known && c.opt.Path == Measured && slow <= trips[q-1] {
		return way{target: owner}
	}
	arrival := now + arrivals[q-1]
	return way{fast: true, slot: slotAt(arrival + c.slack(now)), arrival: arrival, target: c.nearest(now, protocol.App)}
}

// slack returns what is added to the predicted arrival.
func (c *client) slack(now time.Duration) time.Duration {
	most, ok := time.Duration(0), false
	if c.opt.AdaptSlack {
		most, ok = c.slacks.Percentile(now, 1)
	}
	if ok {
		return max(most, c.opt.Slack)
	}
	return c.opt.Slack
}

// needed notes the slack with which a vote would have been in time. What it would take more than an
// eighth of a round trip for is left to the slow path.
//
// Slack is waited for by every command. A straggler costs only its own command a slow path.
func (c *client) needed(now, slack time.Duration) {
	if slack <= c.cfg.RoundTrip/8 {
		c.slacks.Add(now, slack)
	}
}

// measured returns the one-way delays to the replicas and the round trips, each in order.
func (c *client) measured(now time.Duration) (arrivals, trips []time.Duration) {
	for _, m := range c.members {
		one, ok := c.roads[m.ID].meter.arrival(now)
		if trip, answers := c.trip(m.ID, now); ok && answers {
			arrivals, trips = append(arrivals, one), append(trips, trip)
		}
	}
	slices.Sort(arrivals)
	slices.Sort(trips)
	return arrivals, trips
}

// chooseOwner returns who is to propose commands, but not the one to avoid if there is another.
func (c *client) chooseOwner(now time.Duration, avoid protocol.ID) protocol.ID {
	if id, _, ok := c.bestOwner(now, avoid); ok {
		return id
	}
	if id := c.nearest(now, avoid); id != protocol.App {
		return id
	}
	for range 2 {
		c.turn++
		if id := c.members[c.turn%len(c.members)].ID; id != avoid {
			return id
		}
	}
	return c.members[0].ID
}

// bestOwner returns the replica whose track takes the least time, and how long that is. Of several
// that take about as long, the nearest is the best: results come from it.
func (c *client) bestOwner(now time.Duration, avoid protocol.ID) (best protocol.ID, least time.Duration, ok bool) {
	var lowest time.Duration
	for _, m := range c.members {
		if m.ID == avoid && len(c.members) > 1 {
			continue
		}
		d, known := c.throughOwner(now, m.ID)
		if !known {
			continue
		}
		trip, _ := c.trip(m.ID, now)
		if cost := d + trip/8; !ok || cost < lowest {
			best, least, lowest, ok = m.ID, d, cost, true
		}
	}
	return best, least, ok
}

// throughOwner returns how long it takes to have a command agreed on in a replica's track: the way
// to it, its round trip to a majority, the way back. With Direct, the majority's answers come
// straight.
func (c *client) throughOwner(now time.Duration, id protocol.ID) (time.Duration, bool) {
	to, ok := c.trip(id, now)
	if !ok {
		return 0, false
	}
	paths := []time.Duration{to}
	for _, d := range c.roads[id].echo.Delays {
		back, ok := c.trip(d.ID, now)
		switch {
		case d.ID == id || !ok:
		case c.opt.Direct:
			paths = append(paths, (to+d.Round+back)/2)
		default:
			paths = append(paths, to+d.Round)
		}
	}
	if slices.Sort(paths); len(paths) < quorum.Majority(len(c.members)) {
		return 0, false
	}
	return paths[quorum.Majority(len(c.members))-1], true
}

// nearest returns the replica with the shortest round trip, but not the one to avoid if there is
// another; without measurements the one that was configured.
func (c *client) nearest(now time.Duration, avoid protocol.ID) protocol.ID {
	best, least := protocol.App, time.Duration(0)
	for _, m := range c.members {
		if m.ID == avoid && len(c.members) > 1 {
			continue
		}
		if d, ok := c.trip(m.ID, now); ok && (best == protocol.App || d < least) {
			best, least = m.ID, d
		}
	}
	if best == protocol.App && c.cfg.Nearest != avoid {
		return c.cfg.Nearest
	}
	return best
}
