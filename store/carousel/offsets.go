package carousel

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// clocks is what a node measures of the clocks of other sites: of one machine of each.
type clocks struct {
	peers []protocol.ID
	bound time.Duration
	// seen are how much each peer's clock is ahead.
	seen map[protocol.ID]offset
}

// offset is how much a clock is ahead, give or take: where in its round trip the answer was given
// is not known.
type offset struct{ ahead, within time.Duration }

// probeEvery is how often clocks are measured, in round trips.
const probeEvery = 4

// newClocks returns those of a node of a site.
func newClocks(cfg store.Config, site int) clocks {
	c := clocks{bound: cfg.MaxOffset, seen: map[protocol.ID]offset{}}
	for i, s := range cfg.Layout.Sites {
		if i != site {
			c.peers = append(c.peers, s.Coordinators[0])
		}
	}
	return c
}

// ask asks all peers for their times.
func (c *clocks) ask(env *protocol.Env[store.Message]) {
	for _, id := range c.peers {
		env.SendAhead(id, timeRequest{env.Now})
	}
}

// onTimeRequest answers one.
func onTimeRequest(env *protocol.Env[store.Message], from protocol.ID, m timeRequest) {
	env.SendAhead(from, timeReply{m.Sent, env.Now})
}

// took takes an answer. One that has come before it was asked for says that the own clock was set
// back, and nothing on others.
func (c *clocks) took(env *protocol.Env[store.Message], from protocol.ID, m timeReply) {
	for _, id := range c.peers {
		if trip := env.Now - m.Sent; id == from && trip >= 0 {
			c.seen[id] = offset{m.Now - m.Sent - trip/2, trip / 2}
		}
	}
}

// typical returns how far the own clock is ahead of those of other sites: of the one than which
// half of them are no nearer, if what is not known of them is in their favour. So the own clock is
// off if it is surely further away from that one than it may be. ok is false if none has answered.
func (c *clocks) typical() (o offset, ok bool) {
	var seen []offset
	for _, id := range c.peers {
		if o, ok := c.seen[id]; ok {
			seen = append(seen, offset{-o.ahead, o.within})
		}
	}
	if len(seen) == 0 {
		return o, false
	}
	surely := func(o offset) time.Duration { return o.ahead.Abs() - o.within }
	slices.SortStableFunc(seen, func(a, b offset) int { return cmp.Compare(surely(b), surely(a)) })
	return seen[len(seen)/2], true
}

// behind returns a site of whose clock the own one is surely behind by more than it may be, if it
// is behind most of those that have answered: so it is this one that is wrong. The site is the
// first that has what is asked for; NoSite: it is not behind, or there is none.
func (c *clocks) behind(by time.Duration, l store.Layout, has func(site int) bool) int {
	far, at := 0, store.NoSite
	for i, s := range l.Sites {
		o, ok := c.seen[s.Coordinators[0]]
		if !ok || o.ahead-o.within <= by {
			continue
		}
		if far++; at == store.NoSite && has(i) {
			at = i
		}
	}
	if far <= len(c.seen)/2 {
		return store.NoSite
	}
	return at
}

// status returns what is known of clocks, for people.
func (c *clocks) status() store.ClockStatus {
	o, _ := c.typical()
	return store.ClockStatus{Sites: len(c.seen), Ahead: o.ahead, Within: o.within, MaxOffset: c.bound, Off: c.off()}
}

// off reports whether the own clock is surely further away than it may be from most of the others
// that have answered: so it is this one that is wrong.
func (c *clocks) off() bool {
	far := 0
	for _, o := range c.seen { //pure:ok they are counted
		if o.ahead.Abs() > o.within+c.bound {
			far++
		}
	}
	return far > len(c.seen)/2
}
