package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// Keys of a replica's disk, beside those of the kit.
const (
	viewKey   = "p/view"
	changeKey = "p/change"
	startKey  = "p/start"
)

// Start is part of protocol.Node.
func (r *replica) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	if err := r.Remember(env, viewKey, changeKey, startKey); err != nil {
		env.Send(protocol.App, bft.Refused{Reason: err.Error()})
		return
	}
	defer r.Store.Leave()
	r.changes = r.noChanges()
	r.remember(env)
	if len(log) == 0 {
		r.trust()
	}
	r.offerAgain()
	for _, rec := range log {
		r.replay(rec)
	}
	r.Resume(env)
	if r.Active && r.Primary() && len(log) > 0 {
		// What it told clients early before the crash may not be what it would propose now.
		r.giveUp(env, r.View+1)
	}
}

// remember reads what is kept of views.
func (r *replica) remember(env *protocol.Env[bft.Message]) {
	if m, ok := kit.Get[viewRecord](&r.Replica, env, viewKey); ok && m.View.Epoch() == r.Dir.Epoch {
		r.View, r.Active = m.View, m.Active
	}
	if m, ok := kit.Get[viewChange](&r.Replica, env, changeKey); ok && !r.Active && m.Change.Body().View == r.View {
		r.own = &m.Change
		r.changes.Take(m.Change)
	}
	if m, ok := kit.Get[newView](&r.Replica, env, startKey); ok && m.Start.Body().View == r.View && r.Active {
		r.start = &m.Start
	}
}

// replay takes a record of the log: what was accepted and prepared above what is stable.
func (r *replica) replay(rec protocol.Record[bft.Message]) {
	switch m := rec.Msg.(type) {
	case proposal:
		o := m.Order.Body()
		if !r.Within(o.Seq) || o.View.Epoch() != r.Dir.Epoch {
			return
		}
		r.Logged(o.Seq, rec.Index)
		r.Requests.TakeBatch(m.Batch, o.Batch)
		r.Requests.Known(o.Batch, o.Seq)
		for i := range m.Requests {
			r.Requests.Restore(&m.Requests[i], o.Seq)
		}
		if p := r.place(o.Seq); o.View == r.View && r.Active {
			p.offer, p.accepted = &m.Order, true
			if !r.Primary() {
				p.votes[r.Config.ID] = r.st.votes.Sign(r.Config.Scheme, r.Config.Signer, voteBody(*o))
			}
		}
	case preparedRecord:
		o := *m.Prepared.Order.Body()
		if r.Within(o.Seq) && o.View.Epoch() == r.Dir.Epoch {
			p := r.place(o.Seq)
			p.prepared = &m.Prepared
			p.commits[r.Config.ID] = o
		}
	}
}

// onStatus sends a member what it lacks.
func (r *replica) onStatus(env *protocol.Env[bft.Message], from protocol.ID, m status) {
	if r.OtherEpoch(env, from, m.View) {
		return
	}
	switch {
	case r.start != nil && r.Active && (m.View < r.View || m.View == r.View && !m.Active):
		env.Send(from, newView{*r.start})
	case !r.Active && r.own != nil && (m.View < r.View || m.View == r.View && !m.Active) && r.Tick >= r.again[from]:
		r.again[from] = r.Tick + changeEvery
		env.Send(from, viewChange{*r.own})
	}
	r.SayCheckpoints(env, from, m.Stable)
	low := max(m.Committed, m.Stable, r.Low())
	for seq := low + 1; seq <= low+kit.MaxResent; seq++ {
		if p := r.places[seq]; p != nil && r.Affords(from, kit.PlaceBytes) {
			r.resend(env, from, m, p)
		}
	}
}

// resend says again what this replica has said of a place.
func (r *replica) resend(env *protocol.Env[bft.Message], to protocol.ID, m status, p *place) {
	if r.Active && m.Active && m.View == r.View && p.accepted {
		env.Send(to, r.proposal(p, false))
		if v, ok := p.votes[r.Config.ID]; ok {
			env.Send(to, prepare{v})
		}
	}
	o, ok := p.commits[r.Config.ID]
	if p.done != nil && o.Batch != *p.done {
		o, ok = orderBody{View: r.Dir.Epoch.First(), Seq: p.seq, Batch: *p.done}, true
	}
	if ok {
		env.Send(to, commit{Order: o, Done: p.done != nil})
	}
}

// askForBodies asks everybody for what the next places need.
func (r *replica) askForBodies(env *protocol.Env[bft.Message]) {
	for seq := r.Committed + 1; seq <= r.Committed+kit.MaxResent; seq++ {
		if p := r.places[seq]; p != nil {
			r.askFor(env, r.Others, p)
		}
	}
}

// askFor asks some members for what a place lacks.
func (r *replica) askFor(env *protocol.Env[bft.Message], ids []protocol.ID, p *place) {
	batch, ok := r.needed(p)
	if want := r.Requests.Lacking(batch); ok && !want.None() {
		for _, id := range ids {
			env.Send(id, want)
		}
	}
}

// needed returns the batch that a place needs, if one is known.
func (r *replica) needed(p *place) (bft.Digest, bool) {
	switch {
	case r.decide(p):
		return *p.done, true
	case p.offer != nil && !p.accepted:
		return p.offer.Body().Batch, true
	}
	return bft.Digest{}, false
}

// onBodies takes what the next places need, and asks for more of them if there is more.
func (r *replica) onBodies(env *protocol.Env[bft.Message], from protocol.ID, m kit.Bodies) {
	for seq := r.Committed + 1; seq <= r.Low()+r.Window(); seq++ {
		if p := r.places[seq]; p != nil {
			if want, ok := r.needed(p); ok {
				r.TakeBodies(env, from, m, want, seq)
			}
		}
	}
}
