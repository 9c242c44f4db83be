package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// watch gives the view up if the primary keeps a request waiting for too long, or a new view for
// which a quorum waits does not begin.
func (r *replica) watch(env *protocol.Env[bft.Message]) {
	if !r.Active {
		if r.Tick-r.Since > r.Timeout() && r.changes.Gone(r.View) >= r.Dir.Quorum() {
			r.giveUp(env, r.View+1)
		}
		return
	}
	if r.Late(env) {
		r.giveUp(env, r.View+1)
	}
}

// giveUp ends the present view: nothing is accepted until the next one begins.
func (r *replica) giveUp(env *protocol.Env[bft.Message], v bft.View) {
	r.Leave(v)
	r.start = nil
	c := changeBody{View: v, Stable: r.Stable}
	for seq := r.Low() + 1; seq <= r.Low()+r.Window(); seq++ {
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
	own := r.st.changes.Sign(r.Config.Scheme, r.Config.Signer, c)
	r.own = &own
	r.Put(env, viewKey, viewRecord{r.View, false})
	r.Put(env, changeKey, viewChange{own})
	r.ToOthers(env, viewChange{own})
	for _, m := range r.Dir.Members {
		r.again[m.ID] = r.Tick + changeEvery
	}
	r.onChange(env, own)
}

// onChange notes that a member has given a view up. If so many have that one of them does not lie,
// this replica does as well; and if a quorum has, the next primary begins.
func (r *replica) onChange(env *protocol.Env[bft.Message], c bft.Signed[changeBody]) {
	b := c.Body()
	if b.View < r.View || b.View == r.View && r.Active || !lawfulChange(r.Dir, b, r.Window()) || !r.changes.Take(c) {
		return
	}
	r.OnStable(env, b.Stable)
	if v, ok := r.changes.Pulled(r.View); ok {
		r.giveUp(env, v)
		return
	}
	if r.changes.Gone(r.View) == r.Dir.Quorum() && !r.Active {
		r.Since = r.Tick // from now on the next primary is late
	}
	r.begin(env)
}

// begin begins the view that this replica leads, if a quorum has given up the one before.
func (r *replica) begin(env *protocol.Env[bft.Message]) {
	said := r.changes.For(r.View)
	if r.Active || !r.Primary() || len(said) < r.Dir.Quorum() {
		return
	}
	s := startBody{View: r.View, Changes: said[:r.Dir.Quorum()]}
	var changes []*changeBody
	for i := range s.Changes {
		changes = append(changes, s.Changes[i].Body())
	}
	_, orders := choose(r.View, changes)
	for _, o := range orders {
		s.Orders = append(s.Orders, r.st.orders.Sign(r.Config.Scheme, r.Config.Signer, o))
	}
	start := r.st.starts.Sign(r.Config.Scheme, r.Config.Signer, s)
	r.enter(env, start)
	r.ToOthers(env, newView{start})
}

// onNewView enters a view that begins as it must.
func (r *replica) onNewView(env *protocol.Env[bft.Message], s bft.Signed[startBody]) {
	v := s.Body().View
	if v < r.View || v == r.View && r.Active || !lawfulStart(r.Dir, &s, r.Window()) {
		return
	}
	r.enter(env, s)
}

// enter begins a view: all that may have been confirmed in an earlier one is proposed again.
func (r *replica) enter(env *protocol.Env[bft.Message], s bft.Signed[startBody]) {
	b := s.Body()
	for i := range b.Changes {
		r.OnStable(env, b.Changes[i].Body().Stable)
	}
	first := r.Low()
	if n := len(b.Orders); n > 0 {
		first = b.Orders[n-1].Body().Seq
	}
	r.Begin(b.View, first)
	r.swear(b)
	r.start = &s
	r.changes.Forget(r.View)
	r.Put(env, viewKey, viewRecord{r.View, true})
	r.Put(env, startKey, newView{s})
	for seq := min(r.Low(), r.Committed) + 1; seq <= r.Low()+r.Window(); seq++ {
		if p := r.places[seq]; p != nil {
			p.offer, p.accepted = nil, false
			clear(p.votes)
		}
	}
	r.offerAgain()
}

// offerAgain takes the orders of the new view as offers. Their batches may have to be fetched.
func (r *replica) offerAgain() {
	if r.start == nil {
		return
	}
	b := r.start.Body()
	for i := range b.Orders {
		if seq := b.Orders[i].Body().Seq; r.Within(seq) && r.place(seq).offer == nil {
			r.place(seq).offer = &b.Orders[i]
		}
	}
}
