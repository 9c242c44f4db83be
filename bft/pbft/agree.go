package pbft

import (
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// A place is a number in the order, and what is known of it.
type place struct {
	seq bft.Seq
	// offer is the order of the present view, as it came; accepted says that it, its batch and its
	// requests are here and on disk.
	offer    *bft.Signed[orderBody]
	accepted bool
	votes    map[protocol.ID]bft.Signed[voteBody]
	commits  map[protocol.ID]orderBody  // what members have prepared last
	told     map[protocol.ID]bft.Digest // what members say is committed
	prepared *preparedProof             // the newest, of whatever view
	done     *bft.Digest
	layer    *keyspace.Layer
	results  []executed
}

// executed is a request of a batch with what became of it.
type executed struct {
	request *bft.Request
	digest  bft.Digest
	entries []sessions.Entry
}

func (r *replica) place(seq bft.Seq) *place {
	p := r.places[seq]
	if p == nil {
		p = &place{seq: seq, votes: map[protocol.ID]bft.Signed[voteBody]{}, commits: map[protocol.ID]orderBody{},
			told: map[protocol.ID]bft.Digest{}}
		r.places[seq] = p
	}
	return p
}

// within reports whether a place is one of those that are under way. A checkpoint that is stable
// before this replica has come to it leaves it what is below, as it is about to come.
func (r *replica) within(seq bft.Seq) bool {
	return seq > min(r.low(), r.committed) && seq <= r.low()+r.window()
}

// preparedNow reports whether the order of the present view is prepared.
func (r *replica) preparedNow(p *place) bool {
	return p.accepted && p.prepared != nil && *p.prepared.Order.Body() == *p.offer.Body()
}

// onPropose takes the order of a primary, from whoever passes it on.
func (r *replica) onPropose(env *protocol.Env[bft.Message], from protocol.ID, m proposal) {
	o := m.Order.Body()
	if !r.active || o.View != r.view || !r.within(o.Seq) || !m.Order.By(r.dir.Primary(r.view).Key) {
		return
	}
	p := r.place(o.Seq)
	if p.offer != nil && *p.offer.Body() != *o || p.accepted {
		return
	}
	if p.offer == nil && !r.timely(env, m.Batch) {
		return
	}
	p.offer = &m.Order
	r.takeBatch(m.Batch, o.Batch)
	for i := range m.Requests {
		r.takeRequest(&m.Requests[i], o.Batch)
	}
	r.accept(env, p)
	if !p.accepted && from != r.cfg.ID {
		r.askFor(env, []protocol.ID{from}, p)
	}
}

// timely reports whether the times of a batch are in order, and near this replica's own unless the
// group's time is there already, which does not go back if a clock was wrong. One that is proposed
// again needs no such check: a replica whose clock has gone on could never accept it.
func (r *replica) timely(env *protocol.Env[bft.Message], b requestBatch) bool {
	for i, e := range b.Entries {
		if i > 0 && e.Time < b.Entries[i-1].Time || e.Time > r.latest && (e.Time-env.Now).Abs() > r.cfg.ClockSlack {
			return false
		}
	}
	return true
}

// takeBatch keeps a batch that is wanted.
func (r *replica) takeBatch(b requestBatch, want bft.Digest) {
	if want != (bft.Digest{}) && len(b.Entries) <= r.cfg.MaxBatch && r.st.digestOf(b) == want {
		r.batches[want] = b
	}
}

// takeRequest keeps a request if a batch has it that is here.
func (r *replica) takeRequest(m *bft.Signed[bft.Request], of bft.Digest) {
	if !r.dir.From(m) || !m.Body().Lawful() {
		return
	}
	d := r.st.digestOfRequest(m.Body())
	for _, e := range r.batches[of].Entries {
		if e.Request == d && r.bodies[d] == nil {
			r.bodies[d] = &body{request: *m}
		}
	}
}

// lacking returns what of a batch is not here.
func (r *replica) lacking(batch bft.Digest) (out wanted) {
	if batch == (bft.Digest{}) {
		return out
	}
	b, ok := r.batches[batch]
	if !ok {
		return wanted{Batches: []bft.Digest{batch}}
	}
	for _, e := range b.Entries {
		if r.bodies[e.Request] == nil {
			out.Requests = append(out.Requests, e.Request)
		}
	}
	return out
}

func (w wanted) none() bool { return len(w.Batches)+len(w.Requests) == 0 }

// accept accepts the order of a place if all of it is here: it is on disk before it is voted for.
func (r *replica) accept(env *protocol.Env[bft.Message], p *place) {
	if p.offer == nil || p.accepted || !r.active {
		return
	}
	o := *p.offer.Body()
	if !r.lacking(o.Batch).none() {
		return
	}
	p.accepted = true
	i := env.Append(r.proposal(p, true))
	if _, ok := r.records[p.seq]; !ok {
		r.records[p.seq] = i
	}
	for _, e := range r.batches[o.Batch].Entries {
		b := r.bodies[e.Request]
		b.at = max(b.at, p.seq)
		r.latest = max(r.latest, e.Time)
	}
	r.known[o.Batch] = max(r.known[o.Batch], p.seq)
	if !r.primary() {
		v := r.st.votes.Sign(r.cfg.Scheme, r.cfg.Signer, voteBody(o))
		p.votes[r.cfg.ID] = v
		r.toOthers(env, prepare{v})
	}
	r.prepare(env, p)
}

// proposal returns the order of a place with its batch and its requests, if not all then those that
// are small.
func (r *replica) proposal(p *place, all bool) proposal {
	m := proposal{Order: *p.offer, Batch: r.batches[p.offer.Body().Batch]}
	for _, e := range m.Batch.Entries {
		b := r.bodies[e.Request]
		if b != nil && (all || size(b.request.Body()) <= inlineBytes) {
			m.Requests = append(m.Requests, b.request)
		}
	}
	return m
}

func size(m *bft.Request) (n int) {
	for _, o := range m.Operations {
		n += len(o.Command) + len(o.Conditions)*len(bft.Digest{})
	}
	return n
}

func (r *replica) onPrepare(v bft.Signed[voteBody]) {
	b := v.Body()
	if b.View != r.view || !r.active || !r.within(b.Seq) {
		return
	}
	for _, m := range r.dir.Members {
		if v.By(m.Key) && m.Key != r.dir.Primary(b.View).Key {
			r.place(b.Seq).votes[m.ID] = v
		}
	}
}

// prepare notes that a quorum has accepted the order: that is on disk before anybody is told.
func (r *replica) prepare(env *protocol.Env[bft.Message], p *place) {
	if !p.accepted || r.preparedNow(p) {
		return
	}
	o := *p.offer.Body()
	votes := r.votes[:0]
	for _, m := range r.dir.Members {
		if v, ok := p.votes[m.ID]; ok && orderBody(*v.Body()) == o {
			votes = append(votes, v)
		}
	}
	r.votes = votes
	if len(votes) < r.dir.Quorum()-1 {
		return
	}
	p.prepared = &preparedProof{*p.offer, bft.Join(votes)}
	env.Append(preparedRecord{*p.prepared})
	p.commits[r.cfg.ID] = o
	r.toOthers(env, commit{Order: o, Done: p.done != nil})
}

// onCommit takes the word of a member, which also those hear who have given the view up.
func (r *replica) onCommit(env *protocol.Env[bft.Message], from protocol.ID, m commit) {
	if !r.within(m.Order.Seq) || m.Order.Seq <= r.committed {
		return
	}
	p := r.place(m.Order.Seq)
	p.commits[from] = m.Order
	if m.Done {
		p.told[from] = m.Order.Batch
	}
}

// decide reports whether the batch of a place is committed: a quorum has it prepared in one view,
// this replica among it; or as many say that it is committed that one of them does not lie.
func (r *replica) decide(p *place) bool {
	if p.done != nil {
		return true
	}
	if p.prepared != nil {
		o, prepared := *p.prepared.Order.Body(), 0
		for _, c := range p.commits { //pure:ok they are counted
			if c == o {
				prepared++
			}
		}
		if prepared >= r.dir.Quorum() {
			p.done = &p.prepared.Order.Body().Batch
			return true
		}
	}
	if len(p.told) == 0 {
		return false
	}
	for _, m := range r.dir.Members {
		told, ok := p.told[m.ID]
		committed := 0
		for _, o := range r.dir.Members {
			if d, also := p.told[o.ID]; ok && also && d == told {
				committed++
			}
		}
		if committed >= r.dir.Witness() {
			done := told
			p.done = &done
			return true
		}
	}
	return false
}

// advance does what has become possible.
func (r *replica) advance(env *protocol.Env[bft.Message]) {
	for seq := min(r.low(), r.committed) + 1; seq <= r.low()+r.window(); seq++ {
		if p := r.places[seq]; p != nil {
			r.accept(env, p)
			r.prepare(env, p)
		}
	}
	for r.fetch == nil {
		if r.damage != "" {
			r.repair(env)
		} else if !r.execute(env) && !r.commit(env) {
			r.answerReads(env)
			break
		}
	}
	r.propose(env)
}

// execute executes the next batch, if it is prepared in this view or committed, and tells the
// clients. A primary has done so already when it proposed it, and only tells.
func (r *replica) execute(env *protocol.Env[bft.Message]) bool {
	p := r.places[r.executed+1]
	if p == nil {
		return false
	}
	batch, tentative := bft.Digest{}, true
	switch {
	case r.decide(p):
		batch, tentative = *p.done, p.seq != r.committed+1
	case r.active && r.preparedNow(p):
		batch = p.offer.Body().Batch
	default:
		return false
	}
	if p.layer != nil && p.offer.Body().Batch != batch || p.layer == nil && (r.top >= p.seq || r.lead.open != nil) {
		r.dropLayers() // what was executed early is not what was committed
		return true
	}
	if p.layer == nil && !r.perform(p, batch) {
		return false
	}
	r.executed++
	r.reply(env, p, tentative)
	return true
}

// perform executes a batch in a layer of its own above all others.
func (r *replica) perform(p *place, batch bft.Digest) bool {
	if !r.lacking(batch).none() || r.top != p.seq-1 || r.lead.open != nil {
		return false
	}
	p.layer, p.results = r.state.Push(), nil
	r.top = p.seq
	for _, e := range r.batches[batch].Entries {
		m := r.bodies[e.Request].request.Body()
		now := sessions.SetTime(p.layer, e.Time)
		p.results = append(p.results, executed{m, e.Request, sessions.Execute(p.layer, r.cfg.Service, now, p.seq, m)})
	}
	return true
}

// dropLayers undoes all that is not committed.
func (r *replica) dropLayers() {
	switch {
	case r.top > r.committed:
		r.state.Drop(r.places[r.committed+1].layer)
	case r.lead.open != nil:
		r.state.Drop(r.lead.open.layer)
	}
	for seq := r.committed + 1; seq <= r.top; seq++ {
		p := r.places[seq]
		p.layer, p.results = nil, nil
	}
	r.lead = leading{}
	r.executed, r.top = r.committed, r.committed
}

// reply tells the clients what became of their requests.
func (r *replica) reply(env *protocol.Env[bft.Message], p *place, tentative bool) {
	for _, x := range p.results {
		b := r.bodies[x.digest]
		r.tell(env, x.request, x.entries, tentative, b != nil && b.full)
	}
}

func (r *replica) tell(env *protocol.Env[bft.Message], m *bft.Request, entries []sessions.Entry, tentative, full bool) {
	reply := replies{View: r.view, Session: m.Session}
	for _, e := range entries {
		item := replyItem{Number: e.Number, Seq: e.Seq, Tentative: tentative && e.Seq > r.committed,
			Digest: e.Result.Digest()}
		if full {
			item.Full, item.Result = true, e.Result
		}
		reply.Items = append(reply.Items, item)
	}
	env.Send(m.Client, reply)
}

// commit commits the next batch that was executed, when it cannot come out otherwise.
func (r *replica) commit(env *protocol.Env[bft.Message]) bool {
	p := r.places[r.committed+1]
	if p == nil || p.seq > r.executed || !r.decide(p) {
		return false
	}
	r.state.Merge()
	r.committed++
	p.layer = nil
	r.put(env, doneKey, doneRecord{r.committed})
	for _, x := range p.results {
		r.settled(x.digest)
	}
	p.results = nil
	if r.committed%bft.Seq(r.cfg.CheckpointEvery) == 0 {
		digest := r.state.Checkpoint(uint64(r.committed))
		s := r.st.checkpoints.Sign(r.cfg.Scheme, r.cfg.Signer, checkpointBody{r.committed, digest})
		r.toOthers(env, reached{s})
		r.onReached(env, s)
	}
	return true
}

// settled forgets that a request waits.
func (r *replica) settled(d bft.Digest) {
	if b := r.bodies[d]; b != nil && b.waiting {
		b.waiting = false
		r.waiting[b.request.Body().Client]--
		// It is near the front, as requests are executed in about the order in which they come.
		i := slices.Index(r.arrivals, d)
		copy(r.arrivals[1:i+1], r.arrivals[:i])
		r.arrivals = r.arrivals[1:]
	}
}
