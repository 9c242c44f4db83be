package pbft

import (
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// leading is what a primary has of its view. It is dropped with the view.
type leading struct {
	open  *opening
	queue []bft.Digest // requests that wait for room in a batch
	held  []held
}

// opening is the batch that is not proposed yet, executed as far as it has come.
type opening struct {
	layer      *keyspace.Layer
	batch      requestBatch
	results    []executed
	operations int
}

// held is a request that names another one which has not come: it waits for it, but not for ever.
type held struct {
	request bft.Digest
	until   int // a tick
}

const heldTicks = 2

// onSubmit takes a client's request: who knows what became of it says so, and everybody else sees
// to it that the primary orders it.
func (r *replica) onSubmit(env *protocol.Env[bft.Message], from protocol.ID, m submitted) {
	b := m.Request.Body()
	if !r.dir.From(&m.Request) || from != b.Client && !r.dir.Member(from) || !b.Lawful() {
		return
	}
	d := r.st.digestOfRequest(b)
	if r.fetch == nil && r.answer(env, b, m.Full) {
		r.settled(d)
		return
	}
	x := r.bodies[d]
	if x == nil || !x.waiting {
		if r.waiting[b.Client] >= maxWaitingOfClient {
			return
		}
		if x == nil {
			x = &body{request: m.Request}
			r.bodies[d] = x
		}
		x.waiting, x.since = true, r.tick
		r.waiting[b.Client]++
		r.arrivals = append(r.arrivals, d)
		r.enqueue(d)
	}
	x.full = m.Full || x.full && from != b.Client
}

// answer tells a client what became of its request, if all of it has been executed.
func (r *replica) answer(env *protocol.Env[bft.Message], m *bft.Request, full bool) bool {
	var tentative, committed []sessions.Entry
	base, above := r.state.Committed(), r.tentative()
	for i := range m.Operations {
		n := m.First + bft.Number(i)
		if e, fresh := sessions.Find(base, m.Client, m.Session, n); !fresh {
			committed = append(committed, e)
		} else if e, fresh := sessions.Find(above, m.Client, m.Session, n); !fresh && e.Seq > 0 {
			tentative = append(tentative, e)
		}
	}
	if len(committed) > 0 {
		r.tell(env, m, committed, false, full)
	}
	if len(tentative) > 0 {
		r.tell(env, m, tentative, true, full)
	}
	return len(committed) == len(m.Operations)
}

// tentative returns the state as far as this replica may tell of it.
func (r *replica) tentative() keyspace.Reader {
	if p := r.places[r.executed]; r.executed > r.committed && p != nil && p.layer != nil {
		return p.layer
	}
	return r.state.Committed()
}

// enqueue has a primary order a request.
func (r *replica) enqueue(d bft.Digest) {
	if r.active && r.primary() && !slices.Contains(r.lead.queue, d) {
		r.lead.queue = append(r.lead.queue, d)
	}
}

// next returns the place of the batch that is proposed next.
func (r *replica) next() bft.Seq { return r.top + 1 }

// propose orders requests in the order in which they came, executes each at once, and proposes the
// batch when not too many are under way.
func (r *replica) propose(env *protocol.Env[bft.Message]) {
	if !r.active || !r.primary() || r.fetch != nil || !r.ready() {
		return
	}
	for {
		r.fill(env)
		if o := r.lead.open; o == nil || len(o.batch.Entries) == 0 || !r.room() {
			return
		}
		r.close(env)
	}
}

// ready sees to it that all places that the view has given out are executed, early if need be.
func (r *replica) ready() bool {
	for {
		p := r.places[r.top+1]
		if p == nil || p.offer == nil {
			return r.top >= r.low()
		}
		if p.layer != nil || !p.accepted || !r.perform(p, p.offer.Body().Batch) {
			return false
		}
	}
}

// room reports whether a further batch may be proposed.
func (r *replica) room() bool {
	under := 0
	for seq := r.committed + 1; seq <= r.top; seq++ {
		if p := r.places[seq]; !r.preparedNow(p) {
			under++
		}
	}
	return under < r.cfg.MaxUnderway && r.within(r.next())
}

// fill executes what waits, as long as the open batch has room.
func (r *replica) fill(env *protocol.Env[bft.Message]) {
	for len(r.lead.queue) > 0 {
		d := r.lead.queue[0]
		x := r.bodies[d]
		if x == nil || !x.waiting {
			r.lead.queue = r.lead.queue[1:]
			continue
		}
		m := x.request.Body()
		o := r.lead.open
		if o != nil && o.operations+len(m.Operations) > r.cfg.MaxBatch && o.operations > 0 {
			return
		}
		r.lead.queue = r.lead.queue[1:]
		if o == nil {
			o = &opening{layer: r.state.Push()}
			r.lead.open = o
		}
		switch {
		case !fresh(o.layer, m) || !sessions.Fits(o.layer, m):
			continue
		case sessions.Unmet(o.layer, m) != 0 && r.hold(d):
			continue
		}
		r.order(env, o, d, m)
	}
}

// fresh reports whether some operation of a request was not executed yet.
func fresh(at keyspace.Reader, m *bft.Request) bool {
	for i := range m.Operations {
		if _, fresh := sessions.Find(at, m.Client, m.Session, m.First+bft.Number(i)); fresh {
			return true
		}
	}
	return false
}

// hold has a request wait for another one, and reports whether it does.
func (r *replica) hold(d bft.Digest) bool {
	i := slices.IndexFunc(r.lead.held, func(h held) bool { return h.request == d })
	if i < 0 {
		r.lead.held = append(r.lead.held, held{d, r.tick + heldTicks})
		return true
	}
	return r.lead.held[i].until > r.tick
}

// releaseHeld tries again what has waited long enough.
func (r *replica) releaseHeld(*protocol.Env[bft.Message]) {
	for _, h := range r.lead.held {
		if h.until <= r.tick {
			r.enqueue(h.request)
		}
	}
	r.lead.held = slices.DeleteFunc(r.lead.held, func(h held) bool { return h.until < r.tick })
}

// order executes a request as the next of the open batch and tells the client what comes of it if
// the view lasts.
func (r *replica) order(env *protocol.Env[bft.Message], o *opening, d bft.Digest, m *bft.Request) {
	now := sessions.SetTime(o.layer, max(env.Now, sessions.Time(o.layer)))
	entries := sessions.Execute(o.layer, r.cfg.Service, now, r.next(), m)
	o.batch.Entries = append(o.batch.Entries, batchEntry{d, now})
	o.results = append(o.results, executed{m, d, entries})
	o.operations += len(m.Operations)
	e := earlyBody{View: r.view, Client: m.Client, Session: m.Session}
	for _, x := range entries {
		e.Items = append(e.Items, earlyItem{x.Number, x.Result})
	}
	env.SendAhead(m.Client, earlyReply{r.st.early.Sign(r.cfg.Scheme, r.cfg.Signer, e)})
	for _, h := range r.lead.held { // one of them may have waited for this one
		if h.request != d {
			r.enqueue(h.request)
		}
	}
}

// close proposes the open batch.
func (r *replica) close(env *protocol.Env[bft.Message]) {
	o := r.lead.open
	r.lead.open = nil
	p := r.place(r.next())
	digest := r.st.digestOf(o.batch)
	r.batches[digest] = o.batch
	offer := r.st.orders.Sign(r.cfg.Scheme, r.cfg.Signer, orderBody{r.view, p.seq, digest})
	p.offer, p.accepted = &offer, false
	p.layer, p.results = o.layer, o.results
	r.top = p.seq
	r.accept(env, p)
	r.toOthers(env, r.proposal(p, false))
}
