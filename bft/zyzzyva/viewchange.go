package zyzzyva

import (
	"maps"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// watch gives the view up if a request waits for too long, or a new view for which a quorum waits
// does not begin.
func (r *replica) watch(env *protocol.Env[bft.Message]) {
	late := r.Active && r.Late(env) ||
		!r.Active && r.Tick-r.Since > r.Timeout() && r.changes.Gone(r.View) >= r.Dir.Quorum()
	if late {
		r.giveUp(env, r.View+1)
	}
}

// accuse gives a view up whose primary has signed what cannot be, and shows it to the others.
func (r *replica) accuse(env *protocol.Env[bft.Message], m misdeed) {
	if r.proven(m) {
		r.ToOthers(env, m)
		r.Caught++
		r.giveUp(env, r.View+1)
	}
}

// proven reports whether orders of the present view prove that its primary lies.
func (r *replica) proven(m misdeed) bool {
	key := r.Dir.Primary(r.View).Key
	one, other := m.One.Body(), m.Other.Body()
	return r.Active && one.View == r.View && m.One.By(key) && m.Other.By(key) && contradict(one, other)
}

// onMisdeed believes nobody: what is signed speaks for itself.
func (r *replica) onMisdeed(env *protocol.Env[bft.Message], m misdeed) {
	if r.proven(m) {
		r.Caught++
		r.giveUp(env, r.View+1)
	}
}

// giveUp ends the present view: nothing is accepted until another one begins.
func (r *replica) giveUp(env *protocol.Env[bft.Message], v bft.View) {
	r.Leave(v)
	r.next = nil
	clear(r.offers)
	clear(r.confirms)
	c := changeBody{View: v, Stable: r.Stable, LogView: r.logView, Proof: r.held}
	for seq := r.Low() + 1; seq <= r.last && r.places[seq] != nil; seq++ {
		c.Batches = append(c.Batches, r.places[seq].batch)
	}
	own := r.st.changes.Sign(r.Config.Scheme, r.Config.Signer, c)
	r.own = &own
	r.keepView(env)
	r.Put(env, changeKey, viewChange{own})
	r.ToOthers(env, viewChange{own})
	r.onChange(env, own)
}

// keepView has the view on disk.
func (r *replica) keepView(env *protocol.Env[bft.Message]) {
	r.entered.View, r.entered.Active = r.View, r.Active
	r.Put(env, viewKey, r.entered)
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
	said := r.changes.For(r.View)
	if r.Active || r.next != nil || !r.Primary() || len(said) < r.Dir.Quorum() {
		return
	}
	s := startBody{View: r.View, Changes: said[:r.Dir.Quorum()]}
	m := newView{Start: r.st.starts.Sign(r.Config.Scheme, r.Config.Signer, s)}
	r.ToOthers(env, m)
	r.onNewView(env, m)
}

// onNewView takes the beginning of a view. It begins when a quorum has confirmed it: so nobody has
// a log of a view of which it cannot show that it follows from those before.
func (r *replica) onNewView(env *protocol.Env[bft.Message], m newView) {
	v := m.Start.Body().View
	if v < r.View || v == r.View && r.Active {
		return
	}
	b, ok := lawfulStart(r.Dir, &m.Start, r.Window())
	switch {
	case !ok:
	case m.Proof.Body() == b.stamp && lawfulProof(r.Dir, &m.Proof):
		r.enter(env, m, b)
	case v > r.View:
		r.giveUp(env, v)
		fallthrough
	default:
		if r.next == nil && r.View == v {
			r.Put(env, nextKey, newView{Start: m.Start})
			r.confirm(env, newView{Start: m.Start})
		}
	}
}

// confirm stamps the beginning of a view, the only one that this replica has confirmed of it. It
// keeps its log until the view begins.
func (r *replica) confirm(env *protocol.Env[bft.Message], m newView) {
	b, ok := lawfulStart(r.Dir, &m.Start, r.Window())
	if !ok {
		return
	}
	r.next = &m
	s := r.st.stamps.Sign(r.Config.Scheme, r.Config.Signer, b.stamp)
	r.confirms[r.Config.ID] = s
	r.ToOthers(env, stamped{s})
	r.confirmed(env)
}

// confirmed begins a view that a quorum has confirmed.
func (r *replica) confirmed(env *protocol.Env[bft.Message]) {
	own, ok := r.confirms[r.Config.ID]
	if !ok || r.next == nil {
		return
	}
	proof, ok := r.agreed(*own.Body(), r.confirms)
	b, lawful := lawfulStart(r.Dir, &r.next.Start, r.Window())
	if ok && lawful {
		r.enter(env, newView{r.next.Start, proof}, b)
	}
}

// enter begins a view: its log is what the view begins with.
func (r *replica) enter(env *protocol.Env[bft.Message], m newView, b beginning) {
	v := m.Start.Body().View
	if r.OnStable(env, b.stable); v < r.View {
		return // it had something else of what is stable, and the others are further
	}
	low := b.stable.Body()
	r.Begin(v, low.Seq+bft.Seq(len(b.batches)))
	r.begun(viewRecord{View: v, Active: true, LogView: v, From: low.Seq, Root: low.History, Batches: b.batches,
		Proof: m.Proof})
	r.cut()
	r.concluded = r.Committed // what others have said is committed need not be in this log
	r.start, r.next, r.own = &m, nil, nil
	r.changes.Forget(v)
	clear(r.offers)
	clear(r.confirms)
	maps.DeleteFunc(r.stamps, func(bft.Seq, map[protocol.ID]bft.Signed[stampBody]) bool { return true })
	r.keepView(env)
	r.Put(env, startKey, m)
	r.ClampReads(r.last)
}
