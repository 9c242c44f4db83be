package pbft

import (
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/kit"
	"github.com/foresay/foresay/bft/sessions"
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

// preparedNow reports whether the order of the present view is prepared.
func (r *replica) preparedNow(p *place) bool {
	return p.accepted && p.prepared != nil && *p.prepared.Order.Body() == *p.offer.Body()
}

// onPropose takes the order of a primary, from whoever passes it on.
func (r *replica) onPropose(env *protocol.Env[bft.Message], from protocol.ID, m proposal) {
	o := m.Order.Body()
	if !r.Active || o.View != r.View || !r.Within(o.Seq) || !m.Order.By(r.Dir.Primary(r.View).Key) {
		return
	}
	p := r.place(o.Seq)
	if p.offer != nil && *p.offer.Body() != *o || p.accepted {
		return
	}
	if p.offer == nil && !r.Timely(env, m.Batch) {
		return
	}
	p.offer = &m.Order
	r.Requests.TakeBatch(m.Batch, o.Batch)
	for i := range m.Requests {
		r.Requests.TakeRequest(&m.Requests[i], o.Batch)
	}
	r.accept(env, p)
	if !p.accepted && from != r.Config.ID {
		r.askFor(env, []protocol.ID{from}, p)
	}
}

// accept accepts the order of a place if all of it is here: it is on disk before it is voted for.
func (r *replica) accept(env *protocol.Env[bft.Message], p *place) {
	if p.offer == nil || p.accepted || !r.Active {
		return
	}
	o := *p.offer.Body()
	if !r.Requests.Acceptable(o.Batch) {
		return
	}
	p.accepted = true
	r.Accept(o.Batch, p.seq, env.Append(r.proposal(p, true)))
	if !r.Primary() {
		v := r.st.votes.Sign(r.Config.Scheme, r.Config.Signer, voteBody(o))
		p.votes[r.Config.ID] = v
		r.ToOthers(env, prepare{v})
	}
	r.prepare(env, p)
}

// proposal returns the order of a place with its batch and its requests, if not all then those that
// are small.
func (r *replica) proposal(p *place, all bool) proposal {
	o := p.offer.Body()
	batch, _ := r.Requests.Batch(o.Batch)
	return proposal{Order: *p.offer, Batch: batch, Requests: r.Requests.Of(o.Batch, all)}
}

func (r *replica) onPrepare(v bft.Signed[voteBody]) {
	b := v.Body()
	if b.View != r.View || !r.Active || !r.Within(b.Seq) {
		return
	}
	for _, m := range r.Dir.Members {
		if v.By(m.Key) && m.Key != r.Dir.Primary(b.View).Key {
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
	for _, m := range r.Dir.Members {
		if v, ok := p.votes[m.ID]; ok && orderBody(*v.Body()) == o {
			votes = append(votes, v)
		}
	}
	r.votes = votes
	if len(votes) < r.Dir.Quorum()-1 {
		return
	}
	p.prepared = &preparedProof{*p.offer, bft.Join(votes)}
	env.Append(preparedRecord{*p.prepared})
	p.commits[r.Config.ID] = o
	r.ToOthers(env, commit{Order: o, Done: p.done != nil})
}

// onCommit takes the word of a member, which also those hear who have given the view up.
func (r *replica) onCommit(env *protocol.Env[bft.Message], from protocol.ID, m commit) {
	if !r.Within(m.Order.Seq) || m.Order.Seq <= r.Committed || m.Order.View.Epoch() != r.Dir.Epoch {
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
		if prepared >= r.Dir.Quorum() {
			p.done = &p.prepared.Order.Body().Batch
			return true
		}
	}
	if len(p.told) == 0 {
		return false
	}
	for _, m := range r.Dir.Members {
		told, ok := p.told[m.ID]
		committed := 0
		for _, o := range r.Dir.Members {
			if d, also := p.told[o.ID]; ok && also && d == told {
				committed++
			}
		}
		if committed >= r.Dir.Witness() {
			done := told
			p.done = &done
			return true
		}
	}
	return false
}

// advance does what has become possible.
func (r *replica) advance(env *protocol.Env[bft.Message]) {
	for seq := min(r.Low(), r.Committed) + 1; seq <= r.Low()+r.Window(); seq++ {
		if p := r.places[seq]; p != nil {
			r.accept(env, p)
			r.prepare(env, p)
		}
	}
	for r.Turn(env) || !r.Repair(env) && (r.execute(env) || r.commit(env)) {
	}
	if r.Fetching() {
		r.faith.whole = false
	}
	r.AnswerReads(env)
	if r.propose(env) && len(r.Others) == 0 {
		r.advance(env) // it waits for nobody
	}
}

// execute executes the next batch, if it is prepared in this view or committed, and tells the
// clients. A primary has done so already when it proposed it, and only tells.
func (r *replica) execute(env *protocol.Env[bft.Message]) bool {
	p := r.places[r.Executed+1]
	if p == nil {
		return false
	}
	batch, tentative := bft.Digest{}, true
	switch {
	case r.decide(p):
		batch, tentative = *p.done, p.seq != r.Committed+1
	case r.Active && r.preparedNow(p):
		batch = p.offer.Body().Batch
	default:
		return false
	}
	x := r.Performed(p.seq)
	if x != nil && x.Batch != batch || x == nil && (r.Top >= p.seq || r.Lead.Open()) {
		r.DropLayers() // what was executed early is not what was committed
		return true
	}
	if x == nil && !r.Perform(p.seq, batch) {
		return false
	}
	r.Executed++
	if p.offer == nil || p.offer.Body().Batch != batch {
		r.faith.whole = false // others have decided that, in a later view perhaps
	}
	r.reply(env, r.Performed(p.seq), tentative)
	return true
}

// reply tells the clients what became of their requests.
func (r *replica) reply(env *protocol.Env[bft.Message], p *kit.Performed, tentative bool) {
	for _, x := range p.Results {
		b := r.Requests.Body(x.Digest)
		r.tell(env, x.Request, x.Entries, tentative, b != nil && b.Full)
	}
}

func (r *replica) tell(env *protocol.Env[bft.Message], m *bft.Request, entries []sessions.Entry, tentative, full bool) {
	for part := range kit.Parts(entries, full) {
		reply := replies{View: r.View, Session: m.Session}
		for _, e := range part {
			item := replyItem{Number: e.Number, Seq: e.Seq, Tentative: tentative && e.Seq > r.Committed,
				Digest: e.Result.Digest()}
			if full {
				item.Full, item.Result = true, e.Result
			}
			reply.Items = append(reply.Items, item)
		}
		env.Send(m.Client, reply)
	}
}

// commit commits the next batch that was executed, when it cannot come out otherwise.
func (r *replica) commit(env *protocol.Env[bft.Message]) bool {
	p := r.places[r.Committed+1]
	if p == nil || p.seq > r.Executed || !r.decide(p) {
		return false
	}
	r.Merge(env)
	return true
}
