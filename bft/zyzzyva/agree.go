package zyzzyva

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
)

// propose gives what waits places in the order, a batch at a time, and not too many batches in half
// a round trip: so requests come together where there are many.
func (r *replica) propose(env *protocol.Env[bft.Message]) {
	if !r.Active || !r.Primary() || r.Fetching() || r.Executed < r.last {
		return
	}
	for {
		r.Fill(env, func(*bft.Request, []sessions.Entry) {})
		if !r.Lead.Filled() || r.proposed >= r.Config.MaxUnderway || !r.Within(r.Top+1) {
			return
		}
		r.proposed++
		before, _ := r.history(r.last)
		seq, digest := r.Close()
		o := orderBody{r.View, seq, digest, chain(before, digest)}
		r.log(env, r.st.orders.Sign(r.Config.Scheme, r.Config.Signer, o))
		r.ToOthers(env, r.proposal(r.places[seq].order, false))
		for r.execute(env) {
		}
	}
}

// proposal returns an order with its batch and its requests, if not all then those that are small.
func (r *replica) proposal(order *bft.Signed[orderBody], all bool) proposal {
	d := order.Body().Batch
	batch, _ := r.Requests.Batch(d)
	return proposal{Order: *order, Batch: batch, Requests: r.Requests.Of(d, all)}
}

// log accepts an order as the next of the log: it is on disk before anything is said of it.
func (r *replica) log(env *protocol.Env[bft.Message], order bft.Signed[orderBody]) {
	o := order.Body()
	r.last = o.Seq
	r.places[o.Seq] = &place{batch: o.Batch, history: o.History, order: &order, kept: true}
	r.Accept(o.Batch, o.Seq, env.Append(r.proposal(&order, true)))
}

// onPropose takes the order of a primary, from whoever passes it on.
func (r *replica) onPropose(env *protocol.Env[bft.Message], from protocol.ID, m proposal) {
	o := m.Order.Body()
	if !r.Active || o.View != r.View || !r.Within(o.Seq) || !m.Order.By(r.Dir.Primary(r.View).Key) {
		return
	}
	was, ok := r.offers[o.Seq]
	if p := r.places[o.Seq]; o.Seq <= r.last {
		if p == nil || p.order == nil {
			return
		}
		was, ok = *p.order, true
	}
	if ok && *was.Body() != *o {
		r.accuse(env, misdeed{was, m.Order})
		return
	}
	if o.Seq <= r.last || !ok && !r.Timely(env, m.Batch) {
		return
	}
	r.offers[o.Seq] = m.Order
	r.Requests.TakeBatch(m.Batch, o.Batch)
	for i := range m.Requests {
		r.Requests.TakeRequest(&m.Requests[i], o.Batch)
	}
	for r.accept(env) {
	}
	if want := r.Requests.Lacking(o.Batch); !want.None() {
		env.Send(from, want)
	}
	if r.Active && o.Seq > r.last+1 && r.asked < r.Tick { // once in a tick
		r.asked = r.Tick
		env.Send(from, fillHole{r.View, r.last + 1, o.Seq - 1})
	}
}

// onFillHole sends a member the orders that it lacks.
func (r *replica) onFillHole(env *protocol.Env[bft.Message], from protocol.ID, m fillHole) {
	if !r.Active || m.View != r.View {
		return
	}
	for seq := m.From; seq <= min(m.To, m.From+kit.MaxResent, r.last); seq++ {
		if p := r.places[seq]; p != nil && p.order != nil && r.Affords(from, kit.PlaceBytes) {
			env.Send(from, r.proposal(p.order, false))
		}
	}
}

// accept accepts the next order, if it and all of its batch is here.
func (r *replica) accept(env *protocol.Env[bft.Message]) bool {
	order, ok := r.offers[r.last+1]
	if !ok || !r.Active || !r.Requests.Acceptable(order.Body().Batch) {
		return false
	}
	o := order.Body()
	if before, ok := r.history(r.last); !ok || o.History != chain(before, o.Batch) {
		delete(r.offers, o.Seq)
		if p := r.places[r.last]; ok && p != nil && p.order != nil {
			r.accuse(env, misdeed{*p.order, order})
		} else if ok {
			r.giveUp(env, r.View+1) // what follows on the beginning of a view everybody can see
		}
		return false
	}
	delete(r.offers, o.Seq)
	r.log(env, order)
	return true
}

// execute executes the next batch of the log, and tells the clients. A primary has executed its own
// when it proposed them, and only tells.
func (r *replica) execute(env *protocol.Env[bft.Message]) bool {
	seq := r.Executed + 1
	p := r.places[seq]
	if p == nil || seq > r.last || r.Performed(seq) == nil && !r.Perform(seq, p.batch) {
		return false
	}
	r.Executed++
	if !p.kept {
		batch, _ := r.Requests.Batch(p.batch)
		r.Accept(p.batch, seq, env.Append(keptRecord{r.Dir.Epoch, seq, batch, r.Requests.Of(p.batch, true)}))
		p.kept = true
	}
	for _, x := range r.Performed(seq).Results {
		full := false
		if b := r.Requests.Body(x.Digest); b != nil {
			full = b.Full
			b.Passed, b.Since = true, r.Tick // from now on the others are late
		}
		r.tell(env, x.Request.Client, x.Request.Session, seq, x.Entries, full)
	}
	if seq >= r.base && r.Active && (r.Marked(seq) || len(r.stamps[seq]) > 0) {
		r.sayStamp(env, seq)
	}
	return true
}

// tellFound tells a client what is known of its operations.
func (r *replica) tellFound(env *protocol.Env[bft.Message], id protocol.ID, s bft.SessionID, k kit.Found, full bool) {
	r.tell(env, id, s, r.Committed, k.Committed, full)
	var at bft.Seq
	for _, e := range k.Tentative {
		at = max(at, e.Seq)
	}
	r.tell(env, id, s, at, k.Tentative, full)
}

// tell tells a client what became of operations that were executed in a place, or below. It says
// nothing of what is not certified while it has given its view up: that may be about to end.
func (r *replica) tell(env *protocol.Env[bft.Message], id protocol.ID, s bft.SessionID, at bft.Seq,
	entries []sessions.Entry, full bool,
) {
	for part := range kit.Parts(entries, full) {
		if m := r.replies(s, at, part, full); len(m.Items) > 0 {
			env.Send(id, m)
		}
	}
}

func (r *replica) replies(s bft.SessionID, at bft.Seq, entries []sessions.Entry, full bool) replies {
	m := replies{Epoch: r.Dir.Epoch, Session: s}
	for _, e := range entries {
		item := replyItem{Number: e.Number, Seq: e.Seq, Word: speculated, Digest: e.Result.Digest()}
		switch {
		case e.Seq == 0 && at > r.Committed:
			continue // its session is gone, if this stays
		case e.Seq <= r.Committed:
			item.Word = final
		case e.Seq <= r.holds():
			item.Word = held
		case !r.Active:
			continue
		default:
			m.Stamp = r.stampAt(at)
			if p := r.places[at]; p != nil {
				m.Order = p.order
			}
		}
		if item.Word != speculated {
			item.History, _ = r.history(e.Seq)
		}
		if full {
			item.Full, item.Result = true, e.Result
		}
		m.Items = append(m.Items, item)
	}
	return m
}

// stampAt returns this replica's stamp of a place of its log that is not below base.
func (r *replica) stampAt(seq bft.Seq) *bft.Signed[stampBody] {
	if s, ok := r.stamps[seq][r.Config.ID]; ok {
		return &s
	}
	h, _ := r.history(seq)
	s := r.st.stamps.Sign(r.Config.Scheme, r.Config.Signer, stampBody{r.logView, seq, h})
	return &s
}

// sayStamp gives the other members a stamp. Who gets one for a place that it has executed gives its
// own: so a quorum of them comes together without clients.
func (r *replica) sayStamp(env *protocol.Env[bft.Message], seq bft.Seq) {
	s := *r.stampAt(seq)
	r.ToOthers(env, stamped{s})
	r.keepStamp(env, r.Config.ID, s)
}

// askForStamps has a primary come by a certificate of what was executed.
func (r *replica) askForStamps(env *protocol.Env[bft.Message]) {
	if !r.Active || !r.Primary() || r.Fetching() || r.Executed <= r.holds() || r.Executed < r.base {
		return
	}
	if _, said := r.stamps[r.Executed][r.Config.ID]; !said || r.Tick%4 == 0 {
		r.sayStamp(env, r.Executed)
	}
}

func (r *replica) onStamped(env *protocol.Env[bft.Message], from protocol.ID, s bft.Signed[stampBody]) {
	b := s.Body()
	switch {
	case !s.By(r.Dir.KeyOf(from)):
	case !r.Active && b.View == r.View:
		r.confirms[from] = s
		r.confirmed(env)
	case r.Active && b.View == r.View && r.Within(b.Seq) && b.Seq >= r.base:
		if h, ok := r.history(b.Seq); ok && h != b.History {
			if p := r.places[b.Seq]; p != nil && p.order != nil { // one of the two is lied to
				env.Send(from, r.proposal(p.order, false))
			}
			return
		}
		_, again := r.stamps[b.Seq][from]
		r.keepStamp(env, from, s)
		if own, said := r.stamps[b.Seq][r.Config.ID]; said && again && from == r.Dir.Primary(r.View).ID {
			env.Send(from, stamped{own}) // it asks again, so it has not heard
		} else if !said && b.Seq <= r.Executed {
			r.sayStamp(env, b.Seq)
		}
	}
}

func (r *replica) keepStamp(env *protocol.Env[bft.Message], from protocol.ID, s bft.Signed[stampBody]) {
	seq := s.Body().Seq
	if r.stamps[seq] == nil {
		r.stamps[seq] = map[protocol.ID]bft.Signed[stampBody]{}
	}
	r.stamps[seq][from] = s
	if proof, ok := r.agreed(*s.Body(), r.stamps[seq]); ok {
		r.hold(env, proof)
	}
}

// hold keeps a certificate of this replica's log, if it is better than the one that it has. It is
// on disk before anybody is told.
func (r *replica) hold(env *protocol.Env[bft.Message], proof bft.Certificate[stampBody]) {
	b := proof.Body()
	if !r.Active || b.View != r.logView || b.Seq <= r.held.Body().Seq || !lawfulProof(r.Dir, &proof) {
		return
	}
	if h, ok := r.history(b.Seq); ok && h == b.History {
		r.held = proof
		r.Put(env, heldKey, heldRecord{proof})
	}
}

// onCertified takes a certificate from a client, which wants to know what became of operations, or
// from a member.
func (r *replica) onCertified(env *protocol.Env[bft.Message], from protocol.ID, m certified) {
	_, client := r.Dir.Clients[from]
	if !client && !r.Dir.Member(from) {
		return
	}
	r.hold(env, m.Proof)
	if !client || r.Fetching() || len(m.Numbers) > sessions.Window {
		return
	}
	var all kit.Found
	for _, n := range m.Numbers {
		k := r.Find(from, m.Session, n, 1)
		all.Committed = append(all.Committed, k.Committed...)
		all.Tentative = append(all.Tentative, k.Tentative...)
	}
	r.tellFound(env, from, m.Session, all, false)
}

// finish commits what was executed, as far as it cannot come out otherwise: a quorum holds
// certificates of it, so each that decides on a new view has one of an honest member.
func (r *replica) finish(env *protocol.Env[bft.Message]) {
	for end := max(r.covered(r.Dir.Quorum()), r.concluded); r.Committed < min(end, r.Executed); {
		r.Merge(env)
	}
}
