package pbft

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Keys of a replica's disk, beside the state's.
const (
	statePrefix = "s/"
	viewKey     = "p/view"
	changeKey   = "p/change"
	startKey    = "p/start"
	stableKey   = "p/stable"
	doneKey     = "p/done"
)

func (r *replica) put(env *protocol.Env[bft.Message], key string, msg bft.Message) {
	b, err := r.format.Append(nil, msg)
	if err != nil {
		panic(err) // a kind that was not declared
	}
	env.Put([]byte(key), b)
}

func get[T any](r *replica, env *protocol.Env[bft.Message], key string) (T, bool) {
	var none T
	b, ok := env.Get([]byte(key))
	if !ok {
		return none, false
	}
	msg, err := r.format.Decode(b)
	if err != nil {
		return none, false
	}
	m, ok := msg.(T)
	return m, ok
}

// Start is part of protocol.Node.
func (r *replica) Start(env *protocol.Env[bft.Message], log []protocol.Record[bft.Message]) {
	state, err := keyspace.Open(env, statePrefix)
	if r.state = state; err == nil {
		defer state.Leave()
		r.scrubAll()
		err = r.remember(env)
	}
	if err != nil {
		// It may have said what it does not know any more, so it must not say anything else.
		r.state = nil
		env.Send(protocol.App, bft.Refused{Reason: err.Error()})
		return
	}
	r.reachAgain()
	r.offerAgain()
	for _, rec := range log {
		r.replay(rec)
	}
	if _, _, ok := state.Fetching(); ok {
		r.beginFetch()
	} else if r.damage != "" {
		r.repair(env)
	}
	r.spoke = -maxIdleTicks
	env.After(r.cfg.RoundTrip/2, beatTimer{})
	if r.active && r.primary() && len(log) > 0 {
		// What it told clients early before the crash may not be what it would propose now.
		r.giveUp(env, r.view+1)
	}
}

// remember reads what is kept under keys.
func (r *replica) remember(env *protocol.Env[bft.Message]) error {
	for _, key := range []string{viewKey, changeKey, startKey, stableKey, doneKey} {
		if b, ok := env.Get([]byte(key)); ok {
			if _, err := r.format.Decode(b); err != nil {
				return fmt.Errorf("pbft: the disk's %s: %w", key, err)
			}
		}
	}
	if m, ok := get[viewRecord](r, env, viewKey); ok {
		r.view, r.active = m.View, m.Active
	}
	if m, ok := get[viewChange](r, env, changeKey); ok && !r.active {
		r.own = &m.Change
		r.changes[r.cfg.ID] = m.Change
	}
	if m, ok := get[newView](r, env, startKey); ok && m.Start.Body().View == r.view && r.active {
		r.start = &m.Start
	}
	if m, ok := get[stableProof](r, env, stableKey); ok {
		r.stable = m.Proof
	}
	if m, ok := get[doneRecord](r, env, doneKey); ok {
		r.committed, r.executed, r.top = m.Committed, m.Committed, m.Committed
	}
	r.latest = sessions.Time(r.state.Committed())
	return nil
}

// reachAgain signs the checkpoints again that are not stable: if all crash nobody else remembers
// them, and the window ends where they cannot become stable.
func (r *replica) reachAgain() {
	for _, n := range r.state.Checkpoints() {
		if seq := bft.Seq(n); seq > r.low() && seq <= r.committed {
			moment, _ := r.state.At(n)
			r.reached[r.cfg.ID] = append(r.reached[r.cfg.ID],
				r.st.checkpoints.Sign(r.cfg.Scheme, r.cfg.Signer, checkpointBody{seq, moment.Digest()}))
		}
	}
}

// replay takes a record of the log: what was accepted and prepared above what is stable.
func (r *replica) replay(rec protocol.Record[bft.Message]) {
	switch m := rec.Msg.(type) {
	case proposal:
		o := m.Order.Body()
		if !r.within(o.Seq) {
			return
		}
		if _, ok := r.records[o.Seq]; !ok {
			r.records[o.Seq] = rec.Index
		}
		r.takeBatch(m.Batch, o.Batch)
		r.known[o.Batch] = max(r.known[o.Batch], o.Seq)
		for i := range m.Requests {
			d := r.st.digestOfRequest(m.Requests[i].Body())
			if r.bodies[d] == nil {
				r.bodies[d] = &body{request: m.Requests[i]}
			}
			r.bodies[d].at = max(r.bodies[d].at, o.Seq)
		}
		if p := r.place(o.Seq); o.View == r.view && r.active {
			p.offer, p.accepted = &m.Order, true
			if !r.primary() {
				p.votes[r.cfg.ID] = r.st.votes.Sign(r.cfg.Scheme, r.cfg.Signer, voteBody(*o))
			}
		}
	case preparedRecord:
		o := *m.Prepared.Order.Body()
		if r.within(o.Seq) {
			p := r.place(o.Seq)
			p.prepared = &m.Prepared
			p.commits[r.cfg.ID] = o
		}
	}
}

// onReached takes the word of a member that it has the state of a checkpoint.
func (r *replica) onReached(env *protocol.Env[bft.Message], c bft.Signed[checkpointBody]) {
	b := c.Body()
	if b.Seq <= r.low() || !r.within(b.Seq) || b.Seq%bft.Seq(r.cfg.CheckpointEvery) != 0 {
		return
	}
	var same []bft.Signed[checkpointBody]
	for _, m := range r.dir.Members {
		if c.By(m.Key) {
			r.reached[m.ID] = append(slices.DeleteFunc(r.reached[m.ID], func(s bft.Signed[checkpointBody]) bool {
				return s.Body().Seq <= r.low() || s.Body().Seq == b.Seq
			}), c)
		}
		for _, s := range r.reached[m.ID] {
			if *s.Body() == *b {
				same = append(same, s)
			}
		}
	}
	if len(same) >= r.dir.Quorum() {
		r.onStable(env, bft.Join(same))
	}
}

// onStable takes the proof that a checkpoint is stable: what is below it is not needed any more.
func (r *replica) onStable(env *protocol.Env[bft.Message], proof bft.Certificate[checkpointBody]) {
	if proof.Body().Seq <= r.low() || !lawfulStable(r.dir, &proof) {
		return
	}
	r.stable = proof
	r.doublings = max(r.doublings-1, 0)
	r.put(env, stableKey, stableProof{proof})
	r.compare(proof.Body())
	r.forget(env)
}

// forget removes what is needed neither for what others ask nor to come to the stable checkpoint.
func (r *replica) forget(env *protocol.Env[bft.Message]) {
	if r.fetch != nil || r.committed < r.low() {
		return
	}
	low := r.low()
	keep := env.NextIndex()
	maps.DeleteFunc(r.places, func(seq bft.Seq, _ *place) bool { return seq <= low })
	maps.DeleteFunc(r.records, func(seq bft.Seq, _ uint64) bool { return seq <= low })
	for seq := low + 1; seq <= low+r.window(); seq++ {
		if i, ok := r.records[seq]; ok {
			keep = min(keep, i)
		}
	}
	env.Truncate(keep)
	maps.DeleteFunc(r.bodies, func(_ bft.Digest, b *body) bool { return !b.waiting && b.at <= low })
	maps.DeleteFunc(r.batches, func(d bft.Digest, _ requestBatch) bool { return r.known[d] <= low })
	maps.DeleteFunc(r.known, func(_ bft.Digest, seq bft.Seq) bool { return seq <= low })
	r.state.Release(uint64(low))
}

// catchUp fetches the state of the stable checkpoint if this replica does not get there by itself.
func (r *replica) catchUp(env *protocol.Env[bft.Message]) {
	behind := r.low() > r.committed
	if r.fetch == nil && behind && r.behind == r.committed+1 && r.tick%4 == 0 ||
		r.fetch != nil && r.fetching.Seq < r.low() {
		r.dropLayers()
		r.beginFetch()
	}
	if r.tick%4 == 0 {
		r.behind = 0
		if behind {
			r.behind = r.committed + 1
		}
	}
	if r.fetch == nil {
		return
	}
	if r.tick%4 == 0 { // who was asked may have nothing to say
		for _, w := range r.wants {
			r.fetch.Again(w)
		}
		r.wants = nil
		r.asked++
	}
	r.askForState(env)
}

func (r *replica) beginFetch() {
	if r.fetching = r.stable.Body(); r.fetching.Seq == 0 {
		r.fetching.State = keyspace.Empty()
	}
	r.scrub = nil
	r.fetch = r.state.Fetch(uint64(r.fetching.Seq), r.fetching.State)
	r.lead, r.wants = leading{}, nil
}

func (r *replica) askForState(env *protocol.Env[bft.Message]) {
	if len(r.others) == 0 {
		return
	}
	m := stateWanted{Seq: r.fetching.Seq}
	for _, w := range r.fetch.Wants(maxWants - r.fetch.Asked()) {
		m.Wants = append(m.Wants, string(w))
		r.wants = append(r.wants, w)
	}
	if len(m.Wants) > 0 {
		env.Send(r.others[r.asked%len(r.others)], m)
	}
	r.endFetch(env)
}

func (r *replica) endFetch(env *protocol.Env[bft.Message]) {
	if !r.fetch.Done() {
		return
	}
	r.fetch = nil
	r.transfers++
	r.committed, r.executed, r.top = r.fetching.Seq, r.fetching.Seq, r.fetching.Seq
	r.put(env, doneKey, doneRecord{r.committed})
	r.latest = max(r.latest, sessions.Time(r.state.Committed()))
	maps.DeleteFunc(r.places, func(seq bft.Seq, p *place) bool {
		p.layer, p.results = nil, nil
		return seq <= r.committed
	})
	base := r.state.Committed()
	for _, d := range slices.Clone(r.arrivals) {
		if !fresh(base, r.bodies[d].request.Body()) {
			r.settled(d)
		}
	}
	r.forget(env)
}

func (r *replica) onStateWanted(env *protocol.Env[bft.Message], from protocol.ID, m stateWanted) {
	moment, ok := r.state.At(uint64(m.Seq))
	if !ok || r.fetch != nil || len(m.Wants) > maxWants {
		env.Send(from, stableProof{r.stable})
		return
	}
	for _, w := range m.Wants {
		page, err := moment.Page(keyspace.Want(w), maxPageBytes)
		if err == nil {
			env.Send(from, statePage{m.Seq, w, page})
		}
	}
}

func (r *replica) onStatePage(env *protocol.Env[bft.Message], m statePage) {
	if r.fetch == nil || m.Seq != r.fetching.Seq {
		return
	}
	if err := r.fetch.Take(keyspace.Want(m.Want), m.Page); err != nil {
		if !errors.Is(err, keyspace.ErrUnasked) { // which is late, or was asked for twice
			r.refused++
		}
		return
	}
	r.askForState(env)
}

// onStatus sends a member what it lacks.
func (r *replica) onStatus(env *protocol.Env[bft.Message], from protocol.ID, m status) {
	switch {
	case r.start != nil && r.active && (m.View < r.view || m.View == r.view && !m.Active):
		env.Send(from, newView{*r.start})
	case !r.active && r.own != nil && (m.View < r.view || m.View == r.view && !m.Active) && r.tick >= r.again[from]:
		r.again[from] = r.tick + changeEvery
		env.Send(from, viewChange{*r.own})
	}
	if m.Stable < r.low() {
		env.Send(from, stableProof{r.stable})
	}
	for _, s := range r.reached[r.cfg.ID] {
		if s.Body().Seq > m.Stable {
			env.Send(from, reached{s})
		}
	}
	low := max(m.Committed, m.Stable, r.low())
	for seq := low + 1; seq <= low+maxResent; seq++ {
		if p := r.places[seq]; p != nil {
			r.resend(env, from, m, p)
		}
	}
}

// resend says again what this replica has said of a place.
func (r *replica) resend(env *protocol.Env[bft.Message], to protocol.ID, m status, p *place) {
	if r.active && m.Active && m.View == r.view && p.accepted {
		env.Send(to, r.proposal(p, false))
		if v, ok := p.votes[r.cfg.ID]; ok {
			env.Send(to, prepare{v})
		}
	}
	o, ok := p.commits[r.cfg.ID]
	if p.done != nil && o.Batch != *p.done {
		o, ok = orderBody{Seq: p.seq, Batch: *p.done}, true
	}
	if ok {
		env.Send(to, commit{Order: o, Done: p.done != nil})
	}
}

// askForBodies asks everybody for what the next places need.
func (r *replica) askForBodies(env *protocol.Env[bft.Message]) {
	for seq := r.committed + 1; seq <= r.committed+maxResent; seq++ {
		if p := r.places[seq]; p != nil {
			r.askFor(env, r.others, p)
		}
	}
}

// askFor asks some members for what a place lacks.
func (r *replica) askFor(env *protocol.Env[bft.Message], ids []protocol.ID, p *place) {
	var want wanted
	switch {
	case r.decide(p):
		want = r.lacking(*p.done)
	case p.offer != nil && !p.accepted:
		want = r.lacking(p.offer.Body().Batch)
	}
	if !want.none() {
		for _, id := range ids {
			env.Send(id, want)
		}
	}
}

func (r *replica) onWanted(env *protocol.Env[bft.Message], from protocol.ID, m wanted) {
	var out bodies
	for _, d := range m.Batches[:min(len(m.Batches), maxResent)] {
		if b, ok := r.batches[d]; ok {
			out.Batches = append(out.Batches, b)
			for _, e := range b.Entries {
				if x := r.bodies[e.Request]; x != nil && size(x.request.Body()) <= inlineBytes {
					out.Requests = append(out.Requests, x.request)
				}
			}
		}
	}
	for _, d := range m.Requests[:min(len(m.Requests), r.cfg.MaxBatch)] {
		if b := r.bodies[d]; b != nil {
			out.Requests = append(out.Requests, b.request)
		}
	}
	if len(out.Batches)+len(out.Requests) > 0 {
		env.Send(from, out)
	}
}

// onBodies takes what the next places need.
func (r *replica) onBodies(env *protocol.Env[bft.Message], m bodies) {
	for seq := r.committed + 1; seq <= r.low()+r.window(); seq++ {
		p := r.places[seq]
		if p == nil {
			continue
		}
		var want bft.Digest
		switch {
		case r.decide(p):
			want = *p.done
		case p.offer != nil && !p.accepted:
			want = p.offer.Body().Batch
		default:
			continue
		}
		for _, b := range m.Batches {
			r.takeBatch(b, want)
		}
		for i := range m.Requests {
			r.takeRequest(&m.Requests[i], want)
		}
		r.known[want] = max(r.known[want], seq)
		for _, e := range r.batches[want].Entries {
			if b := r.bodies[e.Request]; b != nil {
				b.at = max(b.at, seq)
			}
		}
	}
}
