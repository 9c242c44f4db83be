package pbft

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// timeout is how many ticks a request may wait, and a new view be awaited.
func (r *replica) timeout() int { return 8 << r.doublings }

// watch gives the view up if the primary keeps a request waiting for too long, or a new view for
// which a quorum waits does not begin.
func (r *replica) watch(env *protocol.Env[bft.Message]) {
	if !r.active {
		if r.tick-r.since > r.timeout() && r.gone(r.view) >= r.dir.Quorum() {
			r.giveUp(env, r.view+1)
		}
		return
	}
	if r.fetch != nil || r.low() > r.committed {
		return
	}
	oldest := r.oldest()
	if oldest == nil {
		return
	}
	r.pass(env)
	if oldest.passed && r.tick-oldest.since > r.timeout() {
		r.giveUp(env, r.view+1)
	}
}

// pass gives the primary the requests that have waited for long. It may not have had them from
// their client, so only from now on is it late.
func (r *replica) pass(env *protocol.Env[bft.Message]) {
	for _, d := range r.arrivals {
		x := r.bodies[d]
		if x.passed {
			continue
		}
		if r.tick-x.since <= r.timeout()/2 {
			return // those behind came later
		}
		x.passed, x.since = true, r.tick
		if !r.primary() {
			env.Send(r.dir.Primary(r.view).ID, submitted{Request: x.request})
		}
	}
}

// oldest returns the request that waits longest of those that can be executed, nil if there is
// none. A client can say something else to every replica under one number: when one of it is
// executed the primary owes nobody the rest.
func (r *replica) oldest() *body {
	for len(r.arrivals) > 0 {
		x := r.bodies[r.arrivals[0]]
		m := x.request.Body()
		if base := r.state.Committed(); fresh(base, m) && sessions.Fits(base, m) {
			return x
		}
		r.settled(r.arrivals[0])
	}
	return nil
}

// supporters returns how many members ask for a view.
func (r *replica) supporters(v bft.View) (n int) {
	for _, m := range r.dir.Members {
		if c, ok := r.changes[m.ID]; ok && c.Body().View == v {
			n++
		}
	}
	return n
}

// gone returns how many members have given up all views below one. Some may be further: they do
// not wait for that view any more, and nobody is to wait for them.
func (r *replica) gone(v bft.View) (n int) {
	for _, m := range r.dir.Members {
		if c, ok := r.changes[m.ID]; ok && c.Body().View >= v {
			n++
		}
	}
	return n
}

// giveUp ends the present view: nothing is accepted until the next one begins.
func (r *replica) giveUp(env *protocol.Env[bft.Message], v bft.View) {
	if r.fetch == nil {
		r.dropLayers()
	}
	if !r.active {
		r.doublings = min(r.doublings+1, maxTimeoutDoubling)
	}
	r.lead = leading{}
	r.view, r.active, r.since, r.start = v, false, r.tick, nil
	c := changeBody{View: v, Stable: r.stable}
	for seq := r.low() + 1; seq <= r.low()+r.window(); seq++ {
		p := r.places[seq]
		if p == nil {
			continue
		}
		p.offer, p.accepted = nil, false
		clear(p.votes)
		if p.prepared != nil {
			c.Prepared = append(c.Prepared, *p.prepared)
		}
	}
	own := r.st.changes.Sign(r.cfg.Scheme, r.cfg.Signer, c)
	r.own = &own
	r.put(env, viewKey, viewRecord{r.view, false})
	r.put(env, changeKey, viewChange{own})
	r.toOthers(env, viewChange{own})
	for _, id := range r.others {
		r.again[id] = r.tick + changeEvery
	}
	r.onChange(env, own)
}

// onChange notes that a member has given a view up. If so many have that one of them does not lie,
// this replica does as well; and if a quorum has, the next primary begins.
func (r *replica) onChange(env *protocol.Env[bft.Message], c bft.Signed[changeBody]) {
	b := c.Body()
	i := slices.IndexFunc(r.dir.Members, func(m bft.Party) bool { return c.By(m.Key) })
	if i < 0 || b.View < r.view || b.View == r.view && r.active || !lawfulChange(r.dir, b, r.window()) {
		return
	}
	id := r.dir.Members[i].ID
	if was, ok := r.changes[id]; ok && was.Body().View >= b.View {
		return
	}
	r.changes[id] = c
	r.onStable(env, b.Stable)
	var ahead []bft.View
	for _, m := range r.dir.Members {
		if c, ok := r.changes[m.ID]; ok && c.Body().View > r.view {
			ahead = append(ahead, c.Body().View)
		}
	}
	if len(ahead) >= r.dir.Witness() {
		r.giveUp(env, slices.Min(ahead))
		return
	}
	if r.gone(r.view) == r.dir.Quorum() && !r.active {
		r.since = r.tick // from now on the next primary is late
	}
	r.begin(env)
}

// begin begins the view that this replica leads, if a quorum has given up the one before.
func (r *replica) begin(env *protocol.Env[bft.Message]) {
	if r.active || !r.primary() || r.supporters(r.view) < r.dir.Quorum() {
		return
	}
	s := startBody{View: r.view}
	var changes []*changeBody
	for _, m := range r.dir.Members {
		c, ok := r.changes[m.ID]
		if ok && c.Body().View == r.view && len(changes) < r.dir.Quorum() {
			s.Changes = append(s.Changes, c)
			changes = append(changes, c.Body())
		}
	}
	_, orders := choose(r.view, changes)
	for _, o := range orders {
		s.Orders = append(s.Orders, r.st.orders.Sign(r.cfg.Scheme, r.cfg.Signer, o))
	}
	start := r.st.starts.Sign(r.cfg.Scheme, r.cfg.Signer, s)
	r.enter(env, start)
	r.toOthers(env, newView{start})
}

// onNewView enters a view that begins as it must.
func (r *replica) onNewView(env *protocol.Env[bft.Message], s bft.Signed[startBody]) {
	v := s.Body().View
	if v < r.view || v == r.view && r.active || !lawfulStart(r.dir, &s, r.window()) {
		return
	}
	r.enter(env, s)
}

// enter begins a view: all that may have been confirmed in an earlier one is proposed again.
func (r *replica) enter(env *protocol.Env[bft.Message], s bft.Signed[startBody]) {
	if r.fetch == nil {
		r.dropLayers()
	}
	b := s.Body()
	for i := range b.Changes {
		r.onStable(env, b.Changes[i].Body().Stable)
	}
	r.view, r.active, r.since, r.start = b.View, true, r.tick, &s
	r.lead = leading{}
	maps.DeleteFunc(r.changes, func(_ protocol.ID, c bft.Signed[changeBody]) bool { return c.Body().View <= r.view })
	r.put(env, viewKey, viewRecord{r.view, true})
	r.put(env, startKey, newView{s})
	for seq := min(r.low(), r.committed) + 1; seq <= r.low()+r.window(); seq++ {
		if p := r.places[seq]; p != nil {
			p.offer, p.accepted = nil, false
			clear(p.votes)
		}
	}
	r.offerAgain()
	for _, d := range r.arrivals {
		x := r.bodies[d]
		x.since, x.passed = r.tick, false
		r.enqueue(d)
	}
	r.spoke = r.tick - maxIdleTicks // so that what is missing is asked for soon
}

// offerAgain takes the orders of the new view as offers. Their batches may have to be fetched.
func (r *replica) offerAgain() {
	if r.start == nil {
		return
	}
	b := r.start.Body()
	for i := range b.Orders {
		if seq := b.Orders[i].Body().Seq; r.within(seq) && r.place(seq).offer == nil {
			r.place(seq).offer = &b.Orders[i]
		}
	}
}
