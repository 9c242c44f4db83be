package zyzzyva

import (
	"maps"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/protocol"
)

// Keys of a replica's disk, beside those of the kit.
const (
	viewKey   = "p/view"
	changeKey = "p/change"
	startKey  = "p/start"
	nextKey   = "p/next"
	heldKey   = "p/held"
)

// Start is part of protocol.Node.
func (r *replica) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	if err := r.Remember(env, viewKey, changeKey, startKey, nextKey, heldKey); err != nil {
		env.Send(protocol.App, bft.Refused{Reason: err.Error()})
		return
	}
	defer r.Store.Leave()
	r.changes = r.noChanges()
	m, ok := kit.Get[viewRecord](&r.Replica, env, viewKey)
	if !ok || m.View.Epoch() != r.Dir.Epoch {
		m = r.first()
	}
	r.View, r.Active = m.View, m.Active
	r.begun(m)
	if m, ok := kit.Get[heldRecord](&r.Replica, env, heldKey); ok && !r.entered.Void {
		if b := m.Proof.Body(); b.View == r.logView && b.Seq > r.held.Body().Seq {
			r.held = m.Proof
		}
	}
	if m, ok := kit.Get[newView](&r.Replica, env, startKey); ok && m.Start.Body().View == r.logView {
		r.start = &m
	}
	if m, ok := kit.Get[viewChange](&r.Replica, env, changeKey); ok && !r.Active {
		r.own = &m.Change
		r.changes.Take(m.Change)
	}
	for _, rec := range log {
		r.replay(rec)
	}
	r.last = max(r.last, r.Committed)
	r.doubt()
	if m, ok := kit.Get[newView](&r.Replica, env, nextKey); ok && !r.Active && m.Start.Body().View == r.View {
		r.confirm(env, m)
	}
	r.Resume(env)
}

// begun takes what a view began with for the log.
func (r *replica) begun(m viewRecord) {
	r.entered, r.logView, r.held = m, m.LogView, m.Proof
	r.base = m.From + bft.Seq(len(m.Batches))
	h := m.Root
	for i, b := range m.Batches {
		seq := m.From + 1 + bft.Seq(i)
		h = chain(h, b)
		if was := r.places[seq]; seq > r.Committed || was == nil && seq > r.Low() {
			r.places[seq] = &place{batch: b, history: h, kept: was != nil && was.kept && was.batch == b}
		}
		r.Requests.Known(b, seq)
	}
	r.last = max(r.base, r.Low())
}

// cut removes places that are beyond the log's end.
func (r *replica) cut() {
	end := max(r.base, r.Committed)
	maps.DeleteFunc(r.places, func(seq bft.Seq, _ *place) bool { return seq > end })
	r.last = max(r.last, end)
	r.concluded = min(r.concluded, r.last)
	r.doubt()
}

// doubt removes what the log has on the way to a stable checkpoint, unless it leads there: the
// checkpoint may be of a later view, and of what that began with the log knows nothing.
func (r *replica) doubt() {
	low := r.Low()
	if p := r.places[low]; low <= r.Committed || p != nil && p.history == r.Stable.Body().History {
		return
	}
	if r.Top > r.Committed && !r.Fetching() {
		r.DropLayers()
	}
	maps.DeleteFunc(r.places, func(seq bft.Seq, _ *place) bool { return seq > r.Committed && seq <= low })
}

// replay takes a record of the log.
func (r *replica) replay(rec protocol.Record[bft.Message]) {
	keep := func(seq bft.Seq, batch kit.Batch, digest bft.Digest, requests []bft.Signed[bft.Request]) {
		r.Logged(seq, rec.Index)
		r.Requests.TakeBatch(batch, digest)
		r.Requests.Known(digest, seq)
		for i := range requests {
			r.Requests.Restore(&requests[i], seq)
		}
		if p := r.places[seq]; p != nil && p.batch == digest {
			p.kept = true
		}
	}
	switch m := rec.Msg.(type) {
	case proposal:
		o := m.Order.Body()
		if !r.Within(o.Seq) || o.View.Epoch() != r.Dir.Epoch {
			return
		}
		if o.View == r.logView && o.Seq > r.base && !r.entered.Void {
			r.places[o.Seq] = &place{batch: o.Batch, history: o.History, order: &m.Order}
			r.last = max(r.last, o.Seq)
		}
		keep(o.Seq, m.Batch, o.Batch, m.Requests)
	case keptRecord:
		if !r.Within(m.Seq) || m.Epoch != r.Dir.Epoch {
			return
		}
		d := r.digestOf(m.Batch)
		if before, ok := r.history(r.last); ok && m.Seq == r.last+1 && m.Seq <= r.Committed {
			r.last = m.Seq
			r.places[m.Seq] = &place{batch: d, history: chain(before, d)}
		}
		keep(m.Seq, m.Batch, d, m.Requests)
	}
}

// digestOf returns by what the log names a batch. None has the zero Digest.
func (r *replica) digestOf(b kit.Batch) bft.Digest {
	if len(b.Entries) == 0 {
		return bft.Digest{}
	}
	return r.st.DigestOf(b)
}

// onStatus sends a member what it lacks.
func (r *replica) onStatus(env *protocol.Env[bft.Message], from protocol.ID, m status) {
	if r.OtherEpoch(env, from, m.View) {
		return
	}
	if m.Held != (stampBody{}) {
		r.helds[from] = m.Held
	}
	r.SayCheckpoints(env, from, m.Stable)
	behind := m.View < r.View || m.View == r.View && !m.Active
	if behind {
		r.sayConcluded(env, from, m.Committed)
	}
	switch {
	case behind && r.Active && r.start != nil:
		env.Send(from, *r.start)
	case behind && !r.Active:
		if r.own != nil {
			env.Send(from, viewChange{*r.own})
		}
		if r.next != nil {
			env.Send(from, *r.next)
			env.Send(from, stamped{r.confirms[r.Config.ID]})
		}
	case !r.Active || !m.Active || m.View != r.View:
		r.sayConcluded(env, from, m.Committed)
	default:
		r.onFillHole(env, from, fillHole{r.View, m.Last + 1, r.last})
		if m.Held.Seq < r.held.Body().Seq {
			env.Send(from, certified{Proof: r.held})
		}
	}
}

// askForBodies asks everybody for what the next places lack, and for what is between them.
func (r *replica) askForBodies(env *protocol.Env[bft.Message]) {
	for seq := r.Executed + 1; seq <= r.Executed+kit.MaxResent; seq++ {
		if batch, ok := r.needed(seq); ok {
			if want := r.Requests.Lacking(batch); !want.None() {
				r.ToOthers(env, want)
			}
		}
	}
}

// needed returns the batch of a place, if one is known.
func (r *replica) needed(seq bft.Seq) (bft.Digest, bool) {
	if p := r.places[seq]; p != nil {
		return p.batch, true
	}
	if o, ok := r.offers[seq]; ok {
		return o.Body().Batch, true
	}
	return bft.Digest{}, false
}

// onBodies takes what the next places need, and asks for more of them if there is more.
func (r *replica) onBodies(env *protocol.Env[bft.Message], from protocol.ID, m kit.Bodies) {
	for seq := r.Executed + 1; seq <= r.Low()+r.Window(); seq++ {
		if want, ok := r.needed(seq); ok {
			r.TakeBodies(env, from, m, want, seq)
		}
	}
}

// sayConcluded tells a member that is in another view what is committed: there it gets no orders.
func (r *replica) sayConcluded(env *protocol.Env[bft.Message], to protocol.ID, after bft.Seq) {
	m := concluded{Epoch: r.Dir.Epoch, After: after}
	for seq := after + 1; seq <= min(r.Committed, after+kit.MaxResent); seq++ {
		p := r.places[seq]
		if p == nil {
			return
		}
		m.Batches = append(m.Batches, p.batch)
	}
	if len(m.Batches) > 0 {
		env.Send(to, m)
	}
}

func (r *replica) onConcluded(from protocol.ID, m concluded) {
	if m.Epoch != r.Dir.Epoch {
		return
	}
	for i, b := range m.Batches {
		seq := m.After + 1 + bft.Seq(i)
		if !r.Within(seq) || seq <= r.Committed {
			continue
		}
		if r.told[seq] == nil {
			r.told[seq] = map[protocol.ID]bft.Digest{}
		}
		r.told[seq][from] = b
	}
}

// conclude takes what others have committed for the next places of the log. That changes nothing
// for new views: what is committed all of them begin with.
func (r *replica) conclude(env *protocol.Env[bft.Message]) {
	for r.concluded = max(r.concluded, r.Committed); !r.Active && !r.Fetching(); r.concluded++ {
		seq := r.concluded + 1
		batch, ok := r.witnessed(seq)
		if !ok {
			return
		}
		p := r.places[seq]
		if p != nil && seq <= r.last && p.batch == batch {
			continue
		}
		if p != nil && seq <= r.last {
			r.void(env, seq-1)
		}
		before, ok := r.history(seq - 1)
		if !ok {
			return
		}
		r.last = max(r.last, seq)
		r.places[seq] = &place{batch: batch, history: chain(before, batch)}
		r.Requests.Known(batch, seq)
		delete(r.offers, seq)
	}
}

// witnessed returns the batch that so many members say is committed that one of them does not lie.
func (r *replica) witnessed(seq bft.Seq) (bft.Digest, bool) {
	told := r.told[seq]
	for _, id := range r.members() {
		d, ok := told[id]
		n := 0
		for _, other := range r.members() {
			if o, also := told[other]; ok && also && o == d {
				n++
			}
		}
		if n >= r.Dir.Witness() {
			return d, true
		}
	}
	return bft.Digest{}, false
}

// void gives up the log above a place, since something else is committed there. That was in a later
// view, which began with all that can have come of this one; so the replica need not tell others of
// its log any more.
func (r *replica) void(env *protocol.Env[bft.Message], upTo bft.Seq) {
	if r.Top > upTo && !r.Fetching() {
		r.DropLayers()
	}
	m := viewRecord{View: r.View, Active: r.Active, Void: true, From: r.Low(), Root: r.Stable.Body().History}
	for seq := r.Low() + 1; seq <= upTo && r.places[seq] != nil; seq++ {
		m.Batches = append(m.Batches, r.places[seq].batch)
	}
	r.begun(m)
	r.cut()
	r.keepView(env)
	if r.Active {
		r.giveUp(env, r.View+1)
	}
}
