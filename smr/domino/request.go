package domino

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onClient takes what clients ask for.
func (r *replica) onClient(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if r.role != member {
		r.redirect(env, from)
		return
	}
	switch msg := msg.(type) {
	case submit:
		switch {
		case len(msg.Acks) != len(msg.Commands) || len(msg.Commands) == 0 || msg.Slot > maxSlot || msg.After > maxSlot:
		case msg.Slot != 0:
			r.onVote(env, from, msg)
		default:
			r.onSubmit(env, from, msg)
		}
	case kit.OpenRequest:
		r.queue = r.Desk.Take(env, from, msg, r.queue)
		r.soon(env)
	case kit.ReadRequest:
		r.onRead(env, from, msg)
	case kit.ChangeRequest:
		r.onChange(env, from, msg)
	}
}

// redirect tells a client who coordinates.
func (r *replica) redirect(env *protocol.Env[smr.Message], to protocol.ID) {
	m := kit.Redirect{}
	leader := r.leader()
	for _, o := range r.State.Members() {
		if o.ID == leader && leader != r.Cfg.ID {
			m.Leader = o
		}
	}
	env.SendAhead(to, m)
}

// onVote votes for commands in a slot of the shared track that their client has chosen. It votes
// once for a slot, and only above its claims: a claim says that all votes up to there are in the
// stream already, and others have counted the slots without one as passed.
func (r *replica) onVote(env *protocol.Env[smr.Message], from protocol.ID, m submit) {
	a := &r.acceptor
	item := item{Slot: m.Slot, Answer: m.Answer, Entries: entries(from, m)}
	verdict, late := no, time.Duration(0)
	had, voted := a.votes.get(m.Slot)
	now := r.now(env)
	switch {
	case digitOf(m.Slot) != sharedDigit:
		return
	case m.Slot <= r.learner.executed:
		// What the vote was is forgotten, so the answer is not No. What was decided may be known.
		if was, ok := r.past.items.get(m.Slot); ok || m.Slot > r.past.base {
			r.sendOutcome(env, item, ok && was.equal(item))
		}
		return
	case voted && had.equal(item):
		verdict = yes
	case voted: // another client has chosen the slot too, and was first: votes are never taken back
	case m.Slot <= a.closed:
		late = at(a.closed - m.Slot) // the client learns by how much its prediction was too early
	case m.Slot > r.learner.limit(), a.full(item, r.Cfg):
		verdict = full // nobody knows who will be a member then; or there is too much to do
	default:
		verdict = yes
		late = at(now) - at(m.Slot)
		a.vote(item)
		a.add(env, item)
		r.soon(env)
	}
	if m.Answer == r.Cfg.ID && verdict == yes && !voted {
		r.watch(from, m.Slot, m)
	}
	env.Send(from, vote{Session: m.Session, Slot: m.Slot, Members: uint32(len(r.group)), Verdict: verdict, Late: late})
}

// entries are the commands of a client as they go into the log.
func entries(from protocol.ID, m submit) []kit.Entry {
	out := make([]kit.Entry, len(m.Commands))
	for i, c := range m.Commands {
		out[i] = kit.Entry{Kind: kit.Command, Client: from, Session: m.Session, Seq: c.Seq, Acked: min(m.Acked, c.Seq),
			Command: c.Command}
	}
	return out
}

// onSubmit takes commands that are to be proposed in the replica's own track. Their slots are above
// the highest After of the batch, so that they come behind what their clients know.
func (r *replica) onSubmit(env *protocol.Env[smr.Message], from protocol.ID, m submit) {
	before := len(r.queue)
	r.queue = r.Desk.Take(env, from, m.Request, r.queue)
	if len(r.queue) == before {
		return
	}
	r.after = max(r.after, m.After)
	if slices.Contains(m.Acks, smr.AckOrdered) {
		for i, c := range m.Commands {
			if m.Acks[i] == smr.AckOrdered && len(r.wanted[m.Session]) < r.Cfg.MaxPending {
				r.wanted[m.Session] = append(r.wanted[m.Session], c.Seq)
			}
		}
	}
	r.soon(env)
}

// propose proposes what is in the queue, in slots of the replica's own track. A slot has to be
// above
//   - the replica's claims: others have taken slots up to there for skipped, which decides no-ops;
//   - what was revoked, here or as others say: acceptors take nothing more there;
//   - what clients' commands have to come behind (After), and its own last proposal: proposals
//     rise, so that a claim can speak about all of them by one slot.
//
// It is chosen ahead of now, by about the time that accepting takes, so that it is decided when the
// other tracks get there. If its clock is too far ahead of what is known about the members, nobody
// knows yet who decides the slot: the clients are told that it is busy, and ask another replica.
func (r *replica) propose(env *protocol.Env[smr.Message]) {
	for len(r.queue) > 0 {
		n := kit.FitEntries(r.queue, min(len(r.queue), r.Cfg.MaxBatch))
		a := &r.acceptor
		s := max(r.now(env)+smr.Slot(r.predicted(env.Now)), a.skipped, a.track(r.Cfg.ID).revoked, r.above, r.after)
		if last := a.track(r.Cfg.ID).items; len(last) > 0 {
			s = max(s, last[len(last)-1].Slot)
		}
		s = above(s, r.digit)
		if s > r.learner.limit() {
			r.Desk.GiveBack(env, r.queue)
			r.queue = nil
			break
		}
		item := item{Slot: s, Answer: r.Cfg.ID, Entries: slices.Clone(r.queue[:n])}
		r.queue = r.queue[n:]
		a.track(r.Cfg.ID).items.add(item)
		a.add(env, item)
		r.watchOwn(item)
	}
	if len(r.queue) == 0 {
		r.queue = nil // what was proposed is not kept in memory by what comes
	}
	r.after = 0
	clear(r.wanted)
}

// watchOwn is watch for an item of the replica's own track.
func (r *replica) watchOwn(item item) {
	for _, e := range item.Entries {
		if !slices.Contains(r.wanted[e.Session], e.Seq) {
			continue
		}
		n := len(r.ordered)
		if n > 0 && r.ordered[n-1].slot == item.Slot && r.ordered[n-1].session == e.Session &&
			r.ordered[n-1].client == e.Client {
			r.ordered[n-1].seqs = append(r.ordered[n-1].seqs, e.Seq)
		} else if n < r.Cfg.MaxPending {
			r.ordered = append(r.ordered, watched{item.Slot, e.Client, e.Session, []kit.Seq{e.Seq}})
			r.orderedFrom = min(r.orderedFrom, item.Slot)
		}
	}
}

// predicted returns how far ahead of now the replica's proposals are: it is the time that it takes
// to have a majority accept one [Thesis §4.3.5], or, with Arrival, to reach a majority.
func (r *replica) predicted(now time.Duration) time.Duration {
	var delays []time.Duration
	for _, id := range r.group {
		if id == r.Cfg.ID {
			delays = append(delays, 0)
			continue
		}
		d, ok := r.peers[id].meter.round(now)
		if r.opt.Arrival {
			d, ok = r.peers[id].meter.arrival(now)
		}
		if ok {
			delays = append(delays, d)
		}
	}
	if len(delays) < r.rule.classic {
		return 0
	}
	slices.Sort(delays)
	return min(max(0, delays[r.rule.classic-1]), at(r.ahead(horizon/4)))
}

// probe measures the ways to the other members, once in a round trip if nothing was voted for or
// proposed for a window.
func (r *replica) probe(env *protocol.Env[smr.Message]) {
	if r.Lull.Is() {
		return // until it ends
	}
	for _, id := range r.group {
		if id != r.Cfg.ID {
			env.SendAhead(id, probe{Sent: env.Now})
		}
	}
	next := r.opt.Probe
	if last := r.acceptor.own.last(); last != r.probed {
		r.probed, r.quiet = last, 0
	} else if r.quiet++; time.Duration(r.quiet)*r.opt.Probe > r.opt.Window {
		next = max(next, r.Cfg.RoundTrip)
	}
	env.After(next, probeTimer{})
}

// onProbe tells a client, or another replica, what it needs to predict.
func (r *replica) onProbe(env *protocol.Env[smr.Message], from protocol.ID, m probe) {
	if r.role != member {
		return
	}
	e := echo{Sent: m.Sent, Now: at(r.now(env)), Leader: r.leader(), Generation: r.State.Generation()}
	if r.alone() {
		e.Now = at(r.acceptor.closed)
	}
	if r.peers[from] != nil {
		if r.time.fresh {
			e.Shown = env.Now
		}
	} else {
		for _, id := range r.group {
			// One that is alone proposes nothing, so there is no way through it.
			if d, ok := r.peers[id].meter.usual(env.Now); ok && !r.alone() {
				e.Delays = append(e.Delays, delay{id, d})
			}
		}
		if m.Generation != e.Generation {
			e.Members = r.State.Members()
		}
	}
	env.SendAhead(from, e)
}

func (r *replica) onEcho(env *protocol.Env[smr.Message], from protocol.ID, m echo) {
	if p := r.peers[from]; p != nil && from != r.Cfg.ID {
		p.silent = 0 // it does not wait for a disk, as News does
		p.fresh, p.shown = m.Shown != 0, m.Shown
		if !p.fresh {
			r.time.fresh = false // it was at work
		}
		p.meter.add(env.Now, m)
		r.Tempo.Saw(env.Now, env.Now-m.Sent)
	}
}

// onChange takes a change of the members, which only the coordinator makes, in the control track.
func (r *replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, m kit.ChangeRequest) {
	if r.coord.phase != leading {
		r.Desk.Meet(env, m.Change)
		r.redirect(env, from)
		return
	}
	r.coord.changes = r.Desk.Change(env, from, m, r.upToDate, r.coord.changes)
}

// upToDate reports whether a replica that waits to be added was the last one that asked what was
// executed, and lacked little of it.
func (r *replica) upToDate(_ *protocol.Env[smr.Message], id protocol.ID, _ kit.Incarnation) (ok bool, why string) {
	if len(r.group) >= maxMembers {
		return false, fmt.Sprintf("the group has %d members, which is as many as can be", maxMembers)
	}
	return r.coord.joiner == id && r.coord.joined+r.ahead(horizonLeft) >= r.learner.executed, ""
}

// leader returns who coordinates, as far as the replica knows, 0 for nobody.
func (r *replica) leader() protocol.ID {
	if r.coord.phase == leading {
		return r.Cfg.ID
	}
	best := kit.Ballot(0)
	for _, id := range r.group {
		if p := r.peers[id]; p.leads && r.alive(id) && p.promised.Owner() == id {
			best = max(best, p.promised)
		}
	}
	return best.Owner()
}
